//! Which blobs a log has, and what they are called.
//!
//! Keys are placed by what comes before their first byte 0. So a log's own blobs lie together, a
//! partition's cursors lie together, and each segment lies by itself: segments spread over the
//! nodes.
//!
//! ```text
//! NAME\0log            what it was created with, and where its partitions begin and end
//! NAME\0number         of a strict log: how many entries it has got
//! NAME\0at<stamp>      a checkpoint: what there was at a moment
//! NAME/pNNNN\0group/G  where group G is in a partition
//! NAME/pNNNN/sNNNNNNNNNNNNNNNNNNNN  a segment
//! ```

use tyr::{Key, Result};

use crate::name::Name;

/// What stands before the stamp of a checkpoint.
const CHECKPOINT: &str = "\0at";

/// What stands before the name of a group.
const GROUP: &str = "\0group/";

/// What the key of a log's description ends with.
pub const LOG_SUFFIX: &str = "\0log";

/// The key of a log's description.
pub fn log_key(log: &Name) -> Result<Key> {
    Key::new(format!("{log}{LOG_SUFFIX}"))
}

/// The key of a strict log's counter.
pub fn number_key(log: &Name) -> Result<Key> {
    Key::new(format!("{log}\0number"))
}

/// What the keys of a log's checkpoints begin with.
pub fn checkpoint_prefix(log: &Name) -> Vec<u8> {
    format!("{log}{CHECKPOINT}").into_bytes()
}

/// The key of the checkpoint of a moment: they sort as the moments do.
pub fn checkpoint_key(log: &Name, stamp: &[u8]) -> Result<Key> {
    Key::new([&checkpoint_prefix(log), stamp].concat())
}

/// The key of a segment.
pub fn segment_key(log: &Name, partition: u16, segment: u64) -> Result<Key> {
    Key::new(format!("{log}/p{partition:04}/s{segment:020}"))
}

/// What the keys of the groups of a partition begin with.
pub fn group_prefix(log: &Name, partition: u16) -> String {
    format!("{log}/p{partition:04}{GROUP}")
}

/// The key of a group's cursor in a partition.
pub fn group_key(log: &Name, partition: u16, group: &Name) -> Result<Key> {
    Key::new(format!("{}{group}", group_prefix(log, partition)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::NAME_LEN_MAX;

    #[test]
    fn what_is_used_together_shares_what_comes_before_the_first_zero() {
        let (log, group) = (Name::new("log", "orders").unwrap(), Name::new("group", "g").unwrap());
        let place = |key: Key| key.as_bytes().split(|it| *it == 0).next().unwrap().to_vec();
        assert_eq!(place(log_key(&log).unwrap()), place(number_key(&log).unwrap()));
        assert_eq!(place(log_key(&log).unwrap()), place(checkpoint_key(&log, &[0; 16]).unwrap()));
        let other = Name::new("group", "h").unwrap();
        let cursor = |group| place(group_key(&log, 1, group).unwrap());
        assert_eq!(cursor(&group), cursor(&other));
        let segment = |n| place(segment_key(&log, 1, n).unwrap());
        assert_ne!(segment(1), segment(2));
    }

    #[test]
    fn the_longest_names_make_keys_that_fit_and_segments_sort_by_number() {
        let long = Name::new("log", &"a".repeat(NAME_LEN_MAX)).unwrap();
        group_key(&long, u16::MAX, &long).unwrap();
        assert!(segment_key(&long, 9, 9).unwrap() < segment_key(&long, 9, 10).unwrap());
        assert!(segment_key(&long, 9, u64::MAX).unwrap() < segment_key(&long, 10, 0).unwrap());
    }
}
