//! Do all holders of some bytes of a chunk have the same?
//!
//! The authority takes its clock S, and every holder reads the same bytes of the chunk at S. What
//! is compared are sums of them ([`sum`]). What most have is right; on a tie what the authority
//! has. What a holder cannot read, because what is stored there is damaged, is never right. Who has
//! something else, or nothing that can be read, gets the bytes from one that has them right. A
//! holder that does not answer is left for the next round.
//!
//! This module must not know how holders are asked, nor how often, nor how they get the bytes.

use std::collections::BTreeMap;

use tyr_types::NodeId;
use xxhash_rust::xxh3::xxh3_64;

use crate::rule::{Rule, Rules};

/// What a holder has of the bytes compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// It has not answered.
    Nothing,
    /// Something with this sum.
    Sum(u64),
    /// Something that cannot be read.
    Unreadable,
}

/// What holders have of a chunk at a timestamp, as far as they have said.
#[derive(Clone, Debug)]
pub struct Comparison {
    authority: NodeId,
    /// One for each holder.
    said: BTreeMap<NodeId, Said>,
    pub(crate) rules: Rules,
}

/// Who has to get the bytes again, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// One that has them right: the authority, if it has.
    pub from: NodeId,
    /// Those that have something else, or nothing that can be read, in node order.
    pub to: Vec<NodeId>,
}

/// What is compared of bytes: XXH3 of all up to the last that is not zero. How many zeros a holder
/// keeps behind that is its own affair: what is not kept reads as zeros (R7).
pub fn sum(bytes: &[u8]) -> u64 {
    xxh3_64(trimmed(bytes))
}

/// `bytes` without the zeros at their end.
pub(super) fn trimmed(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}

impl Comparison {
    /// A comparison among these holders, of which the first in node order is the authority; `None`
    /// when there are not two.
    pub fn new(holders: &[NodeId]) -> Option<Self> {
        let authority = holders.iter().min().copied()?;
        let said: BTreeMap<_, _> = holders.iter().map(|it| (*it, Said::Nothing)).collect();
        (said.len() > 1).then_some(Self { authority, said, rules: Rules::default() })
    }

    /// The holders that have not answered.
    pub fn waiting(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.said.iter().filter(|(_, said)| **said == Said::Nothing).map(|(holder, _)| *holder)
    }

    /// The holders that cannot read what they have.
    pub fn unreadable(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.said.iter().filter(|(_, said)| **said == Said::Unreadable).map(|(holder, _)| *holder)
    }

    /// A holder says what it has. The first answer counts, and none of who was not asked.
    pub fn answered(&mut self, holder: NodeId, sum: u64) {
        self.say(holder, Said::Sum(sum));
    }

    /// A holder says that what it has is damaged.
    pub fn cannot_read(&mut self, holder: NodeId) {
        self.say(holder, Said::Unreadable);
    }

    fn say(&mut self, holder: NodeId, what: Said) {
        if let Some(said) = self.said.get_mut(&holder)
            && *said == Said::Nothing
        {
            *said = what;
        }
    }

