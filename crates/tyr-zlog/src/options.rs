//! What a log is created with, and how a handle of it behaves.

use std::time::Duration;

use tyr::{Error, KeyspaceConfig, Result};

/// The keyspace of logs that do not say.
pub const KEYSPACE_DEFAULT: &str = "zlogs";

/// Objects of a stripe: a new stripe is made, and a sealed one sealed, in one transaction.
pub const WIDTH_MAX: u32 = 64;

/// Positions of an object: its table of them, of 16 bytes each, is written when it is made.
pub const SLOTS_MAX: u32 = 65_536;

/// What a log is created with; see [`Log::create`](crate::Log::create). It stays so.
#[derive(Clone, Debug)]
pub struct Options {
    /// The keyspace that holds it, made if it is missing. Default `zlogs`.
    pub keyspace: String,
    /// What the keyspace is created with, if it is. Default: that of objects
    /// ([`tyr_object::keyspace_config`]).
    pub keyspace_config: KeyspaceConfig,
    /// Objects that positions go round, 1 to 64: so many appends go on side by side. Default 8.
    pub width: u32,
    /// Positions of each object, 1 to 65,536: after `width` times as many the log goes on in new
    /// objects, and whole stripes of objects are what trimming gives back. Default 1,024.
    pub slots: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keyspace: KEYSPACE_DEFAULT.to_owned(),
            keyspace_config: tyr_object::keyspace_config(),
            width: 8,
            slots: 1_024,
        }
    }
}

impl Options {
    /// Refuses what is out of range.
    pub(crate) fn validate(&self) -> Result<()> {
        if !(1..=WIDTH_MAX).contains(&self.width) || !(1..=SLOTS_MAX).contains(&self.slots) {
            return Err(Error::invalid(format!(
                "a stripe has 1 to {WIDTH_MAX} objects of 1 to {SLOTS_MAX} positions, not {} of {}",
                self.width, self.slots
            )));
        }
        Ok(())
    }
}

/// How long who holds the sequencer keeps it when somebody waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Not at all: it is given on at once.
    BestEffort,
    /// So long after somebody began to wait.
    Delay(Duration),
    /// Until so many positions were given out, or so long after it was got.
    Quota {
        /// Positions.
        positions: u64,
        /// Since it was got.
        time: Duration,
    },
}

impl Default for Policy {
    /// A thousand positions, or a quarter of a second.
    fn default() -> Self {
        Self::Quota { positions: 1_000, time: Duration::from_millis(250) }
    }
}

/// Where the methods of the log's objects are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Methods {
    /// In the store: the scripts that were installed when the log was created.
    #[default]
    Installed,
    /// In this program, in Rust. They do the same with the same bytes.
    Native,
}

/// Where a handle of a log gets its positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencing {
    /// From a counter in its own memory, while it holds the sequencer: the fastest for one who
    /// appends. Others who do hand it on to each other.
    #[default]
    Held,
    /// From the node that the sequencer's lock is at, which holds it for all who ask: a trip over
    /// the network for each position, or for all that one handle wants at once. The best for many
    /// who append. In a directory, and where some node runs no methods, it is as `Held`.
    Asked,
}

/// How a handle of a log behaves. Handles of one log may differ in it.
#[derive(Clone, Debug)]
pub struct Opening {
    /// How long it keeps the sequencer when others want it. Default: 1,000 positions or 0.25 s.
    pub policy: Policy,
    /// How long the lease of the sequencer lasts when nobody renews it, 1 to 10 s: when its holder
    /// dies, others wait for it and a tenth more. Default 2 s.
    pub lease: Duration,
    /// How long a reader waits for who has got a position and does not write it, before it fills
    /// it. Default 0.2 s.
    pub fill_after: Duration,
    /// Who this is, for whoever looks who has the sequencer: 256 bytes at most.
    pub holder: String,
    /// Which methods it calls.
    pub methods: Methods,
    /// Where it gets its positions. Default: it holds the sequencer itself.
    pub sequencing: Sequencing,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            lease: Duration::from_secs(2),
            fill_after: Duration::from_millis(200),
            holder: format!("process {}", std::process::id()),
            methods: Methods::default(),
            sequencing: Sequencing::default(),
        }
    }
}
