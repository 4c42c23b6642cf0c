//! What runs as a node: this program, or a `tyr` with `serve`, perhaps of an older commit.

use std::path::PathBuf;

use crate::fabric::Endpoint;

/// What runs as a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// `tyr-trial node`, from this file.
    Own(PathBuf),
    /// `tyr serve`, from this file.
    Serve(PathBuf),
}

/// What a node may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// MiB of memory for recent operations and cache; `None` for what the program has unless told.
    pub cache_mib: Option<u64>,
    /// MiB of log after which a fold begins.
    pub fold_log_mib: u64,
}

impl Default for Sizes {
    /// A log that is folded often.
    fn default() -> Self {
        Self { cache_mib: None, fold_log_mib: 1 }
    }
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

    /// What a trial runs unless it is told: `tyr serve` from the same folder if it is there, else
    /// this program's node.
    ///
    /// # Errors
    /// As [`Program::own`].
    pub fn usual() -> tyr_types::Result<Self> {
        let own = Self::own()?;
        let Self::Own(path) = &own else { return Ok(own) };
        let beside = path.with_file_name("tyr");
        Ok(if beside.exists() { Self::Serve(beside) } else { own })
    }

    /// What it is, in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Own(_) => "tyr-trial node",
            Self::Serve(_) => "tyr serve",
        }
    }

    /// The words that start a node.
    pub fn words(
        &self,
        number: u16,
        endpoint: &Endpoint,
        folder: &str,
        formation: &Formation,
        sizes: &Sizes,
    ) -> Vec<String> {
        let (path, verb, numbered) = match self {
            Self::Own(path) => (path, "node", "--number"),
            Self::Serve(path) => (path, "serve", "--node"),
        };
        let mut words = endpoint.command.clone();
        words.push(path.display().to_string());
        let listen = endpoint.listen.to_string();
        let number = number.to_string();
        words.extend([verb, "--folder", folder, numbered, &number].map(str::to_owned));
        words.extend(["--listen", &listen, "--advertise", &endpoint.advertise].map(str::to_owned));
        match formation {
            Formation::Initial(nodes) => words.extend(["--nodes".to_owned(), nodes.clone()]),
            Formation::Join(places) => words.extend(["--join".to_owned(), places.join(",")]),
        }
        if let Self::Serve(_) = self {
            words.extend(["--insecure", "--http", "off"].map(str::to_owned));
            // So it ends when the trial does, however that ends.
            words.push("--until-input-ends".to_owned());
        }
        words.extend(self.sized(sizes));
        words
    }

    fn sized(&self, sizes: &Sizes) -> Vec<String> {
        let (fold_log, cache) = match self {
            Self::Own(_) => ("--fold-log-bytes", "--cache-bytes"),
            Self::Serve(_) => ("--fold-log", "--cache"),
        };
        let bytes = |mib: u64| (mib << 20).to_string();
        let mut words = vec![fold_log.to_owned(), bytes(sizes.fold_log_mib)];
        if let Some(mib) = sizes.cache_mib {
            words.extend([cache.to_owned(), bytes(mib)]);
        }
        words
    }
}
