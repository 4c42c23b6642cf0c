//! Who a node is, from one start to the next: a small file in its folder.
//!
//! The file is the first thing that a start writes: each start has a number of its own before
//! anybody hears of it (M4).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use tyr_types::{Error, NodeId, Result};

const FILE: &str = "node.json";
const NEW_FILE: &str = "node.json.new";

/// Other nodes' addresses that are remembered: enough to find some that are still there.
const PEERS_MAX: usize = 64;

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Drawn once, as hexadecimal digits: by it a node that asks twice to join is known again.
    drawn: String,
    /// The node's number, once it has one.
    node: Option<u16>,
    /// The cluster, as hexadecimal digits, once it is known.
    cluster: Option<String>,
    /// How often it was started, this time included.
    starts: u64,
    /// Where other nodes were when last heard of.
    peers: Vec<String>,
    /// The highest generation that the cluster may know of this folder; none where a program
    /// without generations wrote it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
}

impl Identity {
    /// Begins another start in a folder, which is made if there is none: counted, and on disk.
    ///
    /// # Errors
    /// `Corrupt` when what is there cannot be understood; `Unavailable` when the disk refuses.
    pub fn begin(folder: &Path) -> Result<Self> {
        let place = || folder.display().to_string();
        fs::create_dir_all(folder).map_err(|error| Error::io(place(), error))?;
        let mut identity = match Self::read(folder)? {
            Some(known) => known,
            None => Self::draw()?,
        };
        identity.starts += 1;
        identity.write(folder)?;
        assert!(identity.starts > 0, "this start is counted before anybody hears of it (M4)");
        Ok(identity)
    }

    /// The identity in a folder; `None` when no node was ever started there.
    ///
    /// # Errors
    /// As [`Identity::begin`].
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                Error::corrupt(format!("{} does not say who the node is", path.display()))
                    .with_source(error)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(path.display().to_string(), error)),
        }
    }

    fn draw() -> Result<Self> {
        let mut bytes = [0; 16];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| Error::unavailable("the system gives no random numbers"))?;
        let drawn = format!("{:032x}", u128::from_le_bytes(bytes));
        Ok(Self {
            drawn,
            node: None,
            cluster: None,
            starts: 0,
            peers: Vec::new(),
            generation: None,
        })
    }

    /// What was drawn.
    ///
    /// # Errors
    /// `Corrupt` when somebody changed it.
    pub fn drawn(&self) -> Result<u128> {
        u128::from_str_radix(&self.drawn, 16)
            .map_err(|error| Error::corrupt(format!("{FILE}: drawn")).with_source(error))
    }

    /// The node's number, once it has one.
    pub fn node(&self) -> Option<NodeId> {
        self.node.map(NodeId)
    }

    /// The cluster, once it is known.
    pub fn cluster(&self) -> Option<u128> {
        self.cluster.as_ref().and_then(|cluster| u128::from_str_radix(cluster, 16).ok())
    }

    /// How often it was started, this time included.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// The highest generation that the cluster may know of this folder.
    pub fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Raises the generation above what it was and what is known of it, durably.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn raise_generation(&mut self, folder: &Path, known: u64) -> Result<()> {
        self.generation = Some(self.generation.unwrap_or_default().max(known) + 1);
        self.write(folder)
    }

    /// Where other nodes were when last heard of.
    pub fn peers(&self) -> &[String] {
        &self.peers
    }

    /// Takes the number, durably; `None` leaves the one it has.
    ///
    /// # Errors
    /// `InvalidArgument` when it has another one, or none and gets none.
    pub fn settle(&mut self, folder: &Path, node: Option<NodeId>) -> Result<NodeId> {
        match (self.node, node) {
            (Some(known), Some(node)) if known != node.0 => Err(Error::invalid(format!(
                "{} belongs to node {known}, not to node {}; give each node a folder of its own",
                folder.display(),
                node.0
            ))),
            (Some(known), _) => Ok(NodeId(known)),
            (None, Some(node)) => {
                self.node = Some(node.0);
                self.write(folder)?;
                Ok(node)
            }
            (None, None) => Err(Error::invalid(format!(
                "there is no node in {} yet; say which number it is to have, or which cluster it \
                 is to join",
                folder.display()
            ))),
        }
    }

    /// Takes note of the cluster, durably.
    ///
    /// # Errors
    /// `InvalidArgument` when the node belongs to another one; `Unavailable` when the disk refuses.
    pub fn join(&mut self, folder: &Path, cluster: u128) -> Result<()> {
        match self.cluster() {
            Some(known) if known == cluster => Ok(()),
            Some(known) => Err(Error::invalid(format!(
                "{} belongs to cluster {known:032x}, and this one is {cluster:032x}; a node of \
                 another cluster begins with an empty folder",
                folder.display()
            ))),
            None => {
                self.cluster = Some(format!("{cluster:032x}"));
                assert_eq!(self.cluster(), Some(cluster), "what is written can be read");
                self.write(folder)
            }
        }
    }

    /// Remembers where other nodes are, durably.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses.
    pub fn remember(&mut self, folder: &Path, mut peers: Vec<String>) -> Result<()> {
        peers.truncate(PEERS_MAX);
        if self.peers == peers {
            return Ok(());
        }
        self.peers = peers;
        debug_assert!(self.peers.len() <= PEERS_MAX, "few are remembered");
        self.write(folder)
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).expect("numbers and texts are JSON");
        debug_assert_eq!(
            serde_json::from_slice::<Self>(&bytes).ok().as_ref(),
            Some(self),
            "a node whose file does not say who it is does not start again"
        );
        let new = folder.join(NEW_FILE);
        let write = || -> io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, folder.join(FILE))?;
            File::open(folder)?.sync_all()
        };
        write().map_err(|error| Error::io(new.display().to_string(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_types::ErrorKind;

    #[test]
    fn starts_are_counted_and_a_folder_is_one_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let mut first = Identity::begin(&path).unwrap();
        assert!(first.settle(&path, None).is_err());
        assert_eq!(first.settle(&path, Some(NodeId(3))).unwrap(), NodeId(3));
        let mut second = Identity::begin(&path).unwrap();
        assert_eq!((second.starts(), second.node()), (2, Some(NodeId(3))));
        assert_eq!(second.drawn().unwrap(), first.drawn().unwrap());
        assert_eq!(second.settle(&path, None).unwrap(), NodeId(3));
        let error = second.settle(&path, Some(NodeId(4))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn a_node_belongs_to_one_cluster_and_remembers_its_peers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut identity = Identity::begin(path).unwrap();
        identity.join(path, 0xaa).unwrap();
        assert!(identity.join(path, 0xbb).is_err());
        identity.remember(path, vec!["a:1".to_owned()]).unwrap();
        let mut again = Identity::begin(path).unwrap();
        assert!(again.join(path, 0xaa).is_ok() && again.join(path, 0xbb).is_err());
        assert_eq!(again.peers(), ["a:1"]);
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_new_node() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), b"{").unwrap();
        assert_eq!(Identity::begin(folder.path()).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
