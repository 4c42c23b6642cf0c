//! The border that every call from C passes: no panic crosses it, and no forked child.
//!
//! After a panic an invariant of ours is broken: whatever is called next is refused with the words
//! of the first. In a child that was forked of a process that had a store open, our threads are not
//! there, and locks may be held by nobody: nothing is touched there, not even the table of handles.
//! So the error that a child gets is one for all, and needs no place.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::handle::{HANDLES, Table};

/// What a call answers in a child that was forked: a handle of a kind that there is not.
const FORKED: usize = 0xFF << 56 | 1;

/// What a call answers whose error finds no place among the handles.
const CROWDED: usize = 0xFF << 56 | 2;

/// The text of an error that is no handle of the table; both are `Unavailable`.
pub fn fixed_text(error: usize) -> Option<&'static CStr> {
    match error {
        FORKED => Some(
            c"this process was forked of one that used T\xC3\xBDr, whose threads are not here: \
              use it in the parent, or start the child with exec (posix_spawn)",
        ),
        CROWDED => Some(
            c"the call failed, and why cannot be told, for this process has 16,777,216 handles: \
              free those it is done with",
        ),
        _ => None,
    }
}

/// The border of a process.
pub static BORDER: Border = Border::new();

/// What is known of everything that went wrong at it.
#[derive(Debug)]
pub struct Border {
    is_child: AtomicBool,
    bug: OnceLock<String>,
}

impl Border {
    const fn new() -> Self {
        Self { is_child: AtomicBool::new(false), bug: OnceLock::new() }
    }

    /// Says that this process is a child. It is all that a child may do.
    pub fn note_fork(&self) {
        self.is_child.store(true, Ordering::Relaxed);
    }

    /// Whether this process was forked of one that used Týr.
    pub fn is_child(&self) -> bool {
        self.is_child.load(Ordering::Relaxed)
    }

    /// Runs what a call does. Answers the handle of its error, or 0.
    pub fn pass(&self, body: impl FnOnce() -> Result<(), Failure>) -> usize {
        self.pass_in(&HANDLES, body)
    }

    fn pass_in(&self, handles: &Table, body: impl FnOnce() -> Result<(), Failure>) -> usize {
        if self.is_child() {
            return FORKED;
        }
        let result = match self.bug.get() {
            Some(words) => Err(Failure::bug(words)),
            None => catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
                Err(self.note_bug(words.unwrap_or("no words")))
            }),
        };
        match result {
            Ok(()) => 0,
            Err(failure) => handles.add(failure).unwrap_or(CROWDED),
        }
    }

    /// Notes that an invariant is broken.
    pub fn note_bug(&self, words: &str) -> Failure {
        Failure::bug(self.bug.get_or_init(|| words.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::BUG;

    #[test]
    fn a_panic_is_an_error_and_after_it_every_call_is_refused() {
        let (border, handles) = (Border::new(), &HANDLES);
        assert_eq!(border.pass_in(handles, || Ok(())), 0);
        let error = border.pass_in(handles, || panic!("rule {} is broken", 3));
        let error = handles.take::<Failure>(error).unwrap();
        assert_eq!(error.kind(), BUG);
        assert!(error.text().to_string_lossy().contains("rule 3 is broken"));
        let next = border.pass_in(handles, || panic!("this must not run"));
        let next = handles.take::<Failure>(next).unwrap();
        assert!(next.text().to_string_lossy().contains("rule 3 is broken"));
        assert!(next.is_open());
    }

    #[test]
    fn a_child_runs_nothing() {
        let border = Border::new();
        border.note_fork();
        assert_eq!(border.pass(|| panic!("this must not run")), FORKED);
        assert!(fixed_text(FORKED).unwrap().to_str().unwrap().contains("Týr"));
    }
}
