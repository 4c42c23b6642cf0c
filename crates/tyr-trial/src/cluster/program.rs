//! What runs as a node: this program, or a `tyr` with `serve`, perhaps of an older commit.

use std::path::PathBuf;

use crate::fabric::Seat;

/// What runs as a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// `tyr-trial node`, from this file.
    Own(PathBuf),
    /// `tyr serve`, from this file.
    Serve(PathBuf),
}

/// How a node comes to its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formation {
    /// These form it: `0=host:port,1=host:port`.
    Initial(String),
    /// It joins the cluster that one of these belongs to.
    Join(Vec<String>),
}

impl Program {
    /// This program, as it runs.
    ///
    /// # Errors
    /// When the system does not say where it is.
    pub fn own() -> tyr_types::Result<Self> {
        let path = std::env::current_exe();
        path.map(Self::Own).map_err(|error| tyr_types::Error::io("where this program is", error))
    }

    /// The words that start a node.
    pub fn words(
        &self,
        number: u16,
        seat: &Seat,
        folder: &str,
        formation: &Formation,
    ) -> Vec<String> {
        let (path, verb, numbered) = match self {
            Self::Own(path) => (path, "node", "--number"),
            Self::Serve(path) => (path, "serve", "--node"),
        };
        let mut words = seat.command.clone();
        words.push(path.display().to_string());
        let listen = seat.listen.to_string();
        let number = number.to_string();
        words.extend([verb, "--folder", folder, numbered, &number].map(str::to_owned));
        words.extend(["--listen", &listen, "--advertise", &seat.advertise].map(str::to_owned));
        match formation {
            Formation::Initial(nodes) => words.extend(["--nodes".to_owned(), nodes.clone()]),
            Formation::Join(places) => words.extend(["--join".to_owned(), places.join(",")]),
        }
        if let Self::Serve(_) = self {
            words.push("--insecure".to_owned());
        }
        words
    }
}
