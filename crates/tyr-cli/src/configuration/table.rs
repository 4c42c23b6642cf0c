//! The table of settings. Everything that is said about them anywhere is made from it.

use tyr_net::TLS_DOMAIN;

use super::kind::Kind;
use super::setting::{Group, Setting};

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

/// Makes the table of its rows, and of their names an enum, so that who asks for a setting that the
/// table does not have does not compile.
macro_rules! table {
    ($($name:ident { $($fields:tt)* })*) => {
        /// The name of a setting; its text is in snake case.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount, strum::IntoStaticStr)]
        #[strum(serialize_all = "snake_case", const_into_str)]
        pub enum Name {
            $($name),*
        }

        /// All settings, in the order of [`Name`].
        pub static SETTINGS: [Setting; <Name as strum::EnumCount>::COUNT] =
            [$(Setting { name: Name::$name.into_str(), $($fields)* }),*];
    };
}

impl Name {
    /// The setting's row.
    pub fn setting(self) -> &'static Setting {
        &SETTINGS[self as usize]
    }
}

table! {
    Node {
        group: Group::Node,
        kind: Kind::Count { min: 0, max: 65_535 },
        default: None,
        example: "3",
        meaning: "The node's number. Needed once for a node that forms the cluster; then its \
                  folder knows it. A node that joins gets the next free one if it names none.",
    }
    Folder {
        group: Group::Node,
        kind: Kind::Path,
        default: None,
        example: "/var/lib/tyr",
        meaning: "Where the node keeps everything: its own folder, made if it is missing.",
    }
    Listen {
        group: Group::Node,
        kind: Kind::Socket { has_off: false },
        default: Some("0.0.0.0:7070"),
        example: "10.0.0.3:7070",
        meaning: "Where it listens for other nodes and for clients, by TCP, and for gossip, by \
                  UDP.",
    }
    Advertise {
        group: Group::Node,
        kind: Kind::Places,
        default: None,
        example: "db3.example.org:7070",
        meaning: "Where others reach it. By default its own entry in nodes, else the address of \
                  listen unless that is 0.0.0.0.",
    }
    Monitor {
        group: Group::Node,
        kind: Kind::Choice(&["auto", "yes", "no"]),
        default: Some("auto"),
        example: "yes",
        meaning: "Whether it is one of the monitors, which decide on maps and leases. With auto, \
                  the first three of nodes are, or the only one.",
    }
    Weight {
        group: Group::Node,
        kind: Kind::Count { min: 1, max: 1000 },
        default: Some("100"),
        example: "200",
        meaning: "How much of the data it takes, compared with the weights of other nodes.",
    }
    Domain {
        group: Group::Node,
        kind: Kind::Count { min: 0, max: 4_294_967_295 },
        default: None,
        example: "12",
        meaning: "The number of its failure domain, a rack for instance: replicas are spread over \
                  as many domains as there are.",
    }
    Nodes {
        group: Group::Cluster,
        kind: Kind::Nodes,
        default: None,
        example: "0=db0:7070,1=db1:7070,2=db2:7070",
        meaning: "The nodes that form a new cluster, this one among them; the same at each. Of no \
                  effect once the cluster is there.",
    }
    Join {
        group: Group::Cluster,
        kind: Kind::Places,
        default: None,
        example: "db0:7070,db1:7070",
        meaning: "Nodes of the cluster that it joins, asked in turn. Instead of nodes.",
    }
    SecretFile {
        group: Group::Security,
        kind: Kind::Path,
        default: None,
        example: "/etc/tyr/secret",
        meaning: "A file with the cluster's secret, the same at every node: whoever has it may do \
                  everything. `tyr secret` draws one.",
    }
    Insecure {
        group: Group::Security,
        kind: Kind::Switch,
        default: Some("false"),
        example: "true",
        meaning: "Checks nothing: whoever can connect may do everything. This or secret_file.",
    }
    TlsCertificate {
        group: Group::Security,
        kind: Kind::Path,
        default: None,
        example: "/etc/tyr/node.pem",
        meaning: "The node's certificate, PEM, with those between it and the authority's. With \
                  tls_key and tls_authorities everything between nodes and clients is encrypted.",
    }
    TlsKey {
        group: Group::Security,
        kind: Kind::Path,
        default: None,
        example: "/etc/tyr/node-key.pem",
        meaning: "The private key of that certificate, PEM.",
    }
    TlsAuthorities {
        group: Group::Security,
        kind: Kind::Path,
        default: None,
        example: "/etc/tyr/ca.pem",
        meaning: "Certificates of the authorities, one of which signed those of all nodes and \
                  clients, PEM.",
    }
    TlsDomain {
        group: Group::Security,
        kind: Kind::Name,
        default: Some(TLS_DOMAIN),
        example: "tyr.example.org",
        meaning: "What certificates of nodes name: that of node 3 is for node-3 in this domain, \
                  and for the domain itself.",
    }
    TlsClientCertificates {
        group: Group::Security,
        kind: Kind::Switch,
        default: Some("true"),
        example: "false",
        meaning: "Whether clients have to show a certificate too. With false their keys are \
                  enough; nodes always show theirs.",
    }
    Cache {
        group: Group::Storage,
        kind: Kind::Size { min: 8 * MIB, max: TIB },
        default: Some("512MiB"),
        example: "8GiB",
        meaning: "Memory for recent operations and for what was read. What is written again and \
                  again within a minute should fit in half of it: else it is worked into the \
                  base more often. Below 64MiB a node warns at its start.",
    }
    FoldLog {
        group: Group::Storage,
        kind: Kind::Size { min: MIB, max: TIB },
        default: Some("256MiB"),
        example: "1GiB",
        meaning: "After this much log what it says is worked into the base. More makes folds \
                  rarer and a restart longer.",
    }
    KeptBytesMax {
        group: Group::Storage,
        kind: Kind::Size { min: MIB, max: 512 * TIB },
        default: Some("64GiB"),
        example: "500GiB",
        meaning: "Bytes that the node may hold on its disk for kept snapshots. When it holds more, \
                  or its disk is full, the oldest kept snapshot of the cluster is dropped, and \
                  the cluster log names it.",
    }
    CopyRate {
        group: Group::Storage,
        kind: Kind::Size { min: MIB, max: TIB },
        default: None,
        example: "50MiB",
        meaning: "Bytes a second at which the node copies what it is to hold, when it joins, \
                  returns, or replaces another, so that clients do not feel it. Without it, as \
                  fast as it goes; so comes what they write to, where much of that waits.",
    }
    SnapshotTimeout {
        group: Group::Storage,
        kind: Kind::Time { min_ms: 1000, max_ms: 86_400_000, has_never: false },
        default: Some("5min"),
        example: "30min",
        meaning: "How long a snapshot or a transaction may read (V1); then it is too old.",
    }
    Linger {
        group: Group::Storage,
        kind: Kind::Time { min_ms: 0, max_ms: 60_000, has_never: false },
        default: Some("5s"),
        example: "30s",
        meaning: "How long older versions stay that nobody is known to read, for snapshots of \
                  several blobs, unless memory is short (V4).",
    }
    ScrubRate {
        group: Group::Storage,
        kind: Kind::Size { min: 0, max: TIB },
        default: Some("4MiB"),
        example: "32MiB",
        meaning: "Bytes a second that the node compares with other replicas in the background, to \
                  find what is damaged and write it anew (D4). Each is read at every replica, and \
                  comes over the network from all but one. 0 compares nothing.",
    }
    ScrubEvery {
        group: Group::Storage,
        kind: Kind::Time { min_ms: 1000, max_ms: 31_536_000_000, has_never: false },
        default: Some("1d"),
        example: "7d",
        meaning: "How often everything is compared, if scrub_rate is enough for that; else as \
                  often as it allows.",
    }
    Lease {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 200, max_ms: 60_000, has_never: false },
        default: Some("2s"),
        example: "5s",
        meaning: "How long a node's lease lasts (M3). A map that takes something from a silent \
                  node waits for so long.",
    }
    DownAfter {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 250, max_ms: 600_000, has_never: false },
        default: Some("2500ms"),
        example: "10s",
        meaning: "A node that is silent for this long is declared down. More than 1.1 leases.",
    }
    RemoveAfter {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 1000, max_ms: 30 * 86_400_000, has_never: true },
        default: Some("10min"),
        example: "1h",
        meaning: "A node that is down for this long is removed, and others copy what it held; \
                  long enough for a reboot.",
    }
    Heartbeat {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 10, max_ms: 10_000, has_never: false },
        default: Some("250ms"),
        example: "500ms",
        meaning: "How often the leader of the monitors is heard of.",
    }
    Election {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 40, max_ms: 60_000, has_never: false },
        default: Some("2s"),
        example: "4s",
        meaning: "After this long at most a silent leader of the monitors is replaced. At least \
                  four heartbeats.",
    }
    GossipProbe {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 50, max_ms: 60_000, has_never: false },
        default: Some("250ms"),
        example: "1s",
        meaning: "How often each node probes another one (M2).",
    }
    GossipSuspicionMin {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 50, max_ms: 60_000, has_never: false },
        default: Some("500ms"),
        example: "1s",
        meaning: "A node that does not answer probes is suspected for at least this long before \
                  it is proposed to be declared down.",
    }
    GossipSuspicionMax {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 50, max_ms: 60_000, has_never: false },
        default: Some("3s"),
        example: "10s",
        meaning: "The same at most, when probes of it were always slow.",
    }
    GossipPhi {
        group: Group::Failures,
        kind: Kind::Number { min: 1.0, max: 100.0 },
        default: Some("8"),
        example: "10",
        meaning: "How sure one has to be: 8 is one error in 10^8 if round trips stay as they were.",
    }
    GossipRumour {
        group: Group::Failures,
        kind: Kind::Time { min_ms: 50, max_ms: 60_000, has_never: false },
        default: Some("1s"),
        example: "5s",
        meaning: "How often each node tells the others how it is; at least one gossip_probe.",
    }
    NetworkThreads {
        group: Group::Network,
        kind: Kind::Count { min: 1, max: 64 },
        default: Some("1"),
        example: "2",
        meaning: "Threads that read from sockets and work off what comes. One moves some 400,000 \
                  small messages a second; with TLS and large payloads more help.",
    }
    ConnectionsMax {
        group: Group::Network,
        kind: Kind::Count { min: 16, max: 1_000_000 },
        default: Some("4096"),
        example: "16384",
        meaning: "Connections at most; beyond it clients are refused and nodes are not. Each has \
                  a buffer of 64 KiB.",
    }
    ClientOutboxesMax {
        group: Group::Network,
        kind: Kind::Size { min: 64 * MIB, max: TIB },
        default: Some("1GiB"),
        example: "4GiB",
        meaning: "Bytes at most that wait to be sent to all clients together.",
    }
    GreetingTimeout {
        group: Group::Network,
        kind: Kind::Time { min_ms: 100, max_ms: 60_000, has_never: false },
        default: Some("5s"),
        example: "10s",
        meaning: "How long a connection has until both sides have said who they are.",
    }
    SilenceTimeout {
        group: Group::Network,
        kind: Kind::Time { min_ms: 1000, max_ms: 600_000, has_never: false },
        default: Some("10s"),
        example: "30s",
        meaning: "A connection whose other end does not answer for this long is given up.",
    }
    Http {
        group: Group::Observation,
        kind: Kind::Socket { has_off: true },
        default: Some("127.0.0.1:7071"),
        example: "0.0.0.0:7071",
        meaning: "Where it answers /metrics, /health/live, /health/ready and /status. There is no \
                  access control and nothing secret there.",
    }
    LogLevel {
        group: Group::Observation,
        kind: Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
        default: Some("info"),
        example: "debug",
        meaning: "What is logged: this and everything graver. Of libraries nothing below warn is, \
                  before trace.",
    }
    LogFormat {
        group: Group::Observation,
        kind: Kind::Choice(&["auto", "text", "json"]),
        default: Some("auto"),
        example: "json",
        meaning: "How log lines look, on standard error. With auto, text on a terminal and JSON \
                  elsewhere.",
    }
    AuditFile {
        group: Group::Observation,
        kind: Kind::Path,
        default: None,
        example: "/var/log/tyr/audit.log",
        meaning: "Who was refused, and what administrators did, also goes to this file, a JSON \
                  object a line.",
    }
    AuditFileMax {
        group: Group::Observation,
        kind: Kind::Size { min: MIB, max: TIB },
        default: Some("64MiB"),
        example: "256MiB",
        meaning: "When the audit file has this size another one is begun.",
    }
    AuditFiles {
        group: Group::Observation,
        kind: Kind::Count { min: 1, max: 1000 },
        default: Some("8"),
        example: "30",
        meaning: "How many audit files are kept, the one being written among them.",
    }
    TraceEndpoint {
        group: Group::Observation,
        kind: Kind::Collector,
        default: None,
        example: "http://127.0.0.1:4318",
        meaning: "Where a collector of OpenTelemetry takes traces, by OTLP over HTTP as JSON, \
                  at /v1/traces below this. Without one nothing is traced.",
    }
    TraceRatio {
        group: Group::Observation,
        kind: Kind::Number { min: 0.0, max: 1.0 },
        default: Some("0.01"),
        example: "0.1",
        meaning: "The part of all transactions that is traced; the same at all nodes, for each \
                  chooses by itself.",
    }
}
