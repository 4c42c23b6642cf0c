//! A smaller run that still fails.
//!
//! Works on a drawn scenario: takes away faults, workloads, clients, nodes, time and what is
//! unusual about the surroundings, as long as a run of what is left fails in the same way. What is
//! left is a scenario again, with the seed that it fails with.

use crate::scenario::fault::{Fault, FaultLine};
use crate::scenario::quantity::{Micros, Span};
use crate::scenario::{Checkpoints, Scenario, draw};

/// A scenario and a seed with which it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The scenario; its choices are closed.
    pub scenario: Scenario,
    /// The seed.
    pub seed: u64,
}

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Runs in all.
    pub runs_max: usize,
    /// Seeds tried for each smaller scenario: taking something away moves everything else.
    pub seeds: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { runs_max: 2_000, seeds: 3 }
    }
}

/// Makes `case` smaller as long as `fails` says so; answers it and the number of runs made.
pub fn shrink(
    case: Case,
    effort: Effort,
    fails: impl FnMut(&Scenario, u64) -> bool,
) -> (Case, usize) {
    let mut case = case;
    case.scenario = draw::draw(&case.scenario, case.seed);
    let mut search = Search { case, effort, runs: 0, fails };
    while search.round() {}
    (search.case, search.runs)
}

struct Search<F> {
    case: Case,
    effort: Effort,
    runs: usize,
    fails: F,
}

impl<F: FnMut(&Scenario, u64) -> bool> Search<F> {
    /// Tries everything once; whether anything got smaller.
    fn round(&mut self) -> bool {
        let mut is_smaller = self.shorten();
        is_smaller |= self.drop_workloads();
        is_smaller |= self.drop_keyspaces();
        is_smaller |= self.drop_faults();
        is_smaller |= self.lessen(|scenario| &mut scenario.clients);
        is_smaller |= self.lessen(|scenario| &mut scenario.nodes);
        is_smaller |= self.lessen(|scenario| &mut scenario.replication);
        is_smaller |= self.calm();
        is_smaller |= self.halve_parameters();
        is_smaller
    }

    /// Makes `smaller` the case if it fails.
    fn accept(&mut self, smaller: Scenario) -> bool {
        if smaller == self.case.scenario || smaller.check().is_err() {
            return false;
        }
        for seed in self.case.seed..self.case.seed.saturating_add(self.effort.seeds) {
            if self.runs >= self.effort.runs_max {
                return false;
            }
            self.runs += 1;
            if (self.fails)(&smaller, seed) {
                self.case = Case { scenario: smaller, seed };
                return true;
            }
        }
        false
    }

    /// Cuts the end off: the run is half as long, then three quarters, then nine tenths.
    fn shorten(&mut self) -> bool {
        let mut is_smaller = false;
        for (part, whole) in [(1, 2), (3, 4), (9, 10)] {
            while self.shorten_to(part, whole) {
                is_smaller = true;
            }
        }
        is_smaller
    }

    fn shorten_to(&mut self, part: u64, whole: u64) -> bool {
        let mut smaller = self.case.scenario.clone();
        let length = Micros(smaller.length.0 * part / whole).in_milliseconds();
        smaller.length = length.max(Micros::seconds(1));
        smaller.heal = smaller.heal.filter(|heal| *heal < smaller.length);
        let healed = smaller.healed_at();
        smaller.faults.retain(|fault| draw::begin(fault) < healed);
        for fault in &mut smaller.faults {
            let rest = Micros(healed.0 - draw::begin(fault).0);
            let cut = |lasts: Span<Micros>| Span::exactly(lasts.low.min(rest));
            fault.lasts = fault.lasts.map(cut);
        }
        self.accept(smaller)
    }

    fn drop_workloads(&mut self) -> bool {
        self.drop_from(|scenario| &mut scenario.workloads)
    }

    /// Takes workloads into the first keyspace, and drops those that nobody names then.
    fn drop_keyspaces(&mut self) -> bool {
        let mut is_smaller = false;
        for workload in 0..self.case.scenario.workloads.len() {
            let mut smaller = self.case.scenario.clone();
            smaller.workloads[workload].keyspaces.clear();
            is_smaller |= self.accept(smaller);
        }
        for place in (1..self.case.scenario.keyspaces.len()).rev() {
            let mut smaller = self.case.scenario.clone();
            smaller.keyspaces.remove(place);
            is_smaller |= self.accept(smaller);
        }
        is_smaller
    }

    fn drop_faults(&mut self) -> bool {
        self.drop_from(|scenario| &mut scenario.faults)
    }

    /// Drops elements of a list: half of them at a time, then fewer, then one by one.
    fn drop_from<T>(&mut self, list: impl Fn(&mut Scenario) -> &mut Vec<T>) -> bool {
        let mut is_smaller = false;
        let mut count = list(&mut self.case.scenario).len();
        while count > 0 {
            let mut at = 0;
            while at < list(&mut self.case.scenario).len() {
                let mut smaller = self.case.scenario.clone();
                let len = list(&mut smaller).len();
                list(&mut smaller).drain(at..(at + count).min(len));
                match self.accept(smaller) {
                    true => is_smaller = true,
                    false => at += count,
                }
            }
            count /= 2;
        }
        is_smaller
    }

