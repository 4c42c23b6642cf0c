//! What a node counts.

use tyr_server::NodeStatistics;
use tyr_server::quota::QuotaReport;

use super::Reading::{Count, Counts, Level, Levels, Times as Took};
use super::{Metric, labelled, metric};

fn by_kind(counts: &std::collections::BTreeMap<&'static str, u64>) -> Vec<(String, u64)> {
    counts.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
}

fn by_keyspace(
    statistics: &NodeStatistics,
    read: fn(&QuotaReport) -> Option<u64>,
) -> Vec<(String, f64)> {
    let of = |quota: &QuotaReport| Some((quota.keyspace.clone(), read(quota)? as f64));
    statistics.quotas.iter().filter_map(of).collect()
}

/// The metrics of a node.
pub static METRICS: [Metric<NodeStatistics>; 72] = [
    // Does it serve?
    metric("tyr_ready", "1 while the node serves, else 0.", Level(|it| f64::from(it.is_ready))),
    metric(
        "tyr_lease_left_seconds",
        "How long the node's lease lasts yet; 0 without one.",
        Level(|it| it.lease_left.as_secs_f64()),
    ),
    metric("tyr_map_epoch", "The epoch of its cluster map.", Level(|it| f64::from(it.epoch))),
    metric(
        "tyr_feature_level",
        "The feature level that its cluster uses.",
        Level(|it| f64::from(it.level)),
    ),
    metric("tyr_uptime_seconds", "How long the node has run.", Level(|it| it.uptime.as_secs_f64())),
    metric("tyr_starts", "How often the node was started in its life.", Count(|it| it.starts)),
    // What clients get.
    metric(
        "tyr_commits",
        "Transactions answered as committed, by this node as the head of their chains.",
        Count(|it| it.answers.commits),
    ),
    metric(
        "tyr_aborts",
        "Transactions answered as aborted, by kind of error.",
        Counts("kind", |it| by_kind(&it.answers.aborts)),
    ),
    metric(
        "tyr_commit_seconds",
        "From when a transaction came to the head of its chain to its answer, when committed.",
        Took(|it| &it.answers.commit_times),
    ),
    metric("tyr_reads", "Reads of clients answered.", Count(|it| it.answers.reads)),
    metric("tyr_read_bytes", "Bytes in those answers.", Count(|it| it.answers.read_bytes)),
    metric(
        "tyr_read_refusals",
        "Reads of clients not answered, by kind of error.",
        Counts("kind", |it| by_kind(&it.answers.reads_refused)),
    ),
    metric(
        "tyr_read_seconds",
        "From when a read came to its answer.",
        Took(|it| &it.answers.read_times),
    ),
    metric(
        "tyr_sent_elsewhere",
        "Questions that another node has to answer, or that came while there was no lease.",
        Count(|it| it.answers.elsewhere),
    ),
    metric(
        "tyr_refusals",
        "Messages refused: without the right (permission), without room (overload), in another \
         sender's name (forged), or beyond a keyspace's quota (quota).",
        Counts("reason", |it| {
            labelled(&[
                ("permission", it.refused_permission),
                ("overload", it.refused_overload),
                ("forged", it.refused_forged),
                ("quota", it.refused_quota),
            ])
        }),
    ),
    // Quotas.
    metric(
        "tyr_quota_used_bytes",
        "Bytes that a keyspace with a quota has in the whole cluster, as far as heard here.",
        Levels("keyspace", |it| by_keyspace(it, |quota| Some(quota.bytes))),
    ),
    metric(
        "tyr_quota_bytes",
        "Bytes that a keyspace may have.",
        Levels("keyspace", |it| by_keyspace(it, |quota| quota.quota.bytes)),
    ),
    metric(
        "tyr_quota_used_blobs",
        "Blobs that a keyspace with a quota has in the whole cluster, as far as heard here.",
        Levels("keyspace", |it| by_keyspace(it, |quota| Some(quota.blobs))),
    ),
    metric(
        "tyr_quota_blobs",
        "Blobs that a keyspace may have.",
        Levels("keyspace", |it| by_keyspace(it, |quota| quota.quota.blobs)),
    ),
    metric(
        "tyr_quota_operations",
        "Operations a second that a keyspace may have in the whole cluster.",
        Levels("keyspace", |it| by_keyspace(it, |quota| quota.quota.operations)),
    ),
    // What it has to do.
    metric(
        "tyr_transactions_in_flight",
        "Transactions known to the node and not finished with.",
        Level(|it| it.in_flight as f64),
    ),
    metric("tyr_reads_waiting", "Reads that wait here.", Level(|it| it.waiting_reads as f64)),
    metric(
        "tyr_events_waiting",
        "Messages and other events that are not worked off yet.",
        Level(|it| it.waiting_events as f64),
    ),
    metric("tyr_events", "Events worked off.", Count(|it| it.events)),
    metric("tyr_rounds", "Times that events were worked off together.", Count(|it| it.rounds)),
    // Log and store.
    metric("tyr_log_records", "Records given to the log in its life.", Count(|it| it.log_records)),
    metric(
        "tyr_log_bytes",
        "Bytes of log that a restart would read.",
        Level(|it| it.log_bytes as f64),
    ),
    metric(
        "tyr_log_sync_seconds",
        "How long writing and syncing the log took, each time.",
        Took(|it| &it.syncs),
    ),
    metric("tyr_folds", "Folds of recent operations into the base.", Count(|it| it.folds)),
    metric(
        "tyr_fold_failing",
        "1 while the last fold failed, else 0.",
        Level(|it| f64::from(it.is_fold_failing)),
    ),
    metric(
        "tyr_disk_bytes",
        "Bytes on disk, by kind.",
        Levels("kind", |it| {
            labelled(&[
                ("log", it.log_bytes as f64),
                ("index", it.index_bytes as f64),
                ("extents", it.extent_bytes as f64),
            ])
        }),
    ),
    metric(
        "tyr_disk_size_bytes",
        "Bytes of the file system that the node's folder is on.",
        Level(|it| it.disk.size_bytes as f64),
    ),
    metric(
        "tyr_disk_free_bytes",
        "Those of them that are free; below 192 MiB the node refuses writes.",
        Level(|it| it.disk.free_bytes as f64),
    ),
    metric(
        "tyr_memory_bytes",
        "Bytes in recent operations and cache.",
        Level(|it| it.memory_bytes as f64),
    ),
    metric(
        "tyr_memory_dirty_bytes",
        "Those of them that are only in the log besides.",
        Level(|it| it.dirty_bytes as f64),
    ),
    metric(
        "tyr_staged_pieces",
        "Pieces that were uploaded ahead of their transactions and are not used yet.",
        Level(|it| it.staged.0 as f64),
    ),
    metric("tyr_staged_bytes", "Bytes of those pieces.", Level(|it| it.staged.1 as f64)),
    metric(
        "tyr_key_leases_held",
        "Leases of keys, locks among them, that the node gave and that are not over.",
        Level(|it| it.key_leases.0 as f64),
    ),
    metric(
        "tyr_key_leases_waiting",
        "Clients that wait there for a lease that others are in the way of.",
        Level(|it| it.key_leases.1 as f64),
    ),
    metric(
        "tyr_method_calls",
        "Calls of methods of objects that the node has run for others.",
        Count(|it| it.calls.0),
    ),
    metric(
        "tyr_method_calls_running",
        "Those of them that wait or run now.",
        Level(|it| it.calls.1 as f64),
    ),
    metric(
        "tyr_versions_held",
        "Older versions held for readers.",
        Level(|it| it.versions_held as f64),
    ),
    // Movement of data.
    metric(
        "tyr_movement_missing_chunks",
        "Chunks that the node is to get and has not.",
        Level(|it| it.movement.missing as f64),
    ),
    metric(
        "tyr_movement_unlisted_nodes",
        "Nodes that have not told all that the node is to get.",
        Level(|it| it.movement.unlisted as f64),
    ),
    metric(
        "tyr_movement_bytes",
        "Bytes copied here since the start.",
        Count(|it| it.movement.bytes),
    ),
    metric(
        "tyr_movement_remaining_seconds",
        "How long what is missing takes, as fast as it went so far; 0 when nothing is missing.",
        Level(|it| it.movement.remaining_s.unwrap_or(0.0)),
    ),
    metric(
        "tyr_movement_buffered_bytes",
        "Bytes of memory that wait for the chunks that they belong to.",
        Level(|it| it.expected_bytes as f64),
    ),
    // Comparing replicas.
    metric(
        "tyr_scrub_rounds",
        "Rounds of comparing all chunks that the node is the authority of with their replicas.",
        Count(|it| it.scrub.rounds),
    ),
    metric("tyr_scrub_chunks", "Chunks compared.", Count(|it| it.scrub.chunks)),
    metric(
        "tyr_scrub_bytes",
        "Bytes of them, each counted once for all its replicas.",
        Count(|it| it.scrub.bytes),
    ),
    metric(
        "tyr_scrub_differing",
        "Stretches of up to 64 KiB found that differ, or that a replica could not read.",
        Count(|it| it.scrub.differing),
    ),
    metric(
        "tyr_scrub_repaired",
        "Those of them that are the same again, and can be read.",
        Count(|it| it.scrub.repaired),
    ),
    metric(
        "tyr_scrub_unrepaired",
        "Those that could not be repaired, each time; the log says which and why.",
        Count(|it| it.scrub.unrepaired),
    ),
    // Network.
    metric(
        "tyr_connections",
        "Connections with nodes, with clients, and those that have not said who they are.",
        Levels("with", |it| {
            let network = &it.network;
            labelled(&[
                ("nodes", network.nodes as f64),
                ("clients", network.clients as f64),
                ("unknown", network.waiting as f64),
            ])
        }),
    ),
    metric(
        "tyr_network_messages",
        "Messages that came in and went out.",
        Counts("direction", |it| {
            let network = &it.network;
            labelled(&[("in", network.messages_received), ("out", network.messages_sent)])
        }),
    ),
    metric(
        "tyr_network_bytes",
        "Bytes that came in and went out, without TLS.",
        Counts("direction", |it| {
            labelled(&[("in", it.network.bytes_received), ("out", it.network.bytes_sent)])
        }),
    ),
    metric(
        "tyr_network_calls",
        "System calls that read and wrote them.",
        Counts("direction", |it| labelled(&[("in", it.network.reads), ("out", it.network.writes)])),
    ),
    metric(
        "tyr_network_dropped",
        "Messages dropped: receiver not connected, too much waiting for it, too long, or of a \
         higher feature level than it speaks.",
        Counts("reason", |it| {
            labelled(&[
                ("unconnected", it.network.dropped_unconnected),
                ("full", it.network.dropped_full),
                ("too_long", it.network.dropped_too_long),
                ("too_new", it.network.dropped_too_new),
            ])
        }),
    ),
    metric(
        "tyr_network_not_understood",
        "Messages that came in and are of a later release than the node's program.",
        Count(|it| it.network.not_understood),
    ),
    metric(
        "tyr_connections_opened",
        "Connections taken from callers and made to others.",
        Counts("side", |it| {
            labelled(&[("accepted", it.network.accepted), ("connected", it.network.connected)])
        }),
    ),
    metric(
        "tyr_connections_broken",
        "Connections ended because the other side broke the protocol.",
        Count(|it| it.network.broken),
    ),
    metric(
        "tyr_connections_refused",
        "Callers refused, by reason.",
        Counts("reason", |it| {
            let refused = it.network.refused.iter();
            refused.map(|(reason, count)| (reason.name().to_owned(), *count)).collect()
        }),
    ),
    metric(
        "tyr_node_connected",
        "1 while the node that this one connects to is connected, else 0, by its number.",
        Levels("node", |it| {
            let targets = it.network.targets.iter();
            let connected = targets
                .map(|(node, status)| (node.0.to_string(), f64::from(status.connected.is_some())));
            connected.collect()
        }),
    ),
    // Gossip and monitors.
    metric(
        "tyr_monitor_leading",
        "1 while the node leads the monitors, else 0.",
        Level(|it| f64::from(it.is_leading)),
    ),
    metric(
        "tyr_gossip_phi",
        "How sure one may be that a node is gone, by its number; 8 is very sure.",
        Levels("node", |it| {
            it.peers.iter().map(|peer| (peer.node.0.to_string(), peer.phi)).collect()
        }),
    ),
    metric(
        "tyr_gossip_round_trip_seconds",
        "How long a node's answers to probes take, by its number.",
        Levels("node", |it| {
            let known = it.peers.iter().filter_map(|peer| Some((peer, peer.round_trip_us?)));
            known.map(|(peer, us)| (peer.node.0.to_string(), us as f64 / 1e6)).collect()
        }),
    ),
    metric(
        "tyr_gossip_datagrams",
        "Datagrams taken in, sent, and not sent because the system or an address was missing.",
        Counts("direction", |it| {
            let gossip = &it.gossip;
            labelled(&[("in", gossip.received), ("out", gossip.sent), ("unsent", gossip.unsent)])
        }),
    ),
    metric(
        "tyr_gossip_rejected",
        "Datagrams dropped, by reason.",
        Counts("reason", |it| {
            let rejected = it.gossip.rejected.iter();
            rejected.map(|(reason, count)| (reason.name().to_owned(), *count)).collect()
        }),
    ),
    metric(
        "tyr_pauses",
        "How often the process was kept from running for so long that gossip held its clock.",
        Count(|it| it.gossip.pauses),
    ),
    // Traces.
    metric(
        "tyr_trace_spans",
        "Spans of traced transactions that the collector took.",
        Count(|it| it.traces.exported),
    ),
    metric(
        "tyr_trace_dropped",
        "Spans dropped: too many open (open), too many waiting for the collector (queue), refused \
         by it (refused), or not sent when the node stopped (stop).",
        Counts("reason", |it| {
            labelled(&[
                ("open", it.traces.crowded),
                ("queue", it.traces.overflowed),
                ("refused", it.traces.refused),
                ("stop", it.traces.unsent),
            ])
        }),
    ),
    metric(
        "tyr_trace_failing",
        "1 while the collector does not take traces, else 0.",
        Level(|it| f64::from(it.traces.is_failing)),
    ),
];