    /// What to do by the answers so far; `None` when all who answered have the same, or fewer than
    /// two did, or nobody can read it.
    pub fn repair(&self) -> Option<Repair> {
        let sums = || {
            self.said.iter().filter_map(|(holder, said)| match said {
                Said::Sum(sum) => Some((*holder, *sum)),
                Said::Nothing | Said::Unreadable => None,
            })
        };
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for (_, sum) in sums() {
            *votes.entry(sum).or_default() += 1;
        }
        let preferred = self.said.get(&self.authority);
        let (right, _) = votes.into_iter().max_by_key(|(sum, votes)| {
            (*votes, preferred == Some(&Said::Sum(*sum)), *sum) // The last: the same every time.
        })?;
        let holds_right = |holder: NodeId| self.said[&holder] == Said::Sum(right);
        let from = match holds_right(self.authority) {
            true => self.authority,
            false => sums().map(|(holder, _)| holder).find(|holder| holds_right(*holder))?,
        };
        debug_assert!(holds_right(from), "D4: who is copied from has what most have");
        let differs = |said: &Said| *said != Said::Nothing && *said != Said::Sum(right);
        let to: Vec<NodeId> =
            self.said.iter().filter(|(_, it)| differs(it)).map(|(holder, _)| *holder).collect();
        debug_assert!(!to.contains(&from), "D4: nobody is put right from itself");
        (!to.is_empty() && self.rules.hold(Rule::D4)).then_some(Repair { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::hash;

    fn compared(sums: &[(u16, u64)], silent: &[u16]) -> Option<Repair> {
        let holders = sums.iter().map(|(holder, _)| *holder).chain(silent.iter().copied());
        let holders: Vec<NodeId> = holders.map(NodeId).collect();
        let mut comparison = Comparison::new(&holders).unwrap();
        for (holder, sum) in sums {
            comparison.answered(NodeId(*holder), *sum);
        }
        assert_eq!(comparison.waiting().count(), silent.len());
        comparison.repair()
    }

    fn repair(from: u16, to: &[u16]) -> Option<Repair> {
        Some(Repair { from: NodeId(from), to: to.iter().copied().map(NodeId).collect() })
    }

    #[test]
    fn holders_that_agree_repair_nothing() {
        assert_eq!(compared(&[(1, 7), (2, 7), (3, 7)], &[]), None);
        assert_eq!(compared(&[(1, 7)], &[2, 3]), None, "one alone cannot be wrong");
    }

    #[test]
    fn what_most_have_is_right_even_against_the_authority() {
        assert_eq!(compared(&[(1, 7), (2, 7), (3, 8)], &[]), repair(1, &[3]));
        assert_eq!(compared(&[(1, 9), (2, 7), (3, 7)], &[]), repair(2, &[1]));
    }

    #[test]
    fn on_a_tie_what_the_authority_has_is_right() {
        assert_eq!(compared(&[(1, 7), (2, 8)], &[3]), repair(1, &[2]));
        assert_eq!(compared(&[(1, 1), (2, 2), (3, 3)], &[]), repair(1, &[2, 3]));
    }

    #[test]
    fn what_cannot_be_read_is_never_right() {
        let mut comparison = Comparison::new(&[NodeId(1), NodeId(2), NodeId(3)]).unwrap();
        comparison.cannot_read(NodeId(1));
        comparison.cannot_read(NodeId(3));
        assert_eq!(comparison.repair(), None, "nobody has said what it is");
        comparison.answered(NodeId(2), 7);
        assert_eq!(comparison.waiting().count(), 0);
        assert_eq!(comparison.unreadable().collect::<Vec<_>>(), [NodeId(1), NodeId(3)]);
        assert_eq!(comparison.repair(), repair(2, &[1, 3]));
    }

    #[test]
    fn zeros_at_the_end_are_as_good_as_none() {
        assert_eq!(sum(b"abc"), sum(b"abc\0\0"));
        assert_eq!(sum(b""), sum(b"\0"));
        assert_ne!(sum(b"abc"), sum(b"\0abc"));
        assert_ne!(sum(b"abc"), sum(b"abd"));
    }

    #[test]
    fn the_first_answer_of_a_holder_counts_and_none_of_a_stranger() {
        let mut comparison = Comparison::new(&[NodeId(1), NodeId(2)]).unwrap();
        comparison.answered(NodeId(1), 7);
        comparison.answered(NodeId(1), 8);
        comparison.answered(NodeId(2), 7);
        comparison.answered(NodeId(9), 8);
        assert_eq!(comparison.repair(), None);
    }

    /// Rounds of comparing and copying over holders of which some are damaged; how many differ from
    /// the first in the end.
    fn rounds(seed: u64, broken: Option<Rule>) -> usize {
        let drawn = |number: u64| hash::place(seed, number);
        let holders: Vec<NodeId> = (0..2 + drawn(0) % 4).map(|it| NodeId(it as u16)).collect();
        let mut has: BTreeMap<NodeId, u64> =
            holders.iter().map(|it| (*it, drawn(1 + u64::from(it.0)) % 3)).collect();
        for _ in 0..2 {
            let mut comparison = Comparison::new(&holders).unwrap();
            comparison.rules.broken = broken;
            has.iter().for_each(|(holder, sum)| comparison.answered(*holder, *sum));
            let Some(Repair { from, to }) = comparison.repair() else { break };
            to.into_iter().for_each(|holder| _ = has.insert(holder, has[&from]));
        }
        has.values().filter(|sum| **sum != has[&holders[0]]).count()
    }

    /// D4.
    #[test]
    fn after_a_repair_all_holders_have_the_same() {
        (0..1_000).for_each(|seed| assert_eq!(rounds(seed, None), 0, "seed {seed}"));
    }

    /// D4.
    #[test]
    fn without_repair_what_differs_stays_different() {
        let seed = (0..20).find(|seed| rounds(*seed, Some(Rule::D4)) > 0);
        println!("without D4: noticed at seed {}: holders differ", seed.unwrap());
    }

    #[test]
    fn a_chunk_with_one_holder_is_compared_with_nothing() {
        assert!(Comparison::new(&[NodeId(1)]).is_none());
        assert!(Comparison::new(&[]).is_none());
    }
}
