//! How a cluster is, in one word: what the map, the monitors and the nodes say, judged.
//!
//! ```text
//!   healthy      all that is configured is there
//!   degraded     everything is served, and something is missing
//!   unavailable  something is not served: a part of a keyspace, or every change of the map
//! ```
//!
//! Of replicas it knows what the map tells: which nodes are down, and what lies there. How busy a
//! node is says nothing of its health: the first node is head of most chains in a small cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tyr::Error;
use tyr_control::status::Status;
use tyr_control::{ClusterMap, MapKeyspace, NodeState};
use tyr_server::{NodeId, NodeReport, ROOM_MIN};

use super::loss;
use super::reports::{Reports, Told};
use super::status::Row;
use crate::data::size_text;
use crate::failure::Failure;

/// The word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// All that is configured is there.
    Healthy,
    /// Everything is served, and something is missing.
    Degraded,
    /// Something is not served.
    Unavailable,
}

impl Word {
    /// The word itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unavailable => "unavailable",
        }
    }
}

/// How a cluster is, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Health {
    /// What is wrong, each as grave as it is.
    findings: Vec<(Word, String)>,
}

impl Health {
    /// Judges.
    pub fn of(map: &ClusterMap, status: &Status, rows: &[Row], reports: &Reports) -> Self {
        let mut findings = Vec::new();
        // One that has lost the others may take itself for the leader, and is answered by nobody.
        if status.leadership.is_none() {
            let text = "no monitor leads with a majority: maps and leases stand still".to_owned();
            findings.push((Word::Unavailable, text));
        }
        findings.extend(rows.iter().filter_map(|row| of_node(row, reports.get(&row.node))));
        findings.extend(thin(map).iter().map(Thin::finding));
        for (keyspace, nodes) in loss::waiting(map) {
            findings.push((Word::Unavailable, loss::warning(&keyspace, &nodes)));
        }
        Self { findings }
    }

    /// The word for it.
    pub fn word(&self) -> Word {
        self.findings.iter().map(|(word, _)| *word).max().unwrap_or(Word::Healthy)
    }

    /// What is wrong, a line each.
    pub fn reasons(&self) -> impl Iterator<Item = &str> {
        self.findings.iter().map(|(_, text)| &text[..])
    }

    /// How a command that shows it ends: with 0, 1 or 6.
    ///
    /// # Errors
    /// `Differences` when it is degraded, `Unavailable` when it is that.
    pub fn outcome(&self) -> Result<(), Failure> {
        let count = self.findings.len();
        match self.word() {
            Word::Healthy => Ok(()),
            Word::Degraded => {
                Err(Failure::Differences(format!("the cluster is degraded ({count} findings)")))
            }
            Word::Unavailable => {
                let text = format!("part of the cluster is unavailable ({count} findings)");
                Err(Error::unavailable(text).into())
            }
        }
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        let findings = self.findings.iter();
        let reasons = findings.map(|(word, text)| json!({"word": word.name(), "text": text}));
        json!({"word": self.word().name(), "reasons": reasons.collect::<Vec<_>>()})
    }
}

/// What is wrong with a node, if it is to take part.
fn of_node(row: &Row, told: Option<&Told>) -> Option<(Word, String)> {
    if row.membership == "out" && !row.is_monitor {
        return None;
    }
    let what = match told {
        Some(Told::Nothing(why)) => format!("does not answer: {why}"),
        // Who joins is not ready before it has what it is to hold.
        Some(Told::Report(report))
            if !report.is_ready && matches!(row.membership, "in" | "leaving") =>
        {
            format!("is not ready: {}", report.reasons.join("; "))
        }
        Some(Told::Report(report)) => full(report)?,
        Some(Told::Older) | None if row.state == "up" || row.membership == "out" => return None,
        Some(Told::Older) | None => format!("is {}", row.state),
    };
    Some((Word::Degraded, format!("node {} {what}", row.node)))
}

/// What is said of a node whose disk has no room.
fn full(report: &NodeReport) -> Option<String> {
    let disk = report.disk.filter(|disk| disk.room_bytes < ROOM_MIN)?;
    Some(format!("has {} left on its disk, and refuses writes", size_text(disk.free_bytes)))
}

/// A keyspace of which something has fewer live replicas than it was created with.
#[derive(Clone, Debug, PartialEq)]
pub struct Thin {
    /// Its name.
    pub keyspace: String,
    /// How many replicas it was created with.
    pub replication: u8,
    /// How many are live where fewest are.
    pub live: usize,
    /// How many have to be live for a write.
    pub needed: u8,
    /// How much of it has fewer live replicas than it was created with, in hundredths.
    pub percent: u64,
    /// How much of it takes no writes, in hundredths.
    pub closed_percent: u64,
    /// The nodes that are not up, and hold some of it.
    pub nodes: Vec<u16>,
}

impl Thin {
    fn finding(&self) -> (Word, String) {
        let Self { keyspace, replication, live, needed, percent, closed_percent, nodes } = self;
        let numbers: Vec<String> = nodes.iter().map(u16::to_string).collect();
        let why = match &numbers[..] {
            [] => "the cluster has no more nodes".to_owned(),
            [only] => format!("node {only} is not up"),
            several => format!("nodes {} are not up", several.join(", ")),
        };
        let part = |percent: &u64| match percent {
            100 => "all of it".to_owned(),
            0 => "less than 1 % of it".to_owned(),
            some => format!("{some} % of it"),
        };
        let missing = format!(
            "keyspace {keyspace}: {} has fewer live replicas than {replication}, at least {live}; \
             {why}",
            part(percent)
        );
        match live < &usize::from(*needed) {
            false => (Word::Degraded, missing),
            true => {
                let closed = format!(
                    "{missing}; {} takes no writes, for which {needed} have to be live",
                    part(closed_percent)
                );
                (Word::Unavailable, closed)
            }
        }
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        json!({
            "keyspace": self.keyspace,
            "replication": self.replication,
            "live": self.live,
            "needed": self.needed,
            "percent": self.percent,
            "closed_percent": self.closed_percent,
            "nodes": self.nodes,
        })
    }
}

