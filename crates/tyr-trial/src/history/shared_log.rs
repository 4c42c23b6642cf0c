//! What is done to a shared log, with what was answered, as it stands in a history.

use serde::{Deserialize, Serialize};

/// Where an entry is in a shared log, or would be: partition, segment, bytes from its begin, and
/// which of those that were appended together. In a partition places have the order of entries.
pub type Place = [u64; 4];

/// What an entry is in a line: value, place, stamp, number.
type Row = (u64, Place, String, Option<u64>);

/// An entry of a shared log, as it was read, or as who appended it was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Entry {
    /// The value, which nobody else appends.
    pub value: u64,
    /// Where it is.
    pub at: Place,
    /// Its stamp, as digits that sort as stamps do.
    pub stamp: String,
    /// Its number, in a strict log, where that is known.
    pub number: Option<u64>,
}

impl From<Row> for Entry {
    fn from((value, at, stamp, number): Row) -> Self {
        Self { value, at, stamp, number }
    }
}

impl From<Entry> for Row {
    fn from(Entry { value, at, stamp, number }: Entry) -> Self {
        (value, at, stamp, number)
    }
}

/// How entries of a shared log are given to one of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Taking {
    /// For good: at most once.
    Pop,
    /// For so many milliseconds, unless they are acknowledged: at least once.
    Take(u64),
    /// Together with what is done about them: exactly once.
    Work,
}

/// One thing done to a shared log, with what was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Did {
    /// Entries were appended, together.
    Batch {
        /// Their values, which nobody else appends.
        values: Vec<u64>,
        /// The first of them.
        at: Option<Entry>,
    },
    /// It was read forward.
    Stretch(Stretch),
    /// One entry was read, by its place.
    At {
        /// The place.
        at: Place,
        /// What is there; nothing where nothing has been written.
        seen: Option<Vec<Entry>>,
    },
    /// Entries were given to one of the consumers who share them.
    Taken {
        /// How.
        how: Taking,
        /// By which they are known; nobody else has this number.
        delivery: u64,
        /// How many were asked for.
        max: u64,
        /// The entries.
        seen: Option<Vec<Entry>>,
    },
    /// What was taken was acknowledged.
    Ack {
        /// What was taken.
        delivery: u64,
        /// Whether that was in time.
        seen: Option<bool>,
    },
    /// What is before some place was trimmed.
    Trim {
        /// The place, in each partition.
        before: Vec<Place>,
    },
    /// It was sealed.
    Seal,
}

/// What was read of a shared log, in its one order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Who reads on; nobody else has this number.
    pub reader: u64,
    /// The number that reading was to begin at; of the last entries how many were asked for.
    pub asked: Option<u64>,
    /// Where it began, in each partition; none where the last entries were asked for.
    pub from: Option<Vec<Place>>,
    /// Where what follows is, in each partition.
    pub to: Vec<Place>,
    /// Whether there was no more then.
    pub is_end: bool,
    /// Whether it was told that there never will be.
    pub is_sealed: bool,
    /// What was read.
    pub seen: Option<Vec<Entry>>,
}

/// Whether this changes something.
pub fn changes(did: &Did) -> bool {
    match did {
        Did::Batch { .. } | Did::Taken { .. } | Did::Ack { .. } | Did::Trim { .. } | Did::Seal => {
            true
        }
        Did::Stretch(_) | Did::At { .. } => false,
    }
}
