//! The rules that a test can take away, to see that the checker notices.
//!
//! Outside of test builds, and without the feature `broken-rules`, which is for tests of other
//! crates, every rule holds and the question costs nothing.

/// A rule of the commit or read protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Reads are validated, conditions wait for those in flight.
    C1,
    /// A write waits for the validated reads it overlaps.
    C2,
    /// C2 for a chain of one: the write waits until what it overlaps is applied.
    C2Alone,
    /// Applied in timestamp order.
    C6,
    /// Acknowledged only when applied.
    C7,
    /// A clock moves past every timestamp it sees.
    C8,
    /// Appends reserve space, and keep off what moves the end of the blob.
    End,
    /// A direct read shows clean ranges only, or waits at the authority.
    R1,
    /// A version is shown only when it is stable.
    R2,
    /// A read of several chunks is placed after what was in flight on arrival.
    R3,
    /// A read at S waits for what may still be at or below S.
    R5,
}

/// Which rules hold: all of them, but in a test that takes one away.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    #[cfg(any(test, feature = "broken-rules"))]
    pub broken: Option<Rule>,
}

impl Rules {
    /// Whether `rule` holds.
    #[cfg(any(test, feature = "broken-rules"))]
    pub fn hold(self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }

    /// Whether `rule` holds.
    #[cfg(not(any(test, feature = "broken-rules")))]
    pub fn hold(self, _rule: Rule) -> bool {
        true
    }
}
