//! Clients that are programs in other languages, on the libraries that users have.
//!
//! ```text
//!   workload ──► Caller ──► Worker ══ an order, a line ══► program in C, Python, Java, Rust
//!                              ◄══ its answer, a line ═══      └──► library ──► cluster, folder
//! ```
//!
//! A worker is started with a mode (`blocking` or `started`, whether it makes calls that wait or
//! calls that are started), a place (`tyr://…`, or a folder) and the names of keyspaces, which it
//! makes if there are none, and says `ok`. Then it does what its input says, one line after the
//! other, and answers each with a line, until its input ends. [`order`] has the words.
//!
//! [`workshop`] has the programs built, [`Worker`] is one that runs, and [`serve()`] is the one in
//! Rust. All are dumb: what they are asked and what their answers mean, the caller knows.

mod handle;
pub mod order;
mod serve;
pub mod workshop;

pub use self::handle::{Plan, Worker};
pub use self::order::{Change, Order, Told, Wanted};
pub use self::serve::{WorkerArguments, serve};
pub use self::workshop::Workshop;

use std::time::Duration;

/// The place of a cluster whose nodes are reached at these addresses, for workers whose calls may
/// take so long.
pub fn address(addresses: &[String], timeout: Duration) -> String {
    format!("tyr://{}?timeout={}ms", addresses.join(","), timeout.as_millis())
}

/// What a worker is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumCount)]
pub enum Language {
    /// C, on `libtyr`.
    C,
    /// Python, on the package `tyr`.
    Python,
    /// Java, on `io.github.tyrstore`.
    Java,
    /// Rust, on the public crate.
    Rust,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::C, Self::Python, Self::Java, Self::Rust];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Python => "python",
            Self::Java => "java",
            Self::Rust => "rust",
        }
    }

    /// The language of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }
}

/// How a worker calls its library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Its calls wait for their answers.
    Blocking,
    /// Its calls are started, and their answers taken: a queue, an event loop, futures.
    Started,
}

impl Mode {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Started => "started",
        }
    }
}
