//! A policy: a script that says when a node gives seats away, to whom, and how many.
//!
//! It runs as a method of an object class does, in the same sandbox, within fuel, time and memory
//! ([`tyr_class`]), anew for each node and tick. What is left of a run is its state alone.

use std::fmt;
use std::time::Duration;

use tyr_class::testing::MemoryContext;
use tyr_class::{Clock, Limits, LuaClass};
use tyr_types::{Error, Result};

use crate::metrics::NodeMetrics;
use crate::script::{Answer, HOST, answered, given};

/// What a state has at most, in bytes: a count, or a few words.
pub const STATE_LEN_MAX: usize = 1_024;

/// A policy, compiled.
pub struct Policy {
    class: LuaClass,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Policy")
    }
}

impl Policy {
    /// The policy of this script, each run of which may take so long by this clock.
    ///
    /// # Errors
    /// `InvalidArgument` when it cannot be compiled, or is no policy, with the line.
    pub fn compile(script: &str, time: Duration, clock: Clock) -> Result<Self> {
        // Behind the policy, so that its lines have their numbers.
        let source = format!("{script}\n{HOST}");
        let limits = Limits { time, ..Limits::IN_PLACE };
        let class = LuaClass::compile(source.as_bytes(), limits, clock)
            .map_err(|error| error.context("the script is no policy"))?;
        let policy = Self { class };
        // Whoever has nothing gives nothing; what fails even so will always fail.
        let idle = NodeMetrics::default();
        let nodes = [idle.clone(), NodeMetrics { node: 1, ..idle }];
        policy.run(0, &nodes, None).map_err(|text| {
            Error::invalid(format!("the policy fails where nobody has a seat: {text}"))
        })?;
        Ok(policy)
    }

    /// What the node at this place in the list is to give.
    ///
    /// # Errors
    /// Why there is no answer, in words: the script is broken, or met a limit.
    pub fn run(
        &self,
        at: usize,
        nodes: &[NodeMetrics],
        state: Option<&str>,
    ) -> Result<Answer, String> {
        let input = given(at, nodes, state);
        let answer = MemoryContext::new().call(&self.class, "tick", input.as_bytes());
        let answer = answer.map_err(|failure| failure.text().to_owned())?;
        let text = std::str::from_utf8(&answer).map_err(|_| "it answered no text".to_owned())?;
        let answer = answered(text, nodes.len())?;
        match answer.state.as_ref().is_some_and(|state| state.len() > STATE_LEN_MAX) {
            true => Err(format!("its state has more than {STATE_LEN_MAX} bytes")),
            false => Ok(answer),
        }
    }
}
