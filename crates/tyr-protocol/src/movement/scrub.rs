//! Scrubbing: do all holders of a chunk have the same?
//!
//! The authority takes its clock S, as for a snapshot, and every holder reads the chunk at S and
//! sums what it found, with [`ChunkCopy::checksum`](super::ChunkCopy) of the newest version. What
//! most have is right; on a tie what the authority has. Who has something else copies the chunk
//! again, from one that has it right. A holder that does not answer is left for the next round.
//!
//! This module must not know how holders are asked, nor how often.

use std::collections::BTreeMap;

use tyr_types::NodeId;

use crate::rule::{Rule, Rules};

/// What holders have of a chunk at a timestamp, as far as they have said.
#[derive(Clone, Debug)]
pub struct Comparison {
    authority: NodeId,
    /// One for each holder; `None` until it has answered.
    sums: BTreeMap<NodeId, Option<u64>>,
    rules: Rules,
}

/// Who has to copy the chunk again, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// One that has it right: the authority, if it has.
    pub from: NodeId,
    /// Those that have something else, in node order.
    pub to: Vec<NodeId>,
}

impl Comparison {
    /// A comparison among these holders, of which the first in node order is the authority; `None`
    /// when there are not two.
    pub fn new(holders: &[NodeId]) -> Option<Self> {
        let authority = holders.iter().min().copied()?;
        let sums: BTreeMap<_, _> = holders.iter().map(|holder| (*holder, None)).collect();
        (sums.len() > 1).then_some(Self { authority, sums, rules: Rules::default() })
    }

    /// The holders that have not answered.
    pub fn waiting(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.sums.iter().filter(|(_, sum)| sum.is_none()).map(|(holder, _)| *holder)
    }

    /// A holder says what it has. The first answer counts, and none of who was not asked.
    pub fn answered(&mut self, holder: NodeId, sum: u64) {
        if let Some(known) = self.sums.get_mut(&holder) {
            known.get_or_insert(sum);
        }
    }

    /// What to do by the answers so far; `None` when all who answered have the same, or fewer than
    /// two did.
    pub fn repair(&self) -> Option<Repair> {
        let answers = || self.sums.iter().filter_map(|(holder, sum)| Some((*holder, (*sum)?)));
        let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
        for (_, sum) in answers() {
            *votes.entry(sum).or_default() += 1;
        }
        if votes.len() < 2 || !self.rules.hold(Rule::D4) {
            return None;
        }
        let preferred = self.sums.get(&self.authority).copied().flatten();
        let (right, _) = votes.into_iter().max_by_key(|(sum, votes)| {
            (*votes, Some(*sum) == preferred, *sum) // The last only makes it the same every time.
        })?;
        let holds_right = |holder: NodeId| self.sums[&holder] == Some(right);
        let from = match holds_right(self.authority) {
            true => self.authority,
            false => answers().map(|(holder, _)| holder).find(|holder| holds_right(*holder))?,
        };
        let differs = |(holder, sum): (NodeId, u64)| (sum != right).then_some(holder);
        Some(Repair { from, to: answers().filter_map(differs).collect() })
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
