//! From settings to what a node is started with: what fits together and what does not.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tyr_gossip::GossipConfig;
use tyr_net::access::Key;
use tyr_net::{NetworkConfig, OwnCertificate, TlsConfig};
use tyr_server::{
    Formation, Identity, InitialNode, LeaseConfig, NodeId, RETURNING_SILENT_US, ScrubConfig,
    ServerOptions,
};
use tyr_trace::TraceOptions;

use crate::configuration::{Configuration, Name};
use crate::logging::{AuditPlan, LogPlan};

/// Monitors among the nodes that form a cluster: three survive the loss of one, and more only make
/// every decision slower.
const MONITORS_AUTO: usize = 3;

/// Characters of a secret at least: below that it can be guessed.
const SECRET_LEN_MIN: usize = 32;

/// What a node is started with.
#[derive(Debug)]
pub struct Plan {
    /// The node.
    pub options: ServerOptions,
    /// Where it answers HTTP.
    pub http: Option<SocketAddr>,
    /// Its logs.
    pub log: LogPlan,
    /// What its operator should know, loudly.
    pub warnings: Vec<String>,
}

/// What is wrong, gathered so that all of it is said at once.
struct Review<'a> {
    settings: &'a Configuration,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Plan {
    /// The plan that these settings make.
    ///
    /// # Errors
    /// Everything that does not fit together, a line each.
    pub fn of(settings: &Configuration) -> Result<Self, Vec<String>> {
        let mut review = Review { settings, errors: Vec::new(), warnings: Vec::new() };
        let options = review.options();
        let log = review.log();
        let http = settings.socket(Name::Http);
        let Review { errors, warnings, .. } = review;
        match options {
            Some(options) if errors.is_empty() => Ok(Self { options, http, log, warnings }),
            Some(_) | None => Err(errors),
        }
    }
}

