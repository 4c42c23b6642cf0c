//! How often a seat may be moved, whatever a policy says.
//!
//! A seat that was moved stays for a time. If it is then moved back to where it came from, that
//! time is twice as long the next time, up to a bound: so of a policy that moves a seat to and fro,
//! or of two nodes that are alike, there are few moves.

use std::collections::BTreeMap;

/// Seats that are remembered; those moved longest ago go first.
const SEATS_MAX: usize = 65_536;

/// A time is doubled so often at most.
const DOUBLED_MAX: u32 = 8;

/// The last move of a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moved {
    from: u16,
    at_us: u64,
    doubled: u32,
}

/// The last moves of seats.
#[derive(Clone, Debug)]
pub struct Bounds {
    cooldown_us: u64,
    moved: BTreeMap<String, Moved>,
}

impl Bounds {
    /// None yet; after a move a seat stays for so long.
    pub fn new(cooldown_us: u64) -> Self {
        Self { cooldown_us, moved: BTreeMap::new() }
    }

    /// Whether a seat may be moved now.
    pub fn may_move(&self, seat: &str, now_us: u64) -> bool {
        self.moved.get(seat).is_none_or(|moved| {
            now_us.saturating_sub(moved.at_us) >= self.cooldown_us << moved.doubled
        })
    }

    /// A seat is moved.
    pub fn note(&mut self, seat: &str, from: u16, to: u16, now_us: u64) {
        let before = self.moved.get(seat);
        let doubled = match before {
            Some(before) if before.from == to => (before.doubled + 1).min(DOUBLED_MAX),
            Some(_) | None => 0,
        };
        if self.moved.len() >= SEATS_MAX
            && let Some(oldest) = self.moved.iter().min_by_key(|(_, it)| it.at_us)
        {
            let oldest = oldest.0.clone();
            self.moved.remove(&oldest);
        }
        self.moved.insert(seat.to_owned(), Moved { from, at_us: now_us, doubled });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_stays_for_its_time_and_twice_as_long_each_time_it_goes_back() {
        let mut bounds = Bounds::new(10);
        assert!(bounds.may_move("a", 0));
        bounds.note("a", 1, 2, 0);
        assert!(!bounds.may_move("a", 9) && bounds.may_move("a", 10) && bounds.may_move("b", 0));
        bounds.note("a", 2, 1, 10);
        assert!(!bounds.may_move("a", 29) && bounds.may_move("a", 30));
        bounds.note("a", 1, 2, 30);
        assert!(!bounds.may_move("a", 69) && bounds.may_move("a", 70));
        // Elsewhere is no way back.
        bounds.note("a", 2, 3, 70);
        assert!(bounds.may_move("a", 80));
    }

    #[test]
    fn to_and_fro_for_a_day_is_few_moves() {
        let (mut bounds, mut moves) = (Bounds::new(30), 0);
        for second in 0..86_400_u64 {
            if bounds.may_move("a", second) {
                bounds.note("a", moves % 2, (moves + 1) % 2, second);
                moves += 1;
            }
        }
        assert!((10..=24).contains(&moves), "{moves}");
    }
}