    /// Halves a number, or takes one off it.
    fn lessen(&mut self, number: impl Fn(&mut Scenario) -> &mut Span<u16>) -> bool {
        let mut is_smaller = false;
        loop {
            let now = number(&mut self.case.scenario).low;
            let mut goals = vec![now / 2, now.saturating_sub(1)];
            goals.retain(|goal| (1..now).contains(goal));
            let is_done = !goals.into_iter().any(|goal| {
                let mut smaller = self.case.scenario.clone();
                *number(&mut smaller) = Span::exactly(goal);
                self.accept(without_strangers(smaller))
            });
            if is_done {
                return is_smaller;
            }
            is_smaller = true;
        }
    }

    /// Makes the surroundings ordinary, one after the other.
    fn calm(&mut self) -> bool {
        let usual = Scenario::default();
        let edits: [&dyn Fn(&mut Scenario); 10] = [
            &|scenario| scenario.network.loss = usual.network.loss,
            &|scenario| scenario.network.duplicate = usual.network.duplicate,
            &|scenario| scenario.network.slow = usual.network.slow,
            &|scenario| scenario.network.delay = usual.network.delay,
            &|scenario| scenario.clocks = usual.clocks,
            &|scenario| scenario.sync = usual.sync,
            &|scenario| scenario.checkpoint = Checkpoints::Never,
            &|scenario| scenario.keyspaces[0] = usual.keyspaces[0].clone(),
            &|scenario| scenario.heal = None,
            &|scenario| scenario.about.clear(),
        ];
        let mut is_smaller = false;
        for edit in edits {
            let mut smaller = self.case.scenario.clone();
            edit(&mut smaller);
            is_smaller |= self.accept(smaller);
        }
        is_smaller
    }

    fn halve_parameters(&mut self) -> bool {
        let mut is_smaller = false;
        for workload in 0..self.case.scenario.workloads.len() {
            for parameter in 0..self.case.scenario.workloads[workload].parameters.len() {
                loop {
                    let mut smaller = self.case.scenario.clone();
                    let value = &mut smaller.workloads[workload].parameters[parameter].1;
                    *value = (*value / 2).max(1);
                    if !self.accept(smaller) {
                        break;
                    }
                    is_smaller = true;
                }
            }
        }
        is_smaller
    }
}

/// The scenario without the faults that name nodes or clients it does not have; who joins moves up.
fn without_strangers(mut scenario: Scenario) -> Scenario {
    let nodes = scenario.nodes.low;
    let joins = |line: &FaultLine| matches!(line.fault, Fault::Join(_));
    scenario.faults.retain(|line| {
        joins(line) || line.fault.named_nodes().into_iter().all(|node| node < nodes)
    });
    let clients = scenario.clients.low;
    scenario.faults.retain(|line| line.fault.named_client().is_none_or(|it| it < clients));
    let mut next = nodes;
    for line in &mut scenario.faults {
        if let Fault::Join(node) = &mut line.fault {
            *node = Some(next);
            next += 1;
        }
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::fault::Target;
    use crate::scenario::parse::parse;

    const LARGE: &str = "\
        nodes 7, replication 3, clients 16, 40 s\n\
        keyspace chunk 64 KiB, live 2\n\
        workload bank accounts 40\n\
        workload lists blobs 16\n\
        workload counters\n\
        network delay 1..9 ms, loss 2 %, duplicate 3 %\n\
        clocks drift 2 %, jump 30 s sometimes\n\
        every 3 s crash random for 1 s\n\
        at 7 s crash node 2 for 2 s\n\
        every 5 s partition random halves for 500 ms\n\
        at 9 s join\n\
        heal at 35 s\n";

    fn crashes_node_2(scenario: &Scenario) -> bool {
        let wanted = Fault::Crash(Target::Node(2));
        scenario.faults.iter().any(|line| line.fault == wanted)
    }

    #[test]
    fn what_does_not_matter_goes_and_what_does_stays() {
        let case = Case { scenario: parse(LARGE).unwrap(), seed: 7 };
        let fails = |scenario: &Scenario, _| {
            let has_lists = scenario.workloads.iter().any(|line| line.name == "lists");
            crashes_node_2(scenario) && has_lists && scenario.clients.low >= 3
        };
        let (small, runs) = shrink(case, Effort::default(), fails);
        let text = small.scenario.to_string();
        assert!(runs < 300, "{runs} runs");
        assert_eq!(small.scenario.faults.len(), 1, "{text}");
        assert_eq!(small.scenario.workloads.len(), 1, "{text}");
        assert_eq!((small.scenario.clients.low, small.scenario.nodes.low), (3, 3), "{text}");
        assert!(small.scenario.length < Micros::seconds(13), "{text}");
        assert_eq!(parse(&text).unwrap(), small.scenario, "the text is the scenario");
    }

    #[test]
    fn another_seed_is_tried_before_giving_up() {
        let case = Case { scenario: parse(LARGE).unwrap(), seed: 7 };
        let fails = |scenario: &Scenario, seed| seed == 8 && scenario.faults.is_empty();
        let (small, _) = shrink(case, Effort::default(), fails);
        assert_eq!(small.seed, 8);
        assert!(small.scenario.faults.is_empty());
    }

    #[test]
    fn the_number_of_runs_is_bounded() {
        let case = Case { scenario: parse(LARGE).unwrap(), seed: 7 };
        let effort = Effort { runs_max: 10, seeds: 3 };
        let mut runs = 0;
        let (_, counted) = shrink(case, effort, |_, _| {
            runs += 1;
            true
        });
        assert_eq!((runs, counted), (10, 10));
    }
}
