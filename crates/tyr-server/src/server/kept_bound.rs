//! Bounds what a node holds for kept snapshots (V7): beyond it, or when its disk is full, the
//! oldest is dropped, everywhere, and the cluster log names it.
//!
//! Until the node has heard that it was dropped, that is asked for again, which does nothing. What
//! a dropped one held is given back in steps, and its extents by the next fold: where the disk is
//! full, the next one is not dropped before there was time for that, whoever dropped the last.

use std::sync::Arc;
use std::time::Duration;

use tyr_control::MetadataClient;
use tyr_protocol::map::Change;
use tyr_store::store::Store;
use tyr_types::{ErrorKind, KeptName};

use super::maintenance::ROOM_MIN;
use crate::driver::Driver;
use crate::keeper::Keeper;
use crate::remarks::Remarks;

/// How often it is looked at what is held.
const EVERY: Duration = Duration::from_secs(2);

/// When one was dropped, so many looks pass before another is for its room.
const LOOKS_FOR_ROOM: u32 = 3 * LOOKS_PER_FOLD;

/// While the disk is full a fold is asked for every so many looks.
const LOOKS_PER_FOLD: u32 = 3;

/// What bounds it.
pub(super) struct KeptBound {
    store: Arc<Store>,
    keeper: Arc<Keeper>,
    remarks: Arc<Remarks>,
    client: MetadataClient,
    bytes_max: u64,
    bound: Bound,
}

impl KeptBound {
    /// So many bytes may be held where this driver drives.
    pub fn new(
        driver: &Arc<Driver>,
        keeper: Arc<Keeper>,
        client: MetadataClient,
        bytes_max: u64,
    ) -> Self {
        let (store, remarks) = (driver.store(), Arc::clone(&driver.remarks));
        Self { store, keeper, remarks, client, bytes_max, bound: Bound::default() }
    }

    /// Looks for as long as the node runs.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let base = self.store.base();
        let standing = Standing {
            oldest: base.kept().into_iter().next().map(|kept| kept.name),
            held: base.kept_bytes(),
            bytes_max: self.bytes_max,
            is_disk_full: self.store.room().is_ok_and(|room| room < ROOM_MIN),
            has_fold_failed: self.keeper.folds().1.is_some(),
        };
        match self.bound.look(standing) {
            Act::Nothing => {}
            Act::Fold => self.keeper.fold_soon(),
            Act::Drop(name, why) => self.drop_kept(&name, &why).await,
        }
    }

    async fn drop_kept(&self, name: &KeptName, why: &str) {
        let done = self.client.propose(Change::DropKept(name.clone())).await;
        match done {
            Ok(_) => {
                self.remarks.say(format!("kept snapshot {name} was dropped, the oldest: {why}"));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::debug!(%name, %error, "it cannot be dropped"),
        }
    }
}

/// How a node stands.
#[derive(Clone, Debug)]
struct Standing {
    oldest: Option<KeptName>,
    /// Bytes that are held for kept snapshots, and may be.
    held: u64,
    bytes_max: u64,
    /// Whether it refuses writes for lack of room.
    is_disk_full: bool,
    /// Whether folds fail: what they would replace they would have to hold.
    has_fold_failed: bool,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    /// By a fold what a dropped snapshot held becomes room, and before one it is not known what is
    /// to be held.
    Fold,
    /// The oldest goes, with why, and with what to do so that others need not.
    Drop(KeptName, String),
}

/// What was seen and done before.
#[derive(Debug, Default)]
struct Bound {
    oldest: Option<KeptName>,
    /// Looks that pass yet until one may be dropped for its room.
    looks_for_room: u32,
}

