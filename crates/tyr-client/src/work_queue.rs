//! Where work waits for whoever drives.

use tyr_protocol::session::{Call, CallId, Event};

use super::answer::Waiter;

/// Work that waits at most. What a client works off in about half a second; beyond it calls are
/// refused, and messages lost, which come again (F6).
pub(super) const WORK_MAX: usize = 1 << 17;

const _: () = assert!(WORK_MAX > 0);

/// Something to be worked off.
pub(super) enum Work {
    /// A call, with who waits for its answer.
    Call { call: CallId, what: Call, waiter: Waiter },
    /// Anything else that the session is told.
    Event(Event),
}

/// Work that waits, and whether somebody sees to it.
#[derive(Default)]
pub(super) struct WorkQueue {
    /// At most [`WORK_MAX`].
    work: Vec<Work>,
    /// Somebody drives, and takes what is put down before leaving.
    is_driven: bool,
    is_closed: bool,
    is_abandoned: bool,
    calls: u64,
}

/// What came of putting work down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// Nobody drives: whoever put it down has to, and counts as driving from now on.
    Drive,
    /// It is seen to.
    Taken,
    /// There is too much of it already.
    Full,
    /// Nothing is worked off any more.
    Closed,
}

impl WorkQueue {
    /// A new call's number.
    pub fn next_call(&mut self) -> CallId {
        self.calls += 1;
        CallId(self.calls)
    }

    /// Whether work can be put down.
    pub fn room(&self) -> Result<(), Put> {
        match (self.is_closed, self.work.len() < WORK_MAX) {
            (true, _) => Err(Put::Closed),
            (false, true) => Ok(()),
            (false, false) => Err(Put::Full),
        }
    }

    /// Puts work down for which there is [room](WorkQueue::room).
    pub fn put(&mut self, work: Work) -> Put {
        debug_assert!(self.room().is_ok(), "there is room: who puts it down has asked");
        self.work.push(work);
        self.claim()
    }

    /// Puts events down as far as there is room; answers how many were lost too.
    pub fn put_all(&mut self, events: impl Iterator<Item = Event>) -> (Put, u64) {
        if self.is_closed {
            return (Put::Closed, 0);
        }
        let room = WORK_MAX.saturating_sub(self.work.len());
        let mut events = events.map(Work::Event);
        self.work.extend(events.by_ref().take(room));
        debug_assert!(self.work.len() <= WORK_MAX, "what waits is bounded");
        let lost = events.count() as u64;
        debug_assert!(
            lost == 0 || self.work.len() == WORK_MAX,
            "nothing is lost while there is room"
        );
        (self.claim(), lost)
    }

    /// What waits, in exchange for an empty list, whose memory is used again; `false` when nothing
    /// does: then nobody drives any more.
    pub fn take(&mut self, room: &mut Vec<Work>) -> bool {
        debug_assert!(room.is_empty(), "what was taken before was worked off");
        debug_assert!(self.is_driven || self.is_closed, "who takes work drives");
        let is_empty = self.work.is_empty();
        self.is_driven = !is_empty;
        std::mem::swap(&mut self.work, room);
        debug_assert!(self.work.is_empty(), "all of it is taken");
        debug_assert_eq!(self.is_driven, !room.is_empty(), "who leaves has left nothing");
        !is_empty
    }

    /// Whoever drove failed in the middle of it, or nothing is to be done any more.
    pub fn close(&mut self) -> Put {
        self.is_closed = true;
        debug_assert_eq!(self.room(), Err(Put::Closed), "nothing is put down any more");
        self.claim()
    }

    /// Whether nothing is worked off any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whoever waited for something has heard that nothing comes; what is left is let go.
    pub fn abandon(&mut self) -> Vec<Work> {
        debug_assert!(self.is_closed, "whoever comes now would wait for ever");
        self.is_abandoned = true;
        std::mem::take(&mut self.work)
    }

    /// Whether all of the end is done.
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    fn claim(&mut self) -> Put {
        match std::mem::replace(&mut self.is_driven, true) {
            true => Put::Taken,
            false => Put::Drive,
        }
    }
}
