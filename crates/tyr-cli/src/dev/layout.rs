//! Where the nodes of a small cluster listen: chosen once, and the same again with the same folder.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tyr::Error;

use crate::failure::Outcome;

const FILE: &str = "cluster.json";

/// Ports that are tried for one place: nobody takes so many just now.
const ATTEMPTS: usize = 100;

/// Where one node listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// For nodes and clients.
    pub listen: SocketAddr,
    /// For HTTP.
    pub http: SocketAddr,
}

/// Where all of them do, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The nodes.
    pub nodes: Vec<Place>,
}

impl Layout {
    /// The layout of the cluster in this folder, or a new one.
    ///
    /// # Errors
    /// `InvalidArgument` when the cluster there has another number of nodes; `Corrupt` when its
    /// file cannot be read; `Unavailable` when there are no ports, or the disk refuses.
    pub fn find_or_make(folder: &Path, count: u16) -> Outcome<Self> {
        let path = folder.join(FILE);
        let place = || path.display().to_string();
        if path.exists() {
            let text = fs::read(&path).map_err(|error| Error::io(place(), error))?;
            let known: Self = serde_json::from_slice(&text)
                .map_err(|error| Error::corrupt(place()).with_source(error))?;
            if known.nodes.len() != usize::from(count) {
                return Err(Error::invalid(format!(
                    "{} has a cluster of {} nodes, not {count}; give that number, or another \
                     folder",
                    folder.display(),
                    known.nodes.len()
                ))
                .into());
            }
            return Ok(known);
        }
        let layout = Self::make(count)?;
        let text = serde_json::to_vec_pretty(&layout).expect("addresses are JSON");
        fs::write(&path, text).map_err(|error| Error::io(place(), error))?;
        Ok(layout)
    }

    /// The nodes as they form a cluster: `0=127.0.0.1:7000,..`.
    pub fn formation(&self) -> String {
        let nodes = self.nodes.iter().enumerate();
        let nodes = nodes.map(|(number, place)| format!("{number}={}", place.listen));
        nodes.collect::<Vec<_>>().join(",")
    }

    /// The cluster, as clients name it.
    pub fn address(&self) -> String {
        let nodes = self.nodes.iter().map(|place| place.listen.to_string());
        format!("tyr://{}", nodes.collect::<Vec<_>>().join(","))
    }

    fn make(count: u16) -> Outcome<Self> {
        // All are held until all are found, so that none is given twice.
        let mut held = Vec::new();
        let mut find = || -> Outcome<SocketAddr> {
            for _ in 0..ATTEMPTS {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
                let listener = listener.map_err(|error| Error::io("no port is free", error))?;
                let address =
                    listener.local_addr().map_err(|error| Error::io("no port is free", error))?;
                // Gossip has the same number.
                if let Ok(socket) = UdpSocket::bind(address) {
                    held.push((listener, socket));
                    return Ok(address);
                }
            }
            Err(Error::unavailable("no port is free for both TCP and UDP").into())
        };
        let nodes = (0..count).map(|_| Ok(Place { listen: find()?, http: find()? }));
        Ok(Self { nodes: nodes.collect::<Outcome<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_layout_and_its_number_of_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::find_or_make(folder.path(), 3).unwrap();
        assert_eq!(Layout::find_or_make(folder.path(), 3).unwrap(), layout);
        let error = Layout::find_or_make(folder.path(), 4).unwrap_err();
        assert!(error.to_string().contains("3 nodes, not 4"), "{error}");
        assert!(layout.formation().starts_with("0=127.0.0.1:"));
        assert_eq!(layout.address().matches("127.0.0.1").count(), 3);
        let ports = layout.nodes.iter().flat_map(|place| [place.listen.port(), place.http.port()]);
        let ports: std::collections::BTreeSet<u16> = ports.collect();
        assert_eq!(ports.len(), 6);
    }
}
