//! What is looked at again and again of a node, and told the cluster log when it changes: how full
//! its disk is, whether its folder is there, whether its program is too old, whether somebody has
//! set its clock.
//!
//! Must not know: clocks and disks. Who calls says what they say.

use std::sync::Arc;

use super::disk::DiskReport;
use super::maintenance::ROOM_MIN;
use crate::remarks::Remarks;

/// A disk of which less than one part in so many is left is nearly full.
const NEARLY_FULL: u64 = 20;

/// So is one that has less than so many times what the node needs to take writes.
const NEARLY_FULL_ROOM: u64 = 4;

/// A clock that differs from the steady one by so much more than it did a moment ago was set: what
/// is slewed differs by parts in a thousand.
const JUMP_US: i128 = 1_000_000;

/// What was seen at a moment.
pub(super) struct Seen {
    pub disk: DiskReport,
    /// Why the node's folder is of no use any more.
    pub gone: Option<String>,
    /// Why its program is too old.
    pub outdated: Option<String>,
    /// The day's clock, in microseconds since 1970.
    pub wall_us: u64,
    /// The steady clock, in microseconds since some moment.
    pub steady_us: u64,
}

/// How full a disk is, in the order of how bad that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fullness {
    Roomy,
    NearlyFull,
    Full,
}

/// What was told last.
pub(super) struct Vigilance {
    remarks: Arc<Remarks>,
    fullness: Fullness,
    is_gone: bool,
    is_outdated: bool,
    /// The day's clock less the steady one.
    offset_us: Option<i128>,
}

impl Fullness {
    /// Of a disk that was told to be `before`: what has been told to be full has to have a quarter
    /// more than the bound to be told otherwise.
    fn of(disk: DiskReport, before: Self) -> Self {
        let DiskReport { size_bytes, room_bytes, .. } = disk;
        let nearly = (size_bytes / NEARLY_FULL).max(NEARLY_FULL_ROOM * ROOM_MIN);
        let is_below = |bound: u64, told: Self| match before >= told {
            true => room_bytes < bound + bound / 4,
            false => room_bytes < bound,
        };
        match (is_below(ROOM_MIN, Self::Full), is_below(nearly, Self::NearlyFull)) {
            (true, _) => Self::Full,
            (false, true) => Self::NearlyFull,
            (false, false) => Self::Roomy,
        }
    }
}

impl Vigilance {
    /// Nothing was told yet.
    pub fn new(remarks: Arc<Remarks>) -> Self {
        let (fullness, offset_us) = (Fullness::Roomy, None);
        Self { remarks, fullness, is_gone: false, is_outdated: false, offset_us }
    }

    /// Tells what has changed.
    pub fn look(&mut self, seen: Seen) {
        let Seen { disk, gone, outdated, wall_us, steady_us } = seen;
        let fullness = Fullness::of(disk, self.fullness);
        if disk.size_bytes > 0 && fullness != self.fullness {
            self.fullness = fullness;
            self.remarks.say(fullness_text(fullness, disk));
        }
        if let Some(why) = gone.filter(|_| !std::mem::replace(&mut self.is_gone, true)) {
            self.remarks.say(why);
        }
        match outdated {
            Some(why) if !self.is_outdated => {
                self.is_outdated = true;
                self.remarks.say(why);
            }
            Some(_) => {}
            None => self.is_outdated = false,
        }
        let offset_us = i128::from(wall_us) - i128::from(steady_us);
        if let Some(before) = self.offset_us.replace(offset_us)
            && (offset_us - before).abs() >= JUMP_US
        {
            let (jump, way) = match offset_us > before {
                true => (offset_us - before, "forward"),
                false => (before - offset_us, "back"),
            };
            let seconds = jump as f64 / 1e6;
            self.remarks.say(format!("its machine's clock was set {way} by {seconds:.1} s"));
        }
    }
}

fn fullness_text(fullness: Fullness, disk: DiskReport) -> String {
    let DiskReport { size_bytes, free_bytes, room_bytes } = disk;
    let left =
        format!("{free_bytes} of {size_bytes} bytes are free, of which it may take {room_bytes}");
    match fullness {
        Fullness::Roomy => format!("its disk has room again: {left}"),
        Fullness::NearlyFull => {
            format!("its disk is nearly full: {left}; below {ROOM_MIN} it refuses writes")
        }
        Fullness::Full => format!("its disk is full, and it refuses writes: {left}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn seen(room_bytes: u64) -> Seen {
        let disk = DiskReport { size_bytes: 100 * GIB, free_bytes: room_bytes + GIB, room_bytes };
        Seen { disk, gone: None, outdated: None, wall_us: 5_000_000, steady_us: 1_000_000 }
    }

    struct Stage {
        vigilance: Vigilance,
        remarks: Arc<Remarks>,
    }

    impl Stage {
        fn new() -> Self {
            let remarks = Remarks::new(1, Instant::now());
            Self { vigilance: Vigilance::new(Arc::clone(&remarks)), remarks }
        }

        /// What is told of it.
        fn told(&mut self, seen: Seen) -> Vec<String> {
            self.vigilance.look(seen);
            self.remarks.take_all()
        }
    }

    #[test]
    fn a_disk_that_fills_and_is_emptied_is_told_at_each_bound_once() {
        let mut stage = Stage::new();
        let none = Vec::<String>::new();
        assert_eq!(stage.told(seen(50 * GIB)), none);
        assert!(stage.told(seen(4 * GIB))[0].contains("nearly full: 5368709120 of 107374182400"));
        assert_eq!(stage.told(seen(4 * GIB)), none);
        assert_eq!(stage.told(seen(5 * GIB + 1)), none, "it goes to and fro about the bound");
        assert!(stage.told(seen(ROOM_MIN - 1))[0].contains("refuses writes"));
        assert_eq!(stage.told(seen(ROOM_MIN + 1)), none);
        assert!(stage.told(seen(2 * ROOM_MIN))[0].contains("nearly full"));
        assert!(stage.told(seen(7 * GIB))[0].contains("room again"));
    }

    #[test]
    fn a_clock_that_was_set_is_told_and_one_that_is_slewed_is_not() {
        let mut stage = Stage::new();
        let at = |wall_us, steady_us| Seen { wall_us, steady_us, ..seen(50 * GIB) };
        let told = [(10_000_000, 0), (10_500_250, 500_000), (11_000_500, 1_000_000)]
            .map(|(wall, steady)| stage.told(at(wall, steady)).len());
        assert_eq!(told, [0; 3]);
        let forward = stage.told(at(3_611_500_500, 1_500_000));
        assert_eq!(forward, ["its machine's clock was set forward by 3600.0 s"]);
        let back = stage.told(at(3_608_000_500, 2_000_000));
        assert_eq!(back, ["its machine's clock was set back by 4.0 s"]);
    }

    #[test]
    fn what_is_gone_or_outdated_is_told_once() {
        let mut stage = Stage::new();
        let gone = || Seen { gone: Some("gone".to_owned()), ..seen(50 * GIB) };
        let outdated = || Seen { outdated: Some("old".to_owned()), ..seen(50 * GIB) };
        assert_eq!(stage.told(gone()), ["gone"]);
        assert_eq!(stage.told(gone()).len(), 0);
        assert_eq!(stage.told(outdated()), ["old"]);
        assert_eq!(stage.told(outdated()).len(), 0);
    }
}
