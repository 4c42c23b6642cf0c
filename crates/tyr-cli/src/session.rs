//! What every command has at hand: the store of `--data`, the output, whether to stop.
//!
//! The store is opened on first use and closed by `main`, so that no command forgets it; the
//! thread that watches for signals can close it too, when a command is stuck.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use tyr::ConnectOptions;
use tyr::blocking::{Keyspace, Tyr};

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::Output;

/// What a command wants to do to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Look only; the store must exist.
    Read,
    /// Change what is there; the store must exist.
    Write,
    /// Change it, and make it if it is missing.
    Create,
}

/// The environment's variable for `--data`.
pub const DATA_VARIABLE: &str = "TYR_DATA";

/// What every command takes, for its session.
#[derive(Args, Clone, Debug)]
pub struct SessionArguments {
    /// The store: a directory, or a cluster as tyr://HOST:PORT,HOST:PORT/?user=NAME&key_file=FILE,
    /// with TLS &tls_ca=FILE&tls_certificate=FILE&tls_key=FILE too, or by TYR_TLS_CA and so on
    #[arg(long, short = 'c', global = true, env = DATA_VARIABLE, value_name = "STORE")]
    pub data: Option<PathBuf>,

    /// Whether the command line names the store, and not only the environment
    #[arg(skip)]
    pub is_data_said: bool,

    /// Read a store whose log is damaged, as it was before the damage; else it is refused
    #[arg(long, global = true)]
    pub despite_damage: bool,

    /// Print JSON: one object, or one a line; errors as {"error":{"kind","message"}} on stderr
    #[arg(long = "json", global = true)]
    pub is_json: bool,
}

/// The surroundings of one command.
pub struct Session {
    arguments: SessionArguments,
    opened: Opened,
    /// Where results go.
    pub output: Output,
    /// Whether the user asked to stop.
    pub interrupt: Interrupt,
}

impl Session {
    /// A session with nothing opened.
    pub fn new(arguments: SessionArguments, interrupt: Interrupt) -> Self {
        let output = Output::new(arguments.is_json);
        Self { arguments, opened: Opened::default(), output, interrupt }
    }

    /// The slot of the opened store.
    pub fn opened(&self) -> Opened {
        self.opened.clone()
    }

    /// The store: a directory, or the address of a cluster.
    ///
    /// # Errors
    /// `Usage` when neither `--data` nor `TYR_DATA` names one.
    pub fn data(&self) -> Outcome<PathBuf> {
        let data = self.arguments.data.clone().ok_or_else(|| {
            Failure::Usage(
                "no store given: say --data DIR or --data tyr://HOST:PORT, or set TYR_DATA to \
                 that"
                    .to_owned(),
            )
        })?;
        match foreign_scheme(&data) {
            None => Ok(data),
            Some(scheme) => Err(Failure::Usage(format!(
                "{} is no store: a cluster's address begins with {SCHEME}, not {scheme}://, and a \
                 directory that is really called so is ./{}",
                data.display(),
                data.display()
            ))),
        }
    }

    /// Whether the store is a cluster, and not a directory.
    ///
    /// # Errors
    /// As [`Session::data`].
    pub fn is_cluster(&self) -> Outcome<bool> {
        Ok(address(&self.data()?).is_some())
    }

    /// The directory of the store.
    ///
    /// # Errors
    /// `Usage` when none is named, or a cluster is.
    pub fn folder(&self) -> Outcome<PathBuf> {
        let data = self.data()?;
        match address(&data) {
            None => Ok(data),
            Some(address) => Err(Failure::Usage(format!(
                "{SCHEME}{address} is a cluster, and this is about a directory; `tyr status` shows \
                 how a cluster is"
            ))),
        }
    }

    /// The store, if one is given.
    pub fn data_if_given(&self) -> Option<PathBuf> {
        self.arguments.data.clone()
    }

    /// The store, if one is given by `--data`: what only the environment names is for other
    /// commands.
    pub fn data_if_said(&self) -> Option<PathBuf> {
        self.arguments.data.clone().filter(|_| self.arguments.is_data_said)
    }

    /// Opens the store.
    pub fn open(&self, access: Access) -> Outcome<Tyr> {
        let data = self.data()?;
        if address(&data).is_some() {
            return self.connect(&data, tyr::Tyr::connect_options().tls_from_environment());
        }
        self.open_at(&data, access)
    }

    /// Opens the store in `folder`, whatever `--data` and the environment say; or connects to the
    /// cluster.
    pub fn open_at(&self, folder: &Path, access: Access) -> Outcome<Tyr> {
        if address(folder).is_some() {
            return self.connect(folder, tyr::Tyr::connect_options());
        }
        // How much may be held for kept snapshots is for the program that runs on the store to say.
        let options = tyr::Tyr::options().kept_bytes_max(u64::MAX);
        let options = match access {
            Access::Read => {
                let despite_damage = self.arguments.despite_damage;
                options.is_read_only(true).despite_damage(despite_damage).must_exist(true)
            }
            Access::Write => options.must_exist(true),
            Access::Create => options,
        };
        let store = options.open_blocking(folder)?;
        if let Some(damage) = store.damage() {
            eprintln!(
                "tyr: warning: the log is damaged, what follows is from before that: {damage}"
            );
        }
        if let Some(torn) = store.torn_tail() {
            eprintln!("tyr: warning: {torn}");
        }
        *self.opened.slot() = Some(store.clone());
        Ok(store)
    }

    fn connect(&self, address: &Path, options: ConnectOptions) -> Outcome<Tyr> {
        let store = options.connect_blocking(address.to_string_lossy())?;
        *self.opened.slot() = Some(store.clone());
        Ok(store)
    }

    /// Opens the store and a keyspace in it.
    pub fn open_keyspace(&self, name: &str, access: Access) -> Outcome<(Tyr, Keyspace)> {
        let store = self.open(access)?;
        let keyspace = store.keyspace(name)?;
        Ok((store, keyspace))
    }
}

/// How the address of a cluster begins.
pub const SCHEME: &str = "tyr://";

/// What follows that, when a store is a cluster.
pub fn address(data: &Path) -> Option<&str> {
    data.to_str()?.strip_prefix(SCHEME)
}

/// The scheme of an address that is not that of a cluster.
fn foreign_scheme(data: &Path) -> Option<&str> {
    let (scheme, _) = data.to_str()?.split_once("://")?;
    let is_scheme = !scheme.is_empty() && scheme.chars().all(|it| it.is_ascii_alphanumeric());
    (is_scheme && address(data).is_none()).then_some(scheme)
}

/// The store that the command opened, if any, for whoever closes it. Clones share it.
#[derive(Clone, Default)]
pub struct Opened(Arc<Mutex<Option<Tyr>>>);

impl Opened {
    /// Closes the store.
    pub fn close(&self) -> Outcome {
        let store = self.slot().take();
        store.map_or(Ok(()), |store| store.close().map_err(Failure::Store))
    }

    /// Closes the store of a command that is left behind; there is nobody to hear of an error.
    pub fn close_unseen(&self) {
        let _ = self.close();
    }

    fn slot(&self) -> MutexGuard<'_, Option<Tyr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
