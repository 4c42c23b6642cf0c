//! Kept snapshots of a cluster. They are in the map, which the monitors change (V7).

use tyr_protocol::level::LEVEL_KEEPING;
use tyr_protocol::map::{Change, ClusterMap, MapKept, MapKeyspace};
use tyr_types::{Error, ErrorKind, KeptName, KeptSnapshot, KeyspaceId, Result, Timestamp};

use super::Client;
use tyr_runtime::clock;

impl Client {
    /// Keeps everything as it is now: all that was acknowledged before is in it, and nothing that
    /// anybody begins after this has answered.
    ///
    /// # Errors
    /// `AlreadyExists`; `Unavailable` when there are too many, some node is of a release that
    /// keeps none, or monitors or nodes do not answer: then nothing is kept, if they hear of it.
    pub async fn keep(&self, name: &KeptName) -> Result<KeptSnapshot> {
        self.newest().await?.0.check_level(LEVEL_KEEPING)?;
        let change = Change::Keep { name: name.clone(), day_us: clock::now_us() };
        self.control.propose(change).await?;
        let kept = self.newest().await?.0.kept_named(name)?;
        // Every node that commits anything has said by then that it goes by this map, or is told
        // with its next lease.
        match self.moment().answer().await {
            Ok(_) => Ok(kept.shown(name, 0)),
            Err(error) => {
                // Nobody knows whether something of later would be in it.
                let _ = self.control.propose(Change::DropKept(name.clone())).await;
                Err(Error::unavailable(format!(
                    "\"{name}\" is not kept, since not all nodes said that they know of it \
                     ({error}); try again"
                )))
            }
        }
    }

    /// All kept snapshots, oldest first, each with the bytes that the nodes that answer hold for it
    /// on their disks, all replicas together, and with why it cannot be read, if it is so.
    ///
    /// # Errors
    /// `Unavailable` when the monitors do not answer.
    pub async fn kept(&self) -> Result<Vec<KeptSnapshot>> {
        let (map, _, told) = self.ask_nodes().await?;
        let counts = || told.values().flatten().flat_map(|node| &node.kept);
        Ok(shown(&map, |name| {
            let its = counts().filter(|count| count.name == name.as_str());
            its.fold(0, |sum: u64, count| sum.saturating_add(count.bytes))
        }))
    }

    /// The moment of a kept snapshot.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `Unavailable` when the monitors do not answer.
    pub async fn kept_moment(&self, name: &KeptName) -> Result<Timestamp> {
        self.newest().await?.0.kept_named(name).map(|kept| kept.at())
    }

    /// Drops a kept snapshot: it can be read no more. What only it had nodes give back bit by bit.
    ///
    /// # Errors
    /// `NotFound` when there is none of this name; `Unavailable` when the monitors do not answer.
    pub async fn drop_kept(&self, name: &KeptName) -> Result<()> {
        self.control.propose(Change::DropKept(name.clone())).await?;
        // From now on this client does not read it either.
        self.newest().await.map(drop)
    }

    /// Whether a kept moment can be read, as far as this client has heard.
    ///
    /// # Errors
    /// `NotFound` when it was dropped.
    pub fn check_kept(&self, at: Timestamp) -> Result<()> {
        match self.map().is_kept(at) {
            true => Ok(()),
            false => Err(Error::not_found(DROPPED)),
        }
    }

    /// Why a read at a kept moment failed.
    pub async fn unread_kept(&self, at: Timestamp, error: Error) -> Error {
        match error.kind() {
            ErrorKind::SnapshotTooOld => match self.newest().await {
                Ok((map, _)) if !map.is_kept(at) => Error::not_found(DROPPED),
                Ok(_) | Err(_) => Error::unavailable(format!(
                    "this part of the kept snapshot cannot be read: {}",
                    error.message()
                )),
            },
            _ => error,
        }
    }
}

/// The kept snapshots of a map, oldest first; what is held for each `held` says.
fn shown(map: &ClusterMap, held: impl Fn(&KeptName) -> u64) -> Vec<KeptSnapshot> {
    let of = |(name, kept): (&KeptName, &MapKept)| KeptSnapshot {
        unreadable: obstacle(map, kept.at()),
        ..kept.shown(name, held(name))
    };
    let mut all: Vec<KeptSnapshot> = map.kept.iter().map(of).collect();
    all.sort_by_key(|kept| kept.at.epoch);
    all
}

/// Why what was there at a kept moment cannot be read any more: all of it, or some keyspaces.
fn obstacle(map: &ClusterMap, at: Timestamp) -> Option<String> {
    let open = || map.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_dropped);
    let why = |(id, keyspace): (&KeyspaceId, &MapKeyspace)| {
        Some((map.kept_obstacle(*id, at)?, keyspace.name.to_string()))
    };
    let found: Vec<_> = open().filter_map(why).collect();
    let (first, _) = found.first()?;
    if found.len() == open().count() && found.iter().all(|(why, _)| why == first) {
        return Some((*first).to_owned());
    }
    let of = |(why, name): &(&str, String)| format!("keyspace {name}: {why}");
    Some(found.iter().map(of).collect::<Vec<_>>().join("; "))
}

const DROPPED: &str = "this kept snapshot was dropped, and can be read no more";

#[cfg(test)]
mod tests {
    use tyr_types::{KeyspaceConfig, NodeId};

    use super::*;

    fn kept(map: &ClusterMap, name: &str) -> ClusterMap {
        map.changed(&Change::Keep { name: KeptName::new(name).unwrap(), day_us: 7 }).unwrap()
    }

    fn why(map: &ClusterMap) -> Vec<(String, Option<String>)> {
        let all = shown(map, |_| 5).into_iter();
        all.map(|it| (it.name.to_string(), it.unreadable)).collect()
    }

    #[test]
    fn what_cannot_be_read_any_more_is_shown_with_why() {
        let config = |replication| KeyspaceConfig { replication, ..KeyspaceConfig::default() };
        let map = ClusterMap::of(3, &[config(1), config(3)]);
        let monday = kept(&map, "monday");
        assert_eq!(why(&monday), [("monday".to_owned(), None)]);
        let lost = [Change::Down(NodeId(2)), Change::AcceptLoss(KeyspaceId(1))];
        let lost = lost.iter().fold(monday, |map, change| map.changed(change).unwrap());
        let both = kept(&lost, "a-day-later");
        let told = why(&both);
        assert_eq!((&*told[0].0, &*told[1].0), ("monday", "a-day-later"), "the oldest first");
        let lost = told[0].1.as_deref().unwrap();
        assert!(lost.starts_with("keyspace") && lost.contains("only replica"), "{lost}");
        assert_eq!(told[1].1, None);
        assert_eq!(shown(&both, |_| 5)[0].bytes, 5, "it is held all the same");
    }
}
