//! When which fault happens: from the seed alone.

use std::fmt;
use std::time::Duration;

use super::Fault;
use crate::random::Random;

/// Cuts last at least so long, and little more: what nodes remember they remember for 60 s.
const CUT_LASTS: Duration = Duration::from_secs(90);

/// Faults within a cut, at most.
const WITHIN_MAX: u64 = 3;

/// A fault that is going to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What.
    pub fault: Fault,
    /// Quiet before it.
    pub after: Duration,
    /// From its beginning to its mending.
    pub lasts: Duration,
    /// Decides whom it meets.
    pub pick: u64,
    /// What happens meanwhile, one after the other.
    pub within: Vec<Planned>,
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (after, lasts) = (self.after.as_secs_f64(), self.lasts.as_secs_f64());
        write!(f, "{:.1} s quiet, {} for {lasts:.1} s", after, self.fault.name())
    }
}

/// Faults without end, drawn from the seed: each kind once, in some order, then each once more.
pub fn schedule(seed: u64, faults: &[Fault]) -> impl Iterator<Item = Planned> + use<> {
    let mut random = Random::of(seed, "faults", 0);
    let kinds = faults.to_vec();
    let mut round = Vec::new();
    std::iter::from_fn(move || {
        if round.is_empty() {
            round.clone_from(&kinds);
            random.shuffle(&mut round);
        }
        let fault = round.pop()?;
        let mut planned = draw(&mut random, fault, 1500, 4000);
        if fault.is_long() {
            planned.lasts = CUT_LASTS + Duration::from_millis(random.below(5000));
            planned.within = within(&mut random, &kinds);
        }
        Some(planned)
    })
}

/// A fault with so many milliseconds of quiet before it, with nothing within.
fn draw(random: &mut Random, fault: Fault, least: u64, most: u64) -> Planned {
    let after = Duration::from_millis(random.between(least, most));
    // Longer than a lease of 2 s, and than the 2.5 s after which a silent node is down; now and
    // then not.
    let lasts = Duration::from_millis(match random.below(4) {
        0 => random.between(300, 1800),
        _ => random.between(3000, 7000),
    });
    Planned { fault, after, lasts, pick: random.any(), within: Vec::new() }
}

/// What happens while lines are cut: nothing, or a few of the kinds that may.
fn within(random: &mut Random, kinds: &[Fault]) -> Vec<Planned> {
    let mut may = kinds.to_vec();
    may.retain(|fault| fault.may_be_within());
    let count = if may.is_empty() { 0 } else { random.below(WITHIN_MAX + 1) };
    let one = |_| {
        let fault = random.pick(&may);
        draw(random, fault, 5000, 20_000)
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_seed_is_one_schedule_and_every_fault_comes() {
        let draw = |seed| schedule(seed, &Fault::ALL).take(Fault::ALL.len()).collect::<Vec<_>>();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
        let mut kinds: Vec<Fault> = draw(3).iter().map(|planned| planned.fault).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, Fault::ALL);
    }

    #[test]
    fn without_faults_nothing_happens() {
        assert_eq!(schedule(1, &[]).count(), 0);
    }

    #[test]
    fn cuts_outlast_what_nodes_remember_and_what_happens_within_them() {
        let mut within = BTreeSet::new();
        for planned in schedule(5, &Fault::ALL).take(20 * Fault::ALL.len()) {
            let lasts: Duration = planned.within.iter().map(|it| it.after + it.lasts).sum();
            assert!(planned.within.is_empty() || lasts < planned.lasts);
            assert_eq!(planned.fault.is_long(), planned.lasts >= CUT_LASTS);
            within.extend(planned.within.iter().map(|it| it.fault));
        }
        assert!(within.iter().all(|fault| fault.may_be_within()));
        let may = Fault::ALL.into_iter().filter(|fault| fault.may_be_within());
        assert_eq!(within, may.collect());
    }
}