impl Bound {
    fn look(&mut self, standing: Standing) -> Act {
        let Standing { oldest, held, bytes_max, is_disk_full, has_fold_failed } = standing;
        self.looks_for_room = match self.oldest.is_some() && self.oldest != oldest {
            true => LOOKS_FOR_ROOM,
            false => self.looks_for_room.saturating_sub(1),
        };
        self.oldest.clone_from(&oldest);
        let is_room_due = self.looks_for_room == 0;
        match oldest {
            Some(oldest) if held > bytes_max => Act::Drop(
                oldest,
                format!(
                    "{held} bytes are held for kept snapshots, and kept_bytes_max is {bytes_max}; \
                     raise it, or keep fewer"
                ),
            ),
            Some(oldest) if is_disk_full && is_room_due && (held > 0 || has_fold_failed) => {
                self.looks_for_room = LOOKS_FOR_ROOM;
                Act::Drop(
                    oldest,
                    format!(
                        "its disk is full, and {held} bytes are held for kept snapshots; make \
                         room, or keep fewer"
                    ),
                )
            }
            Some(_) if is_disk_full && is_room_due => {
                self.looks_for_room = LOOKS_PER_FOLD;
                Act::Fold
            }
            Some(_) | None if is_disk_full && self.is_fold_due() => Act::Fold,
            Some(_) | None => Act::Nothing,
        }
    }

    fn is_fold_due(&self) -> bool {
        (1..LOOKS_FOR_ROOM).contains(&self.looks_for_room)
            && self.looks_for_room.is_multiple_of(LOOKS_PER_FOLD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> KeptName {
        KeptName::new(name).unwrap()
    }

    fn standing(oldest: &str) -> Standing {
        let oldest = (!oldest.is_empty()).then(|| name(oldest));
        let (is_disk_full, has_fold_failed) = (false, false);
        Standing { oldest, held: 100, bytes_max: 100, is_disk_full, has_fold_failed }
    }

    fn full(oldest: &str) -> Standing {
        Standing { is_disk_full: true, ..standing(oldest) }
    }

    #[test]
    fn the_oldest_goes_while_more_is_held_than_may_be() {
        let mut bound = Bound::default();
        assert_eq!(bound.look(standing("a")), Act::Nothing);
        let more = |oldest| Standing { held: 101, ..standing(oldest) };
        for oldest in ["a", "a", "b"] {
            let Act::Drop(dropped, why) = bound.look(more(oldest)) else {
                panic!("it is too much")
            };
            assert_eq!(dropped, name(oldest));
            assert!(why.contains("kept_bytes_max is 100; raise it, or keep fewer"), "{why}");
        }
        assert_eq!(bound.look(Standing { held: 0, ..more("b") }), Act::Nothing);
        assert_eq!(bound.look(Standing { held: 0, ..more("") }), Act::Nothing);
    }

    #[test]
    fn on_a_full_disk_one_goes_at_a_time_and_folds_make_room_of_it() {
        let mut bound = Bound::default();
        let dropped = |act: Act| match act {
            Act::Drop(name, why) => why.starts_with("its disk is full").then_some(name),
            Act::Nothing | Act::Fold => None,
        };
        assert_eq!(dropped(bound.look(full("a"))), Some(name("a")));
        // As soon as it is heard of; so it is where another node dropped it.
        let acts: Vec<Act> = (0..=LOOKS_FOR_ROOM).map(|_| bound.look(full("b"))).collect();
        let (last, before) = acts.split_last().unwrap();
        let folds = before.iter().filter(|act| **act == Act::Fold).count();
        assert_eq!((folds, before.len()), (2, LOOKS_FOR_ROOM as usize));
        assert!(matches!(last, Act::Drop(..)), "it was time");
        let alone: Vec<Act> = (0..20).map(|_| bound.look(full(""))).collect();
        assert_eq!(alone.iter().filter(|act| **act == Act::Fold).count(), 2, "and no more then");
        assert_eq!(bound.look(standing("c")), Act::Nothing);
    }

    #[test]
    fn on_a_full_disk_nothing_goes_by_which_no_room_is_won() {
        let mut bound = Bound::default();
        let nothing = || Standing { held: 0, ..full("a") };
        let acts: Vec<Act> = (0..6).map(|_| bound.look(nothing())).collect();
        assert_eq!(acts.iter().filter(|act| **act == Act::Fold).count(), 2, "{acts:?}");
        assert!(!acts.iter().any(|act| matches!(act, Act::Drop(..))), "{acts:?}");
        let failed = || Standing { has_fold_failed: true, ..nothing() };
        assert!((0..=LOOKS_PER_FOLD).any(|_| matches!(bound.look(failed()), Act::Drop(..))));
    }
}
