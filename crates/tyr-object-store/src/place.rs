//! Where an object store is, as a URL says it: a cluster or a folder, a keyspace, and a prefix.

use std::path::PathBuf;

use object_store::path::Path;

use crate::failure::generic;

const CLUSTER: &str = "tyr://";
const FOLDER: &str = "tyr+file://";

/// A URL of an object store, in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `tyr://host:port,host:port/keyspace/prefix`
    Cluster {
        /// What [`tyr::Tyr::connect`] takes: `tyr://host:port,host:port`.
        address: String,
        /// The keyspace.
        keyspace: String,
        /// What all paths are below; may be empty.
        prefix: Path,
    },
    /// `tyr+file:///folder/keyspace`
    Folder {
        /// The folder of the store, absolute.
        folder: PathBuf,
        /// The keyspace.
        keyspace: String,
    },
}

impl Place {
    /// Takes a URL apart. In that of a folder the last part is the keyspace. Nothing is decoded: a
    /// `%` stands for itself.
    ///
    /// # Errors
    /// `Generic` for another scheme, and where a part is missing; `InvalidPath` for a prefix that
    /// is no path.
    pub fn parse(url: &str) -> object_store::Result<Self> {
        if let Some(rest) = url.strip_prefix(FOLDER) {
            let parts = rest.trim_end_matches('/').rsplit_once('/');
            return match parts {
                Some((folder, keyspace)) if folder.len() > 1 && folder.starts_with('/') => {
                    Ok(Self::Folder { folder: folder.into(), keyspace: keyspace.to_owned() })
                }
                _ => Err(wrong(url)),
            };
        }
        let rest = url.strip_prefix(CLUSTER).ok_or_else(|| wrong(url))?;
        let (hosts, path) = rest.split_once('/').ok_or_else(|| wrong(url))?;
        let (keyspace, prefix) = path.split_once('/').unwrap_or((path, ""));
        if hosts.is_empty() || keyspace.is_empty() {
            return Err(wrong(url));
        }
        let prefix = Path::parse(prefix)?;
        let (address, keyspace) = (format!("{CLUSTER}{hosts}"), keyspace.to_owned());
        Ok(Self::Cluster { address, keyspace, prefix })
    }
}

fn wrong(url: &str) -> object_store::Error {
    generic(format!(
        "{url:?} is no place of Týr's: write tyr://HOST:PORT,HOST:PORT/KEYSPACE/PREFIX for a \
         cluster, tyr+file:///FOLDER/KEYSPACE for a folder"
    ))
}
