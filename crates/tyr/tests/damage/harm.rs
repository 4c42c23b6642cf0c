//! What is done to a store, one thing at a time.

use tyr_chance::{Chance, part};

use super::content::LATE;
use super::folder::Folder;

/// Up to so many bytes every byte is damaged.
const SMALL: usize = 64;

/// Places in a larger file, and in a file of the index, of which there are many.
const PLACES: usize = 60;
const PLACES_IN_INDEX: usize = 10;

/// What happens at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// These bits of the byte flip.
    Flip(u8),
    /// The byte is zero.
    ZeroByte,
    /// The page of 4 KiB around it is zero.
    ZeroPage,
    /// The file ends there.
    Cut,
    /// The file is gone.
    Remove,
}

/// Damage of one file at one place.
#[derive(Clone, Debug)]
pub struct Harm {
    pub file: String,
    pub at: usize,
    pub kind: Kind,
}

impl Harm {
    /// Whether it is in an extent file.
    pub fn is_in_extents(&self) -> bool {
        self.file.starts_with("extents/")
    }

    /// How many of the late transactions must be there at least, in a store that was not closed:
    /// at the end of its log, damage of what was written just now cannot be told from what a crash
    /// leaves.
    pub fn least_after_kill(&self) -> usize {
        match (self.file.starts_with("log/"), self.kind) {
            (true, Kind::ZeroPage | Kind::Cut | Kind::Remove) => 0,
            (true, Kind::Flip(_) | Kind::ZeroByte) => LATE - 1,
            // The last record may be one whose extents never became durable.
            (false, _) if self.is_in_extents() => LATE - 1,
            (false, _) => LATE,
        }
    }
}

/// Harm to every file that says something: at every byte of small ones, else at some places.
pub fn everywhere(folder: &Folder, chance: &mut Chance) -> Vec<Harm> {
    let mut harms = Vec::new();
    // Nobody reads what is in the lock files.
    for (file, len) in folder.files().filter(|(file, _)| *file != "LOCK" && *file != "index/lock") {
        let mut add = |at, kind| harms.push(Harm { file: file.to_owned(), at, kind });
        add(0, Kind::Remove);
        let is_index = file.starts_with("index/");
        let places = if is_index { PLACES_IN_INDEX } else { PLACES };
        let every: Vec<usize> = match len {
            0..=SMALL if !is_index => (0..len).collect(),
            _ => (0..part(places)).map(|_| chance.below(len as u64) as usize).collect(),
        };
        for at in every {
            let kind = match chance.below(5) {
                0 | 1 => Kind::Flip(1 << chance.below(8)),
                2 if folder.byte(file, at) != 0 => Kind::ZeroByte,
                3 => Kind::ZeroPage,
                _ => Kind::Cut,
            };
            add(at, kind);
        }
    }
    harms
}
