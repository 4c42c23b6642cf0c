//! Which transactions are traced: a hash of the id decides, so that all nodes choose the same.

use tyr_types::{Error, Result, TransactionId};
use xxhash_rust::xxh3::xxh3_64;

/// Hashes there are: 2^64.
const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// The transactions whose hash lies below a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// 0 to 2^64.
    below: u128,
}

impl Sampling {
    /// So large a part of all transactions, 0 to 1.
    ///
    /// # Errors
    /// `InvalidArgument` when it is out of this range.
    pub fn new(ratio: f64) -> Result<Self> {
        match (0.0..=1.0).contains(&ratio) {
            true => Ok(Self { below: (ratio * HASHES) as u128 }),
            false => Err(Error::invalid(format!(
                "the part of transactions that is traced is 0 to 1, not {ratio}"
            ))),
        }
    }

    /// Whether the transaction is traced. One with the id 0 is not: that is no id of a trace.
    ///
    /// XXH3 is the same in every version of the program: what a node chooses, one that is upgraded
    /// chooses too.
    pub fn picks(self, id: TransactionId) -> bool {
        u128::from(xxh3_64(&id.0.to_be_bytes())) < self.below && id.0 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(ratio: f64, ids: impl Iterator<Item = u64>) -> usize {
        let sampling = Sampling::new(ratio).unwrap();
        ids.filter(|n| sampling.picks(TransactionId::new(n / 64, n % 64 + 1))).count()
    }

    #[test]
    fn so_large_a_part_is_picked_as_was_asked_for() {
        assert_eq!(picked(0.0, 0..10_000), 0);
        assert_eq!(picked(1.0, 0..10_000), 10_000);
        let tenth = picked(0.1, 0..100_000);
        assert!((9_700..10_300).contains(&tenth), "{tenth} of 100000");
    }

    #[test]
    fn what_a_smaller_part_has_is_in_a_larger_one_too() {
        let [small, large] = [0.01, 0.1].map(|ratio| Sampling::new(ratio).unwrap());
        let mut ids = (1..10_000).map(TransactionId);
        assert!(ids.all(|id| !small.picks(id) || large.picks(id)));
    }

    #[test]
    fn every_version_of_the_program_picks_the_same() {
        let sampling = Sampling::new(0.25).unwrap();
        let picked: Vec<u128> = (0..24).filter(|id| sampling.picks(TransactionId(*id))).collect();
        assert_eq!(picked, PICKED);
    }

    /// Once and for all.
    const PICKED: [u128; 6] = [2, 4, 6, 15, 22, 23];

    #[test]
    fn a_part_that_is_none_is_refused_and_the_id_of_no_trace_is_not_picked() {
        for ratio in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Sampling::new(ratio).is_err(), "{ratio}");
        }
        assert!(!Sampling::new(1.0).unwrap().picks(TransactionId(0)));
    }
}
