//! Who a node is, from one start to the next: a small file in its folder.
//!
//! The file is the first thing that a start writes: each start has a number of its own before
//! anybody hears of it (M4).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tyr_types::{Error, ErrorKind, NodeId, Result};

const FILE: &str = "node.json";
const NEW_FILE: &str = "node.json.new";

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster, as hexadecimal digits; none before it is known.
    #[serde(default)]
    pub cluster: Option<String>,
    /// The node's number.
    pub node: u16,
    /// How often it was started, this time included.
    pub starts: u64,
}

impl Identity {
    /// The identity in a folder; `None` when no node was there.
    ///
    /// # Errors
    /// `Corrupt` when it cannot be understood; `Unavailable` when the disk refuses.
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

    /// Begins another start of the node in a folder, which is made if there is none: counted, and
    /// on disk. `node` is its number when it is new; another number than before is an error.
    ///
    /// # Errors
    /// `InvalidArgument` when the folder belongs to another node; as [`Identity::read`].
    pub fn begin(folder: &Path, node: Option<NodeId>) -> Result<Self> {
        fs::create_dir_all(folder)
            .map_err(|error| Error::io(folder.display().to_string(), error))?;
        let mut identity = match (Self::read(folder)?, node) {
            (Some(known), Some(node)) if known.node != node.0 => {
                return Err(Error::invalid(format!(
                    "{} belongs to node {}, not to node {}; give each node a folder of its own",
                    folder.display(),
                    known.node,
                    node.0
                )));
            }
            (Some(known), _) => known,
            (None, Some(node)) => Self { cluster: None, node: node.0, starts: 0 },
            (None, None) => {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!(
                        "there is no node in {}; say which one it is to be (--node)",
                        folder.display()
                    ),
                ));
            }
        };
        identity.starts += 1;
        identity.write(folder)?;
        Ok(identity)
    }

    /// Takes note of the cluster, durably.
    ///
    /// # Errors
    /// `InvalidArgument` when the node belongs to another one; `Unavailable` when the disk refuses.
    pub fn join(&mut self, folder: &Path, cluster: &str) -> Result<()> {
        match &self.cluster {
            Some(known) if known == cluster => Ok(()),
            Some(known) => Err(Error::invalid(format!(
                "{} belongs to cluster {known}, and this one is {cluster}; a node of another \
                 cluster begins with an empty folder",
                folder.display()
            ))),
            None => {
                self.cluster = Some(cluster.to_owned());
                self.write(folder)
            }
        }
    }

    fn write(&self, folder: &Path) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(self).expect("numbers and texts are JSON");
        let new: PathBuf = folder.join(NEW_FILE);
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

    #[test]
    fn starts_are_counted_and_a_folder_is_one_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        assert!(Identity::begin(&path, None).is_err());
        assert_eq!(Identity::begin(&path, Some(NodeId(3))).unwrap().starts, 1);
        assert_eq!(Identity::begin(&path, None).unwrap().starts, 2);
        let error = Identity::begin(&path, Some(NodeId(4))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn a_node_belongs_to_one_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let mut identity = Identity::begin(folder.path(), Some(NodeId(1))).unwrap();
        identity.join(folder.path(), "aa").unwrap();
        assert!(identity.join(folder.path(), "bb").is_err());
        let mut again = Identity::begin(folder.path(), None).unwrap();
        assert!(again.join(folder.path(), "aa").is_ok());
        assert!(again.join(folder.path(), "bb").is_err());
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_new_node() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), b"{").unwrap();
        let error = Identity::begin(folder.path(), Some(NodeId(1))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
