//! Going through all states, depth first.
//!
//! Where two steps are independent, both orders lead to the same state, and one is enough: the
//! other *sleeps* (Godefroid's sleep sets, with the sleeping steps of each state kept, so that a
//! state that is come to again is looked at again for what slept then and does not now). No state
//! is missed by it; that is tested.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use foldhash::fast::FixedState;
use tyr_protocol::Rule;

use super::case::Case;
use super::table::fingerprint;
use super::world::{Action, Actions, Explorer, Mishaps, World};

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What may go wrong in a run.
    pub mishaps: Mishaps,
    /// States after which it is given up.
    pub states_max: usize,
    /// A rule that is taken away.
    pub broken: Option<Rule>,
    /// Whether steps that are independent are taken in one order only. It is slower without, and
    /// sees the same states.
    pub is_reduced: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        let (mishaps, broken) = (Mishaps::default(), None);
        Self { mishaps, states_max: 10_000_000, broken, is_reduced: true }
    }
}

/// What a search came to.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Different states of the cluster that were seen.
    pub states: usize,
    /// Steps from one to another.
    pub transitions: usize,
    /// States in which all is done.
    pub ends: usize,
    /// Different states of a node.
    pub node_states: usize,
    /// Different steps of a node.
    pub node_steps: usize,
    /// The longest run.
    pub depth: usize,
    /// Whether there was nothing more to see.
    pub is_complete: bool,
    /// What is wrong, with the run that led there.
    pub violation: Option<Violation>,
}

/// A run that went wrong.
#[derive(Clone, Debug)]
pub struct Violation {
    /// What is wrong.
    pub what: String,
    /// What happened, a line each.
    pub run: Vec<String>,
}

/// A state on the way, and what is still to be done in it.
struct Frame {
    world: World,
    actions: Actions,
    /// The actions still to be taken, as bits by place.
    todo: u64,
    /// Those that need not be taken, or were: what comes of them is seen elsewhere.
    sleeping: u64,
    /// The one taken last.
    taken: usize,
}

/// The states seen, with the actions that were not taken there.
type Seen = HashMap<u128, u64, FixedState>;

struct Search {
    explorer: Explorer,
    bounds: Bounds,
    seen: Seen,
    stack: Vec<Frame>,
    findings: Findings,
}

/// Explores a case.
pub fn explore(case: Case, bounds: Bounds) -> Findings {
    let explorer = Explorer::new(case, bounds.mishaps, bounds.broken);
    let first = explorer.first();
    let (seen, stack, findings) = (Seen::default(), Vec::new(), Findings::default());
    let mut search = Search { explorer, bounds, seen, stack, findings };
    let wrong = search.enter(first, &[]).and_then(|()| search.run()).err();
    let Search { explorer, seen, stack, mut findings, .. } = search;
    let run = stack.iter().map(|frame| explorer.words(frame.actions[frame.taken])).collect();
    findings.violation = wrong.map(|what| Violation { what, run });
    findings.states = seen.len();
    findings.is_complete = stack.is_empty();
    findings.node_states = explorer.table.node_states();
    findings.node_steps = explorer.table.steps();
    findings
}

impl Search {
    fn run(&mut self) -> Result<(), String> {
        while let Some(frame) = self.stack.last_mut() {
            if frame.todo == 0 {
                self.stack.pop();
                continue;
            }
            if self.seen.len() >= self.bounds.states_max {
                return Ok(());
            }
            frame.taken = frame.todo.trailing_zeros() as usize;
            let action = frame.actions[frame.taken];
            frame.todo &= !bit(frame.taken);
            let asleep = places(frame.sleeping).map(|place| frame.actions[place]);
            let is_independent = |other: &Action| self.explorer.is_independent(*other, action);
            let asleep: Actions = match self.bounds.is_reduced {
                true => asleep.filter(is_independent).collect(),
                false => Actions::new(),
            };
            frame.sleeping |= bit(frame.taken);
            self.findings.transitions += 1;
            let world = self.explorer.after(&frame.world, action)?;
            self.enter(world, &asleep)?;
        }
        Ok(())
    }

    /// Comes to a state in which the actions `asleep` need not be taken.
    fn enter(&mut self, world: World, asleep: &[Action]) -> Result<(), String> {
        let actions = self.explorer.actions(&world)?;
        assert!(actions.len() <= 64, "a state has few enough actions for a word of bits");
        let mut sleeping = 0;
        for (place, action) in actions.iter().enumerate() {
            if asleep.contains(action) {
                sleeping |= bit(place);
            }
        }
        let all = (0..actions.len()).fold(0, |all, place| all | bit(place));
        let print = fingerprint(|gatherer| world.hash(gatherer));
        let todo = match self.seen.entry(print) {
            Entry::Vacant(entry) => {
                entry.insert(sleeping);
                self.findings.ends += usize::from(self.explorer.is_over(&world));
                all & !sleeping
            }
            Entry::Occupied(mut entry) => {
                let todo = *entry.get() & !sleeping;
                sleeping &= *entry.get();
                entry.insert(sleeping);
                todo
            }
        };
        if todo != 0 {
            self.stack.push(Frame { world, actions, todo, sleeping, taken: 0 });
            self.findings.depth = self.findings.depth.max(self.stack.len());
        }
        Ok(())
    }
}

fn bit(place: usize) -> u64 {
    1 << place
}

fn places(bits: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |place| bits & bit(*place) != 0)
}
