//! Machines that wait for their next call.
//!
//! Each thread has its own, for a virtual machine belongs to one thread. A call takes one out and
//! puts it back, so a call within a call gets another.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use tyr_types::Error;

use super::Script;
use super::machine::Machine;
use crate::limits::MACHINES_MAX;

thread_local! {
    /// The oldest first.
    static MACHINES: RefCell<Vec<(Weak<Script>, Machine)>> = const { RefCell::new(Vec::new()) };
}

/// A machine with this script.
///
/// # Errors
/// Those of [`Machine::new`].
pub fn take(script: &Arc<Script>) -> Result<Machine, Error> {
    let found = MACHINES.with_borrow_mut(|machines| {
        let at = machines.iter().rposition(|(of, _)| of.as_ptr() == Arc::as_ptr(script))?;
        Some(machines.remove(at).1)
    });
    match found {
        Some(machine) => Ok(machine),
        None => Machine::new(&script.source, &script.limits, Arc::clone(&script.clock)),
    }
}

/// Puts a machine back. Those of scripts that are gone go, and the oldest where there are many.
pub fn put(script: &Arc<Script>, machine: Machine) {
    let gone: Vec<_> = MACHINES.with_borrow_mut(|machines| {
        machines.push((Arc::downgrade(script), machine));
        let (kept, mut gone): (Vec<_>, Vec<_>) =
            machines.drain(..).partition(|(of, _)| of.strong_count() > 0);
        *machines = kept;
        let many = machines.len().saturating_sub(MACHINES_MAX);
        gone.extend(machines.drain(..many));
        gone
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
    fn a_machine_that_met_its_memory_limit_is_not_kept() {
        let class = class();
        assert_eq!(kept(), 1);
        MemoryContext::new().call(&class, "run", b"").unwrap_err();
        assert_eq!(kept(), 0);
    }
}