impl Review<'_> {
    fn complain(&mut self, name: Name, what: &str) {
        self.complain_by(name, &[], what);
    }

    /// The same of a setting beside others: of what is wrong by itself nothing more is said.
    fn complain_by(&mut self, name: Name, others: &[Name], what: &str) {
        let is_known = |name| self.settings.is_wrong(name);
        if !is_known(name) && !others.iter().any(|other| is_known(*other)) {
            self.errors.push(self.settings.complaint(name, what));
        }
    }

    fn options(&mut self) -> Option<ServerOptions> {
        let settings = self.settings;
        let folder = settings.path(Name::Folder);
        if folder.is_none() {
            self.complain(Name::Folder, "is needed");
        }
        let listen = settings.socket(Name::Listen).expect("listen has a default, and is never off");
        let secret = self.secret();
        let network = self.network();
        let lease = self.lease();
        let gossip = self.gossip();
        let identity = folder.as_deref().and_then(|folder| self.identity(folder));
        let number = settings.count(Name::Node).and_then(|number| u16::try_from(number).ok());
        let node = number.map(NodeId).or_else(|| identity.as_ref().and_then(Identity::node));
        let formation = self.formation(node, identity.is_some());
        let advertise = self.advertise(node, listen);
        let mut options = ServerOptions::new(folder?, listen);
        options.node = node;
        options.formation = formation;
        options.advertise = advertise;
        options.http_address = self.http_address(&options.advertise);
        options.is_monitor = self.is_monitor(&options);
        options.weight = small(settings.count(Name::Weight));
        options.domain = settings.count(Name::Domain).map(|domain| small(Some(domain)));
        options.secret = secret;
        options.cache_bytes = settings.count(Name::Cache).unwrap_or(options.cache_bytes);
        options.fold_log_bytes = settings.count(Name::FoldLog).unwrap_or(options.fold_log_bytes);
        options.kept_bytes_max =
            settings.count(Name::KeptBytesMax).unwrap_or(options.kept_bytes_max);
        options.copy_rate = settings.count(Name::CopyRate);
        options.snapshot_timeout = settings.span(Name::SnapshotTimeout);
        options.linger = settings.span(Name::Linger);
        options.scrub = ScrubConfig {
            rate: settings.count(Name::ScrubRate).unwrap_or(options.scrub.rate),
            every_us: micros(settings.span(Name::ScrubEvery)),
        };
        options.lease = Some(lease);
        let times = [Name::Heartbeat, Name::Election].map(|name| settings.span(name));
        options.heartbeat_and_election = Some(times.into());
        options.gossip = gossip;
        options.network = network;
        options.trace = settings.collector(Name::TraceEndpoint).map(|endpoint| TraceOptions {
            endpoint,
            ratio: settings.number(Name::TraceRatio).expect("the table gives it a default"),
        });
        Some(options)
    }

    /// Who was here before; a folder that cannot be read is the start's affair.
    fn identity(&mut self, folder: &Path) -> Option<Identity> {
        match Identity::read(folder) {
            Ok(identity) => identity.filter(|identity| identity.node().is_some()),
            Err(error) => {
                self.complain(Name::Folder, &format!("cannot be used: {error}"));
                None
            }
        }
    }

    fn secret(&mut self) -> Option<Key> {
        let is_insecure = self.settings.is_on(Name::Insecure);
        let Some(path) = self.settings.path(Name::SecretFile) else {
            match is_insecure {
                true => self.warnings.push(
                    "NOTHING IS CHECKED: whoever can connect to this node may read, change and \
                     destroy everything (insecure). Give all nodes a secret_file to change that."
                        .to_owned(),
                ),
                false => self.complain_by(
                    Name::SecretFile,
                    &[Name::Insecure],
                    "is needed, or insecure: either there is a secret that all nodes know, or \
                     nothing is checked",
                ),
            }
            return None;
        };
        if is_insecure {
            self.complain(Name::Insecure, "and secret_file exclude each other");
        }
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                self.complain(Name::SecretFile, &format!("cannot be read: {error}"));
                return None;
            }
        };
        if text.trim().len() < SECRET_LEN_MIN {
            let what = format!(
                "holds a secret of less than {SECRET_LEN_MIN} characters; `tyr secret FILE` draws \
                 one that nobody can guess"
            );
            self.complain(Name::SecretFile, &what);
        }
        if is_readable_by_others(&path) {
            let path = path.display();
            self.warnings.push(format!(
                "{path} holds the cluster's secret, and others can read it: chmod 600 {path}"
            ));
        }
        Some(Key::of(&text))
    }

    fn network(&mut self) -> NetworkConfig {
        let settings = self.settings;
        let names = [Name::TlsCertificate, Name::TlsKey, Name::TlsAuthorities];
        let files = names.map(|name| settings.path(name));
        let missing = names.into_iter().zip(&files).find(|(_, file)| file.is_none());
        let tls = match (files.clone(), missing) {
            ([Some(certificate), Some(key), Some(authorities)], _) => {
                for (name, file) in names.into_iter().zip([&certificate, &key, &authorities]) {
                    if let Err(error) = fs::File::open(file) {
                        self.complain(name, &format!("cannot be read: {error}"));
                    }
                }
                let domain = settings.name(Name::TlsDomain).unwrap_or_default();
                let own = Some(OwnCertificate { certificate, key });
                let may_callers_be_unnamed = !settings.is_on(Name::TlsClientCertificates);
                Some(TlsConfig { own, authorities, domain, may_callers_be_unnamed })
            }
            (files, Some((name, _))) if files.iter().any(Option::is_some) => {
                self.complain(name, "is needed: all three files for TLS are given, or none");
                None
            }
            ([_, _, _], _) => None,
        };
        let defaults = NetworkConfig::default();
        let count = |name| settings.count(name).and_then(|count| usize::try_from(count).ok());
        NetworkConfig {
            threads: count(Name::NetworkThreads).unwrap_or(defaults.threads),
            connections_max: count(Name::ConnectionsMax).unwrap_or(defaults.connections_max),
            client_outboxes_len_max: count(Name::ClientOutboxesMax)
                .unwrap_or(defaults.client_outboxes_len_max),
            greeting_timeout: settings.span(Name::GreetingTimeout),
            silence_timeout: settings.span(Name::SilenceTimeout),
            tls,
            ..defaults
        }
    }

    fn lease(&mut self) -> LeaseConfig {
        let [lease, down_after] =
            [Name::Lease, Name::DownAfter].map(|name| self.settings.span(name));
        let lease = LeaseConfig {
            duration_us: micros(lease),
            down_after_us: micros(down_after),
            returning_down_after_us: RETURNING_SILENT_US.max(micros(down_after)),
            remove_after_us: self.settings.time(Name::RemoveAfter).flatten().map(micros),
        };
        if lease.down_after_us <= lease.counted_us() {
            let what = format!(
                "is too short: silent nodes are waited for longer than their leases of {} ms",
                lease.counted_us() / 1000
            );
            self.complain_by(Name::DownAfter, &[Name::Lease], &what);
        }
        if lease.remove_after_us.is_some_and(|remove| remove < lease.down_after_us) {
            let what = "is too short: it counts from down_after on";
            self.complain_by(Name::RemoveAfter, &[Name::DownAfter], what);
        }
        let [heartbeat, election] =
            [Name::Heartbeat, Name::Election].map(|name| self.settings.span(name));
        if election < heartbeat * 4 {
            let what = "is too short: it is at least four times heartbeat";
            self.complain_by(Name::Election, &[Name::Heartbeat], what);
        }
        lease
    }

    fn gossip(&mut self) -> GossipConfig {
        let names = [Name::GossipProbe, Name::GossipSuspicionMin, Name::GossipSuspicionMax];
        let [probe, min, max] = names.map(|name| self.settings.span(name));
        let rumour = self.settings.span(Name::GossipRumour);
        if min < probe {
            let what = "is too short: it is at least gossip_probe";
            self.complain_by(Name::GossipSuspicionMin, &[Name::GossipProbe], what);
        }
        if max < min {
            let what = "is below gossip_suspicion_min";
            self.complain_by(Name::GossipSuspicionMax, &[Name::GossipSuspicionMin], what);
        }
        if rumour < probe {
            let what = "is too short: it is at least gossip_probe";
            self.complain_by(Name::GossipRumour, &[Name::GossipProbe], what);
        }
        let defaults = GossipConfig::default();
        GossipConfig {
            probe_interval_ms: millis(probe),
            suspicion_min_ms: millis(min),
            suspicion_max_ms: millis(max),
            phi_threshold: self.settings.number(Name::GossipPhi).unwrap_or(defaults.phi_threshold),
            rumour_interval_ms: millis(rumour),
        }
    }

    fn formation(&mut self, node: Option<NodeId>, is_known: bool) -> Formation {
        let (nodes, join) = (self.settings.nodes(Name::Nodes), self.settings.places(Name::Join));
        match (nodes.is_empty(), join.is_empty()) {
            (false, false) => {
                self.complain(Name::Join, "and nodes exclude each other");
                Formation::Known
            }
            (true, false) => Formation::Join(join),
            (false, true) => {
                match node {
                    Some(node) if nodes.contains_key(&node.0) => {}
                    Some(node) => {
                        let what = format!("is {}, which is not among nodes", node.0);
                        self.complain(Name::Node, &what);
                    }
                    None => {
                        let what = "is needed: which one of nodes it is";
                        self.complain_by(Name::Node, &[Name::Folder], what);
                    }
                }
                Formation::Initial(self.initial(&nodes, node))
            }
            (true, true) => {
                if !is_known {
                    self.complain_by(
                        Name::Nodes,
                        &[Name::Join, Name::Folder],
                        "or join is needed: its folder does not know a cluster yet",
                    );
                }
                Formation::Known
            }
        }
    }

    /// The nodes that form the cluster. Each says for itself whether it is a monitor; of the
    /// others what auto means is assumed, and they correct it when they are there.
    fn initial(
        &self,
        nodes: &BTreeMap<u16, Vec<String>>,
        node: Option<NodeId>,
    ) -> Vec<InitialNode> {
        let monitors = if nodes.len() < MONITORS_AUTO { 1 } else { MONITORS_AUTO };
        let initial = |(place, (number, addresses)): (usize, (&u16, &Vec<String>))| InitialNode {
            node: NodeId(*number),
            address: addresses.first().cloned().unwrap_or_default(),
            is_monitor: match self.settings.choice(Name::Monitor) {
                Some("yes") if node == Some(NodeId(*number)) => true,
                Some("no") if node == Some(NodeId(*number)) => false,
                Some(_) | None => place < monitors,
            },
        };
        nodes.iter().enumerate().map(initial).collect()
    }

    fn is_monitor(&self, options: &ServerOptions) -> bool {
        let own = match &options.formation {
            Formation::Initial(nodes) => nodes.iter().find(|it| Some(it.node) == options.node),
            Formation::Join(_) | Formation::Known => None,
        };
        own.map_or(self.settings.choice(Name::Monitor) == Some("yes"), |own| own.is_monitor)
    }

    fn advertise(&mut self, node: Option<NodeId>, listen: SocketAddr) -> Vec<String> {
        let given = self.settings.places(Name::Advertise);
        if !given.is_empty() {
            return given;
        }
        let mut nodes = self.settings.nodes(Name::Nodes);
        if let Some(places) = node.and_then(|node| nodes.remove(&node.0)) {
            return places;
        }
        if listen.ip().is_unspecified() {
            let what = format!("is needed: others cannot reach a node at {listen}");
            self.complain_by(Name::Advertise, &[Name::Listen, Name::Nodes, Name::Node], &what);
        }
        vec![listen.to_string()]
    }

    /// Where others find its HTTP: at the host that it advertises, unless it listens on another.
    fn http_address(&self, advertise: &[String]) -> Option<String> {
        let http = self.settings.socket(Name::Http)?;
        if !http.ip().is_unspecified() {
            return Some(http.to_string());
        }
        let (host, _) = advertise.first()?.rsplit_once(':')?;
        Some(format!("{host}:{}", http.port()))
    }

    fn log(&mut self) -> LogPlan {
        let settings = self.settings;
        let audit = settings.path(Name::AuditFile).map(|path| AuditPlan {
            path,
            len_max: settings.count(Name::AuditFileMax).unwrap_or(u64::MAX),
            files: usize::try_from(settings.count(Name::AuditFiles).unwrap_or(1)).unwrap_or(1),
        });
        if let Some(audit) = &audit
            && let Err(error) = audit.try_open()
        {
            self.complain(Name::AuditFile, &format!("cannot be written: {error}"));
        }
        LogPlan {
            level: settings.choice(Name::LogLevel).unwrap_or("info"),
            format: settings.choice(Name::LogFormat).unwrap_or("auto"),
            audit,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A number whose range, in the table, is that of 32 bits.
fn small(number: Option<u64>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX)
}

fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{Layers, SettingFlags};

    fn plan(given: &[(&'static str, &str)]) -> Result<Plan, Vec<String>> {
        let flags = given.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        let layers = Layers { flags: SettingFlags(flags), ..Layers::default() };
        Plan::of(&layers.resolve().unwrap())
    }

    fn folder() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node").display().to_string();
        (folder, path)
    }

    #[test]
    fn the_smallest_plan_forms_a_cluster_and_says_that_nothing_is_checked() {
        let (_folder, path) = folder();
        let plan = plan(&[
            ("folder", &path),
            ("node", "1"),
            ("insecure", "true"),
            ("nodes", "0=a:7000,1=b:7000,2=c:7000,3=d:7000"),
            ("http", "0.0.0.0:7071"),
        ]);
        let plan = plan.unwrap();
        assert_eq!(plan.options.trace, None);
        assert_eq!(plan.options.advertise, ["b:7000"]);
        assert_eq!(plan.options.http_address.as_deref(), Some("b:7071"));
        assert!(plan.options.is_monitor && plan.options.secret.is_none());
        assert_eq!(plan.options.lease.unwrap().down_after_us, 2_500_000);
        assert!(plan.warnings[0].contains("NOTHING IS CHECKED"));
        let Formation::Initial(nodes) = &plan.options.formation else { panic!("it forms one") };
        let monitors = nodes.iter().filter(|node| node.is_monitor).map(|node| node.node.0);
        assert_eq!(monitors.collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn everything_that_does_not_fit_is_said_at_once() {
        let errors = plan(&[("lease", "5s"), ("tls_key", "/nowhere")]).unwrap_err();
        for name in ["folder is needed", "secret_file is needed", "tls_certificate", "down_after"] {
            assert!(errors.iter().any(|error| error.contains(name)), "{name} in {errors:?}");
        }
        let (_folder, path) = folder();
        let errors = plan(&[
            ("folder", &path),
            ("insecure", "true"),
            ("secret_file", "/nowhere/secret"),
            ("node", "7"),
            ("nodes", "0=a:7000"),
            ("join", "a:7000"),
            ("gossip_suspicion_min", "4s"),
            ("election", "500ms"),
        ]);
        let errors = errors.unwrap_err();
        for name in
            ["exclude each other", "cannot be read", "advertise", "below gossip", "four times"]
        {
            assert!(errors.iter().any(|error| error.contains(name)), "{name} in {errors:?}");
        }
    }

    #[test]
    fn a_node_that_is_not_among_those_that_form_the_cluster_is_refused() {
        let (_folder, path) = folder();
        let with = [("folder", path.as_str()), ("insecure", "true"), ("nodes", "0=a:7000")];
        let errors = plan(&[&with[..], &[("node", "7")]].concat()).unwrap_err();
        assert!(errors[0].contains("not among nodes"), "{errors:?}");
        let errors = plan(&with).unwrap_err();
        assert!(errors[0].contains("which one of nodes"), "{errors:?}");
        let errors = plan(&with[..2]).unwrap_err();
        assert!(errors.iter().any(|error| error.starts_with("nodes or join")), "{errors:?}");
    }

    #[test]
    fn traces_are_wanted_by_naming_a_collector() {
        let (_folder, path) = folder();
        let with = [("folder", path.as_str()), ("insecure", "true"), ("join", "a:7000")];
        let with = [&with[..], &[("listen", "127.0.0.1:7000")]].concat();
        let endpoint = ("trace_endpoint", "http://otel:4318");
        let trace = |given: &[(&'static str, &str)]| {
            plan(&[&with[..], given].concat()).unwrap().options.trace
        };
        assert_eq!(trace(&[("trace_ratio", "1")]), None);
        let one_of_a_hundred = trace(&[endpoint]).unwrap();
        assert_eq!(one_of_a_hundred.ratio, 0.01);
        assert_eq!(trace(&[endpoint, ("trace_ratio", "1")]).unwrap().ratio, 1.0);
    }

    #[test]
    fn a_short_secret_is_refused_and_an_open_file_warned_of() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, path) = folder();
        let secret = folder.path().join("secret");
        let given = [
            ("folder", path.as_str()),
            ("secret_file", secret.to_str().unwrap()),
            ("join", "a:7000"),
            ("listen", "127.0.0.1:7000"),
        ];
        fs::write(&secret, "short").unwrap();
        assert!(plan(&given).unwrap_err()[0].contains("less than 32"));
        fs::write(&secret, "0123456789abcdef0123456789abcdef\n").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(plan(&given).unwrap().warnings[0].contains("chmod 600"));
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let plan = plan(&given).unwrap();
        assert_eq!(plan.warnings, [""; 0]);
        assert_eq!(plan.options.advertise, ["127.0.0.1:7000"]);
        assert_eq!(plan.options.formation, Formation::Join(vec!["a:7000".to_owned()]));
    }
}
