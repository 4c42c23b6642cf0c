//! When which fault happens: from the seed alone.

use std::fmt;
use std::time::Duration;

use super::Fault;
use crate::random::Random;

/// A fault that is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// What.
    pub fault: Fault,
    /// Quiet before it.
    pub after: Duration,
    /// From its beginning to its mending.
    pub lasts: Duration,
    /// Decides whom it meets.
    pub pick: u64,
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
        let after = Duration::from_millis(random.between(1500, 4000));
        // Longer than a lease of 2 s, and than the 2.5 s after which a silent node is down; now and
        // then not.
        let lasts = Duration::from_millis(match random.below(4) {
            0 => random.between(300, 1800),
            _ => random.between(3000, 7000),
        });
        Some(Planned { fault, after, lasts, pick: random.any() })
    })
}

#[cfg(test)]
mod tests {
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
}
