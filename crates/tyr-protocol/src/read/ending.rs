//! R7: a read that finds fewer bytes than it asked for: is it a hole, or the end of the blob?
//!
//! Only version managers know the size. A chunk's replica that holds fewer bytes than asked cannot
//! tell, so the size is asked of a version manager at the timestamp of the read.

use tyr_types::ByteRange;

/// What a read's answer still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing: every byte asked for was found.
    Complete,
    /// It ends with the blob: so many bytes are answered, of which those not found are zeros.
    Short {
        /// Bytes to answer.
        len: u64,
    },
    /// The size of the blob, which this node does not know.
    AskVersionManager,
}

/// What the answer to a read of `asked` needs, when the chunk holds bytes up to `held_end`; `size`
/// is the blob's, where it is known.
pub fn ending(asked: ByteRange, held_end: u64, size: Option<u64>) -> Ending {
    match size {
        _ if asked.end <= held_end => Ending::Complete,
        None => Ending::AskVersionManager,
        Some(size) => {
            let len = asked.end.min(size).saturating_sub(asked.start);
            debug_assert!(len <= asked.len(), "no more is answered than was asked for");
            Ending::Short { len }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: ByteRange = ByteRange { start: 100, end: 150 };

    /// R7.
    #[test]
    fn a_read_that_finds_everything_asks_nobody() {
        assert_eq!(ending(ASKED, 150, None), Ending::Complete);
        assert_eq!(ending(ASKED, 200, Some(200)), Ending::Complete);
    }

    /// R7.
    #[test]
    fn a_read_that_finds_less_asks_a_version_manager() {
        assert_eq!(ending(ASKED, 120, None), Ending::AskVersionManager);
    }

    /// R7.
    #[test]
    fn a_hole_is_answered_in_full_and_the_end_short() {
        assert_eq!(ending(ASKED, 120, Some(1000)), Ending::Short { len: 50 });
        assert_eq!(ending(ASKED, 120, Some(120)), Ending::Short { len: 20 });
        assert_eq!(ending(ASKED, 0, Some(40)), Ending::Short { len: 0 });
    }
}
