//! Where the nodes of a small cluster listen: chosen once, and the same again with the same folder.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tyr::Error;

use crate::failure::Outcome;

const FILE: &str = "cluster.json";

/// The first port that `tyr dev` tries.
const PORT: u16 = 7001;

/// From the port of a node to that of its HTTP.
const HTTP_STEP: u16 = 100;

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

/// Which ports a new layout takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Any that are free.
    Any,
    /// 7001 and those that follow, if all are free; else any.
    Usual,
    /// This one and those that follow.
    From(u16),
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
    /// `InvalidArgument` when the cluster there has another number of nodes or another first port
    /// than is asked for; `Corrupt` when its file cannot be read; `Unavailable` when there are no
    /// ports, or the disk refuses.
    pub fn find_or_make(folder: &Path, count: u16, ports: Ports) -> Outcome<Self> {
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
            known.check_port(folder, ports)?;
            return Ok(known);
        }
        let layout = Self::make(count, ports)?;
        let text = serde_json::to_vec_pretty(&layout).expect("addresses are JSON");
        fs::write(&path, text).map_err(|error| Error::io(place(), error))?;
        Ok(layout)
    }

    fn check_port(&self, folder: &Path, ports: Ports) -> Outcome {
        let (Ports::From(wanted), Some(first)) = (ports, self.nodes.first()) else { return Ok(()) };
        if wanted == first.listen.port() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the cluster in {} listens on ports from {} on, not from {wanted}; leave --port out, \
             or give another folder",
            folder.display(),
            first.listen.port()
        ))
        .into())
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

    fn make(count: u16, ports: Ports) -> Outcome<Self> {
        match ports {
            Ports::Any => Self::anywhere(count),
            Ports::Usual => Self::from_port(PORT, count).or_else(|_| Self::anywhere(count)),
            Ports::From(first) => Self::from_port(first, count),
        }
    }

    fn from_port(first: u16, count: u16) -> Outcome<Self> {
        let free = |port: Option<u16>| -> Outcome<SocketAddr> {
            let port = port.ok_or_else(|| {
                Error::invalid(format!("ports end at {}; begin with a lower one", u16::MAX))
            })?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let taken = |error| {
                let text =
                    format!("port {port} is not free; give another first one, or --port 0 for any");
                Error::io(text, error)
            };
            TcpListener::bind(address).map_err(taken)?;
            UdpSocket::bind(address).map_err(taken)?;
            Ok(address)
        };
        let place = |number: u16| {
            let listen = first.checked_add(number);
            let http = listen.and_then(|port| port.checked_add(HTTP_STEP));
            Ok(Place { listen: free(listen)?, http: free(http)? })
        };
        Ok(Self { nodes: (0..count).map(place).collect::<Outcome<_>>()? })
    }

    fn anywhere(count: u16) -> Outcome<Self> {
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
        let layout = Layout::find_or_make(folder.path(), 3, Ports::Any).unwrap();
        assert_eq!(Layout::find_or_make(folder.path(), 3, Ports::Usual).unwrap(), layout);
        let error = Layout::find_or_make(folder.path(), 4, Ports::Any).unwrap_err();
        assert!(error.to_string().contains("3 nodes, not 4"), "{error}");
        assert!(layout.formation().starts_with("0=127.0.0.1:"));
        assert_eq!(layout.address().matches("127.0.0.1").count(), 3);
        let ports = layout.nodes.iter().flat_map(|place| [place.listen.port(), place.http.port()]);
        let ports: std::collections::BTreeSet<u16> = ports.collect();
        assert_eq!(ports.len(), 6);
        let error = Layout::find_or_make(folder.path(), 3, Ports::From(1)).unwrap_err();
        assert!(error.to_string().contains("not from 1"), "{error}");
    }

    #[test]
    fn ports_follow_the_first_unless_one_of_them_is_taken() {
        // Who else is on this machine may take one meanwhile: then there is another first.
        let consecutive = || {
            let free = Layout::anywhere(1).unwrap().nodes[0].listen.port();
            Layout::make(2, Ports::From(free)).ok().map(|layout| (free, layout))
        };
        let found = std::iter::repeat_with(consecutive).take(ATTEMPTS).flatten().next();
        let (first, layout) = found.expect("some are free");
        let ports = |layout: &Layout| layout.nodes.iter().map(|it| it.listen.port()).collect();
        let listen: Vec<u16> = ports(&layout);
        assert_eq!(listen, [first, first + 1]);
        let _taken = TcpListener::bind(layout.nodes[1].listen).unwrap();
        let error = Layout::make(2, Ports::From(first)).unwrap_err();
        assert!(error.to_string().contains(&format!("port {} is not free", first + 1)), "{error}");
    }

    #[test]
    fn the_usual_ports_are_taken_together_or_not_at_all() {
        let layout = Layout::make(3, Ports::Usual).unwrap();
        let listen: Vec<u16> = layout.nodes.iter().map(|it| it.listen.port()).collect();
        let are_usual = listen == [PORT, PORT + 1, PORT + 2];
        assert!(are_usual || listen.iter().all(|port| *port > PORT + HTTP_STEP), "{listen:?}");
    }
}
