//! Which blobs a log has.
//!
//! ```text
//!   NAME \0 view            the head: class zlog_view; all of it is the map, in NAME \0 view \0 m
//!   NAME \0 lock            the lease of the sequencer, as a lock
//!   NAME \0 counter         what a sequencer that gave the lease back left for the next
//!   NAME / STRIPE / COLUMN  a storage object: class zlog
//! ```
//!
//! In a keyspace that is placed by what comes before the first byte 0 those of the first kinds lie
//! together, and each object lies where its key says, so that objects are spread over all nodes.

use tyr::{Key, Result};

use crate::name::Name;

/// What the key of the blob ends with that has a head's map: the only one that there is of a head.
pub const HEAD_SUFFIX: &str = "\0view\0m";

/// What the key of a sequencer's lock ends with.
pub const LOCK_SUFFIX: &str = "\0lock";

/// The head.
pub fn view_key(log: &Name) -> Result<Key> {
    Key::new(format!("{log}\0view"))
}

/// The blob that has the head's map.
pub fn head_key(log: &Name) -> Result<Key> {
    Key::new(format!("{log}{HEAD_SUFFIX}"))
}

/// The sequencer's lock.
pub fn lock_key(log: &Name) -> Result<Key> {
    Key::new(format!("{log}{LOCK_SUFFIX}"))
}

/// What is handed over from one sequencer to the next.
pub fn counter_key(log: &Name) -> Result<Key> {
    Key::new(format!("{log}\0counter"))
}

/// A storage object.
pub fn object_key(log: &Name, stripe: u64, column: u64) -> Result<Key> {
    Key::new(format!("{}{stripe:016}/{column:05}", objects_prefix(log)))
}

/// What the keys of all storage objects begin with.
pub fn objects_prefix(log: &Name) -> String {
    format!("{log}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heads_map_is_in_its_companion() {
        let name = Name::new("orders").unwrap();
        let companion = [view_key(&name).unwrap().as_bytes(), tyr_object::COMPANION].concat();
        assert_eq!(head_key(&name).unwrap().as_bytes(), companion);
    }
}
