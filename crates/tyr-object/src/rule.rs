//! The rules of calls that a test of this crate takes away, to see that they are missed.
//!
//! Outside of its unit tests every rule holds, and the question costs nothing.

/// A rule of `docs/design.md` by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// What a method has read is validated.
    O2,
    /// Calls that wait are run in one transaction.
    O4,
}

/// Which rules hold: all of them, but in a test that takes one away.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    #[cfg(test)]
    pub missing: Option<Rule>,
}

impl Rules {
    /// Whether `rule` holds.
    #[cfg(test)]
    pub fn hold(self, rule: Rule) -> bool {
        self.missing != Some(rule)
    }

    /// Whether `rule` holds.
    #[cfg(not(test))]
    pub fn hold(self, _rule: Rule) -> bool {
        true
    }
}
