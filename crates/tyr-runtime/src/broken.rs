//! Nodes that break a rule, so that a test can see its checker notice.
//!
//! Only with the feature `broken-rules`. A rule is taken away from the nodes that one thread opens
//! during one call, so other tests of the same process have whole ones.

use std::cell::Cell;

use tyr_protocol::member::Member;

pub use tyr_protocol::Rule;

thread_local! {
    static BROKEN: Cell<Option<Rule>> = const { Cell::new(None) };
}

/// Runs `open`; nodes that this thread opens meanwhile break `rule`: C1, C2, C6 or C7 in the
/// machine, or R5 in what drives it, so that a snapshot does not wait for what is in flight. A node
/// of a cluster breaks any rule that its machines ask.
pub fn with_broken<T>(rule: Rule, open: impl FnOnce() -> T) -> T {
    BROKEN.set(Some(rule));
    let opened = open();
    BROKEN.set(None);
    opened
}

/// The rule that a node opened here and now breaks.
pub fn chosen() -> Option<Rule> {
    BROKEN.get()
}

/// The member of a node opened here and now, without the rule that it breaks.
pub fn taken_from(mut member: Member) -> Member {
    if let Some(rule) = chosen() {
        member.break_rule(rule);
    }
    member
}