/// Where one looks at a ring, and how much of it is like there.
struct Stretch {
    place: u64,
    len: u64,
}

/// The ring cut where its replicas change.
fn stretches(map: &ClusterMap) -> Vec<Stretch> {
    let tokens = map.ring.tokens();
    // What lies above the last token has the same replicas as what lies below the first.
    let mut before = tokens.last().copied().unwrap_or_default();
    let mut cut = Vec::with_capacity(tokens.len());
    for token in tokens {
        cut.push(Stretch { place: *token, len: token.wrapping_sub(before) });
        before = *token;
    }
    cut
}

/// The keyspaces that have fewer live replicas than they were created with, as the map tells.
pub fn thin(map: &ClusterMap) -> Vec<Thin> {
    let stretches = stretches(map);
    let open = map.keyspaces.values().filter(|keyspace| !keyspace.is_dropped);
    open.filter_map(|keyspace| thinned(map, keyspace, &stretches)).collect()
}

fn thinned(map: &ClusterMap, keyspace: &MapKeyspace, stretches: &[Stretch]) -> Option<Thin> {
    let config = &keyspace.config;
    let replication = config.replication;
    // Where there are fewer nodes than replicas, all that there are is enough.
    let members = u8::try_from(map.ring.members().len()).unwrap_or(u8::MAX);
    let needed = config.live_replicas_needed().min(members);
    let is_up = |node: NodeId| map.nodes.get(&node).is_some_and(|it| it.state == NodeState::Up);
    let mut away = BTreeSet::new();
    // Of how much of the ring so many are live.
    let mut lens: BTreeMap<usize, u128> = BTreeMap::new();
    for stretch in stretches {
        let walked = map.ring.walk(stretch.place, usize::from(replication) + keyspace.lost.len());
        let holding = walked.iter().filter(|node| !keyspace.lost.contains_key(node));
        let mut live = 0;
        for node in holding.take(usize::from(replication)) {
            match is_up(*node) {
                true => live += 1,
                false => _ = away.insert(node.0),
            }
        }
        *lens.entry(live).or_default() += u128::from(stretch.len);
    }
    let all: u128 = lens.values().sum();
    let percent = |below: usize| {
        let len: u128 = lens.range(..below).map(|(_, len)| len).sum();
        (len * 100).checked_div(all).and_then(|it| u64::try_from(it).ok()).unwrap_or(100)
    };
    let live = *lens.keys().next()?;
    (live < usize::from(replication)).then(|| Thin {
        keyspace: keyspace.name.to_string(),
        replication,
        live,
        needed,
        percent: percent(usize::from(replication)),
        closed_percent: percent(usize::from(needed)),
        nodes: away.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use tyr::KeyspaceConfig;
    use tyr_control::Change;

    use super::*;

    fn of(replication: u8) -> KeyspaceConfig {
        KeyspaceConfig { replication, ..KeyspaceConfig::default() }
    }

    fn down(map: &ClusterMap, node: u16) -> ClusterMap {
        map.changed(&Change::Down(NodeId(node))).unwrap()
    }

    fn health(map: &ClusterMap) -> Health {
        let findings = thin(map).iter().map(Thin::finding).collect();
        Health { findings }
    }

    #[test]
    fn a_cluster_with_all_its_nodes_is_healthy_and_ends_well() {
        let health = health(&ClusterMap::of(4, &[of(3), of(1)]));
        assert_eq!((health.word(), health.reasons().count()), (Word::Healthy, 0));
        assert!(health.outcome().is_ok());
    }

    #[test]
    fn a_node_down_is_told_with_how_much_lies_there() {
        let map = down(&ClusterMap::of(4, &[of(3)]), 2);
        let thin = thin(&map);
        let [one] = &thin[..] else { panic!("there is one keyspace: {thin:?}") };
        assert_eq!((one.live, one.needed, one.closed_percent), (2, 2, 0));
        assert_eq!(one.nodes, [2]);
        // Three of four hold each chunk.
        assert!((60..90).contains(&one.percent), "{}", one.percent);
        let health = health(&map);
        assert_eq!(health.word(), Word::Degraded);
        assert_eq!(health.outcome().unwrap_err().exit_code(), 1);
        assert!(health.reasons().all(|reason| reason.contains("node 2 is not up")));
    }

    #[test]
    fn what_takes_no_writes_is_unavailable() {
        let map = down(&down(&ClusterMap::of(4, &[of(3)]), 2), 3);
        let health = health(&map);
        assert_eq!(health.word(), Word::Unavailable);
        assert_eq!(health.outcome().unwrap_err().exit_code(), 6);
        let reasons: Vec<&str> = health.reasons().collect();
        assert!(reasons[0].contains("takes no writes") && reasons[0].contains("nodes 2, 3"));
    }

    #[test]
    fn fewer_nodes_than_replicas_are_not_blamed_on_a_node() {
        let map = ClusterMap::of(2, &[of(3)]);
        let thin = thin(&map);
        assert_eq!((thin[0].live, thin[0].percent, thin[0].nodes.len()), (2, 100, 0));
        assert!(thin[0].finding().1.contains("no more nodes"));
    }
}
