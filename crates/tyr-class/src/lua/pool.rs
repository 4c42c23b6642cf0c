//! Machines that wait for their next call.
//!
//! Each thread has its own, for a virtual machine belongs to one thread. A call takes one out and
//! puts it back, so a call within a call gets another. What all threads of the process keep has a
//! bound in bytes: scripts that leave much behind would else fill its memory, one a thread.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tyr_types::Error;

use super::Script;
use super::machine::Machine;
use crate::limits::{MACHINE_BYTES_MAX, MACHINES_MAX};

thread_local! {
    /// The oldest first.
    static MACHINES: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// What all threads keep.
static KEPT: Room = Room::new(MACHINE_BYTES_MAX);

/// Bytes that are taken, of a bound.
struct Room {
    taken: AtomicUsize,
    max: usize,
}

impl Room {
    const fn new(max: usize) -> Self {
        Self { taken: AtomicUsize::new(0), max }
    }

    /// Takes some, if they are there.
    fn take(&'static self, bytes: usize) -> Option<Share> {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.max);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        // Not made before that is known: what is made gives back when it is dropped.
        taken.ok().map(|_| Share { of: self, bytes })
    }
}

/// Bytes of a room, given back when this is dropped.
struct Share {
    of: &'static Room,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A machine that waits, of this script.
struct Kept {
    script: Weak<Script>,
    machine: Machine,
    _share: Share,
}

/// A machine with this script.
///
/// # Errors
/// Those of [`Machine::new`].
pub fn take(script: &Arc<Script>) -> Result<Machine, Error> {
    let found = MACHINES.with_borrow_mut(|machines| {
        let at = machines.iter().rposition(|it| it.script.as_ptr() == Arc::as_ptr(script))?;
        Some(machines.remove(at).machine)
    });
    match found {
        Some(machine) => Ok(machine),
        None => Machine::new(&script.source, &script.limits, Arc::clone(&script.clock)),
    }
}

/// Puts a machine back, if there is room for it. Those of scripts that are gone go, and the oldest
/// where there are many.
pub fn put(script: &Arc<Script>, machine: Machine) {
    let is_gone = |it: &mut Kept| it.script.strong_count() == 0;
    drop(MACHINES.with_borrow_mut(|it| it.extract_if(.., is_gone).collect::<Vec<_>>()));
    let share = KEPT.take(machine.used_memory());
    let is_full = share.is_none();
    let kept = share.map(|share| Kept { script: Arc::downgrade(script), machine, _share: share });
    let gone: Vec<Kept> = MACHINES.with_borrow_mut(|machines| {
        machines.extend(kept);
        // Where all is taken this thread makes room for what comes next.
        let many = machines.len().saturating_sub(MACHINES_MAX).max(usize::from(is_full));
        machines.drain(..many.min(machines.len())).collect()
    });
    drop(gone);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::limits::Limits;
    use crate::lua::LuaClass;
    use crate::testing::MemoryContext;

    fn class() -> LuaClass {
        let script = b"return { name = 'c', methods = { run = { kind = 'call', run = function()
                         return ('x'):rep(2 ^ 30) end } } }";
        LuaClass::compile(script, Limits::IN_PLACE, Arc::new(|| Duration::ZERO)).unwrap()
    }

    fn kept() -> usize {
        MACHINES.with_borrow(Vec::len)
    }

    #[test]
    fn machines_of_classes_that_are_gone_go_and_others_have_a_bound() {
        let classes: Vec<LuaClass> = (0..MACHINES_MAX + 3).map(|_| class()).collect();
        assert_eq!(kept(), MACHINES_MAX);
        drop(classes);
        let _one = class();
        assert_eq!(kept(), 1);
    }

    #[test]
    fn what_all_threads_keep_has_a_bound_and_what_is_dropped_makes_room() {
        static ROOM: Room = Room::new(100);
        let first = ROOM.take(60).unwrap();
        assert!(ROOM.take(60).is_none());
        let second = ROOM.take(40).unwrap();
        assert!(ROOM.take(usize::MAX).is_none());
        drop(first);
        assert!(ROOM.take(60).is_some());
        drop(second);
        assert!(ROOM.take(100).is_some());
    }

    #[test]
    fn a_machine_counts_with_what_it_has_until_it_is_taken_out() {
        // Others count at the same time, in their threads; this one's are looked at.
        let class = class();
        let share = MACHINES.with_borrow(|machines| machines[0]._share.bytes);
        assert!(share > 100 << 10, "{share} bytes");
        MemoryContext::new().call(&class, "run", b"").unwrap_err();
        assert_eq!(kept(), 0, "its bytes went with it");
    }

    #[test]
    fn a_machine_that_met_its_memory_limit_is_not_kept() {
        let class = class();
        assert_eq!(kept(), 1);
        MemoryContext::new().call(&class, "run", b"").unwrap_err();
        assert_eq!(kept(), 0);
    }
}
