//! Closes the choices of a scenario: what a seed decides.
//!
//! Faults are drawn in order of time, with an idea of what each node is going through, so that a
//! crash finds a running node and a restart one that is down. Every statement draws from a stream
//! of its own. What is drawn has no choices left, and drawing it again changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use tyr_types::NodeId;

use crate::fault::Group;
use crate::random::Random;

use super::fault::{Fault, FaultLine, Jump, Sides, Target, When};
use super::quantity::{Micros, Span};
use super::{Checkpoints, Keyspace, MAIN, Scenario};

/// Most jumps of one clock that `jump .. sometimes` draws.
const JUMPS_MAX: u64 = 2;

/// `scenario` with every choice closed by `seed`.
pub fn draw(scenario: &Scenario, seed: u64) -> Scenario {
    let mut random = Random::of(seed, "scenario", 0);
    let mut exact =
        |span: Span<u16>| Span::exactly(random.between(span.low.into(), span.high.into()) as u16);
    let mut drawn = Scenario {
        nodes: exact(scenario.nodes),
        replication: exact(scenario.replication),
        clients: exact(scenario.clients),
        faults: Vec::new(),
        ..scenario.clone()
    };
    if drawn.checkpoint == Checkpoints::Sometimes {
        drawn.checkpoint = checkpoints(seed);
    }
    let drawing = Drawing::new(&drawn, seed);
    drawn.faults = drawing.faults(&scenario.faults);
    if let Some(jump) = drawn.clocks.jump.take() {
        let jumps = clock_jumps(&drawn, jump, seed);
        drawn.faults.extend(jumps);
        drawn.faults.sort_by_key(begin);
    }
    drawn
}

fn checkpoints(seed: u64) -> Checkpoints {
    let mut random = Random::of(seed, "checkpoints", 0);
    if random.percent(33) {
        return Checkpoints::Never;
    }
    let low = Micros(random.between(100_000, 3_000_000)).in_milliseconds();
    Checkpoints::Every(Span { low, high: Micros(low.0 * random.between(2, 6)) })
}

/// When a drawn fault happens.
pub fn begin(line: &FaultLine) -> Micros {
    match line.when {
        When::At(span) | When::Every(span) => span.low,
    }
}

/// When a drawn fault ends, if it does before healing.
pub fn end(line: &FaultLine) -> Option<Micros> {
    line.lasts.map(|lasts| Micros(begin(line).0 + lasts.low.0))
}

fn clock_jumps(drawn: &Scenario, most: Micros, seed: u64) -> Vec<FaultLine> {
    let mut jumps = Vec::new();
    for node in 0..drawn.nodes.low {
        let mut random = Random::of(seed, "clock jumps", node.into());
        for _ in 0..random.between(0, JUMPS_MAX) {
            let at = Micros(random.below(drawn.healed_at().0)).in_milliseconds();
            let by = Micros(random.between(1_000, most.0.max(1_000))).in_milliseconds();
            let jump = Jump { by, is_back: random.percent(50) };
            jumps.push(exactly_at(at, Fault::ClockJump(Target::Node(node), jump)));
        }
    }
    jumps
}

fn exactly_at(at: Micros, fault: Fault) -> FaultLine {
    FaultLine { when: When::At(Span::exactly(at)), fault, lasts: None, is_sometimes: false }
}

/// Until when something is the matter with a node; times in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_gone: bool,
    is_replaced: bool,
    down_until: u64,
    paused_until: u64,
    disk_until: u64,
}

struct Drawing {
    seed: u64,
    healed: u64,
    states: Vec<State>,
    replication: u16,
    clients: u16,
    parted_until: u64,
    upset_until: u64,
    /// The node that each statement last happened to.
    happened_to: BTreeMap<usize, u16>,
}

impl Drawing {
    fn new(drawn: &Scenario, seed: u64) -> Self {
        // Where nothing is, nothing is lost.
        let is_used = |keyspace: &&Keyspace| {
            drawn.workloads.iter().any(|workload| match workload.keyspaces.is_empty() {
                true => keyspace.name == MAIN,
                false => workload.keyspaces.contains(&keyspace.name),
            })
        };
        let used = drawn.keyspaces.iter().filter(is_used);
        let fewest = used.map(|keyspace| keyspace.replicas(drawn).low).min();
        Self {
            seed,
            healed: drawn.healed_at().0,
            states: vec![State::default(); drawn.nodes.low.into()],
            replication: fewest.unwrap_or(1),
            clients: drawn.clients.low,
            parted_until: 0,
            upset_until: 0,
            happened_to: BTreeMap::new(),
        }
    }

    fn faults(mut self, lines: &[FaultLine]) -> Vec<FaultLine> {
        let mut randoms: Vec<Random> =
            (0..lines.len()).map(|line| Random::of(self.seed, "fault", line as u64)).collect();
        let mut due: BTreeSet<(u64, usize)> = BTreeSet::new();
        for (place, line) in lines.iter().enumerate() {
            due.insert((moment(line.when, &mut randoms[place]), place));
        }
        let mut drawn = Vec::new();
        while let Some((at, place)) = due.pop_first() {
            if at >= self.healed {
                continue;
            }
            let (line, random) = (&lines[place], &mut randoms[place]);
            if let When::Every(_) = line.when {
                due.insert((at + moment(line.when, random).max(1), place));
            }
            if line.is_sometimes && random.percent(50) {
                continue;
            }
            if let Fault::StopAll(within) = line.fault {
                drawn.extend(self.stops(at, within, line, random));
            } else {
                drawn.extend(self.occurrence(at, place, line, lines, random));
            }
        }
        drawn.sort_by_key(begin);
        drawn
    }

    /// A stop of every node that runs, each within this time from `at` on.
    fn stops(
        &mut self,
        at: u64,
        within: Micros,
        line: &FaultLine,
        random: &mut Random,
    ) -> Vec<FaultLine> {
        let mut stops = Vec::new();
        for (node, state) in self.states.iter_mut().enumerate() {
            let moment = at + Micros(random.between(0, within.0)).in_milliseconds().0;
            let lasts = line.lasts.map_or(0, |span| whole_ms(span, random));
            if state.is_gone || state.down_until > at || moment >= self.healed {
                continue;
            }
            let lasts = lasts.min(self.healed - moment);
            state.down_until = moment + lasts;
            let stop = exactly_at(Micros(moment), Fault::Stop(Target::Node(node as u16)));
            stops.push(FaultLine { lasts: Some(Span::exactly(Micros(lasts))), ..stop });
        }
        stops
    }

    /// This statement as it happens at `at`; `None` if it cannot.
    fn occurrence(
        &mut self,
        at: u64,
        place: usize,
        line: &FaultLine,
        lines: &[FaultLine],
        random: &mut Random,
    ) -> Option<FaultLine> {
        let lasts = line.lasts.map(|span| whole_ms(span, random).min(self.healed - at));
        let until = lasts.map_or(u64::MAX, |lasts| at + lasts);
        let it = (0..place).rev().find(|before| names_node(&lines[*before].fault));
        let it = it.map(|before| self.happened_to.get(&before).copied());
        if matches!(line.fault, Fault::Monitors(_)) {
            if self.upset_until > at {
                return None;
            }
            self.upset_until = until;
        }
        let mut fault = line.fault.clone();
        if let Fault::Sleep(client @ None) = &mut fault {
            *client = Some(random.below(self.clients.into()) as u16);
        }
        let mut other = None;
        for target in fault.targets_mut().into_iter().flatten() {
            let node = match target {
                Target::Node(node) => *node,
                Target::It => it??,
                Target::Random => self.random_node(at, &line.fault, other, random)?,
            };
            *target = Target::Node(node);
            other = Some(node);
        }
        let fault = self.divided(at, fault, random)?;
        let fault = self.happens(at, until, place, fault);
        let lasts = lasts.map(|lasts| Span::exactly(Micros(lasts)));
        Some(FaultLine { lasts, ..exactly_at(Micros(at), fault) })
    }

    /// A node to which `fault` can happen at `at`, not `other`.
    fn random_node(
        &self,
        at: u64,
        fault: &Fault,
        other: Option<u16>,
        random: &mut Random,
    ) -> Option<u16> {
        let replaced = self.states.iter().filter(|state| state.is_replaced).count();
        let members = self.states.iter().filter(|state| !state.is_gone).count();
        let can = |state: &State| match fault {
            _ if state.is_gone => false,
            Fault::Crash(_) | Fault::Stop(_) | Fault::Pause(_) => {
                state.down_until <= at && state.paused_until <= at
            }
            Fault::Restart(_) => state.down_until > at,
            // What was copied to the first must not be lost with the last that had it.
            Fault::Replace(_) => !state.is_replaced && replaced + 1 < usize::from(self.replication),
            Fault::Drain(_) => members > usize::from(self.replication),
            Fault::SlowDisk(..) | Fault::FullDisk(_) => state.disk_until <= at,
            Fault::PowerLoss
            | Fault::StopAll(_)
            | Fault::Partition(_)
            | Fault::OneWay(..)
            | Fault::Unseen(_)
            | Fault::SlowLink(..)
            | Fault::Loss(_)
            | Fault::Duplicate(_)
            | Fault::ClockJump(..)
            | Fault::Rot(_)
            | Fault::Join(_)
            | Fault::Weight(..)
            | Fault::OrderDown(_)
            | Fault::Monitors(_)
            | Fault::Drop(_)
            | Fault::AcceptLoss(_)
            | Fault::Keep
            | Fault::Unkeep
            | Fault::Sleep(_)
            | Fault::ClientJump(..) => true,
        };
        let able = self.states.iter().enumerate().filter(|(_, state)| can(state));
        let able: Vec<u16> =
            able.map(|(node, _)| node as u16).filter(|node| Some(*node) != other).collect();
        (!able.is_empty()).then(|| random.pick(&able))
    }

    /// A partition's sides drawn; `None` while another one lasts, as the network knows but one.
    fn divided(&self, at: u64, fault: Fault, random: &mut Random) -> Option<Fault> {
        let Fault::Partition(sides) = fault else { return Some(fault) };
        if matches!(sides, Sides::Groups(_)) {
            return Some(Fault::Partition(sides));
        }
        if self.parted_until > at {
            return None;
        }
        let members = self.states.iter().enumerate().filter(|(_, state)| !state.is_gone);
        let members: Vec<NodeId> = members.map(|(node, _)| NodeId(node as u16)).collect();
        let half = (members.len() / 2).max(1);
        let mut first: BTreeSet<NodeId> = match sides {
            Sides::One(Target::Node(node)) => BTreeSet::from([NodeId(node)]),
            Sides::One(Target::Random | Target::It)
            | Sides::RandomHalves
            | Sides::RandomBridge
            | Sides::Groups(_) => random.sample(&members, half).into_iter().collect(),
        };
        let second: BTreeSet<NodeId> =
            members.into_iter().filter(|node| !first.contains(node)).collect();
        if second.is_empty() {
            return None;
        }
        let is_one = matches!(sides, Sides::One(_));
        let with_monitors = if is_one { 0 } else { random.below(3) };
        if sides == Sides::RandomBridge {
            let all: Vec<NodeId> = second.iter().copied().collect();
            first.insert(random.pick(&all));
        }
        let first = Group { nodes: first, has_monitors: with_monitors > 0 };
        let second = Group { nodes: second, has_monitors: with_monitors != 1 };
        Some(Fault::Partition(Sides::Groups(vec![first, second])))
    }

    /// Notes what comes of a fault, and gives a joining node its number.
    fn happens(&mut self, at: u64, until: u64, place: usize, mut fault: Fault) -> Fault {
        if let Fault::Join(wanted) = &mut fault {
            let node = wanted.unwrap_or(self.states.len() as u16);
            *wanted = Some(node);
            self.states.resize(self.states.len().max(usize::from(node) + 1), State::default());
            self.happened_to.insert(place, node);
        }
        if let Some(Target::Node(node)) = fault.targets().next() {
            self.happened_to.insert(place, node);
            if let Some(state) = self.states.get_mut(usize::from(node)) {
                state.suffers(&fault, at, until);
            }
        }
        match fault {
            Fault::PowerLoss => {
                self.states.iter_mut().for_each(|state| state.down_until = until);
            }
            Fault::Partition(_) => self.parted_until = until,
            Fault::Crash(_)
            | Fault::Stop(_)
            | Fault::StopAll(_)
            | Fault::Restart(_)
            | Fault::Replace(_)
            | Fault::Pause(_)
            | Fault::OneWay(..)
            | Fault::Unseen(_)
            | Fault::SlowLink(..)
            | Fault::Loss(_)
            | Fault::Duplicate(_)
            | Fault::ClockJump(..)
            | Fault::SlowDisk(..)
            | Fault::FullDisk(_)
            | Fault::Rot(_)
            | Fault::Join(_)
            | Fault::Drain(_)
            | Fault::Weight(..)
            | Fault::OrderDown(_)
            | Fault::Monitors(_)
            | Fault::Drop(_)
            | Fault::AcceptLoss(_)
            | Fault::Keep
            | Fault::Unkeep
            | Fault::Sleep(_)
            | Fault::ClientJump(..) => {}
        }
        fault
    }
}

impl State {
    fn suffers(&mut self, fault: &Fault, at: u64, until: u64) {
        match fault {
            Fault::Crash(_) | Fault::Stop(_) => self.down_until = until,
            Fault::Restart(_) => self.down_until = at,
            Fault::Replace(_) => (self.down_until, self.is_replaced) = (at, true),
            Fault::Pause(_) => self.paused_until = until,
            Fault::SlowDisk(..) | Fault::FullDisk(_) => self.disk_until = until,
            Fault::Drain(_) => self.is_gone = true,
            Fault::PowerLoss
            | Fault::StopAll(_)
            | Fault::Partition(_)
            | Fault::OneWay(..)
            | Fault::Unseen(_)
            | Fault::SlowLink(..)
            | Fault::Loss(_)
            | Fault::Duplicate(_)
            | Fault::ClockJump(..)
            | Fault::Rot(_)
            | Fault::Join(_)
            | Fault::Weight(..)
            | Fault::OrderDown(_)
            | Fault::Monitors(_)
            | Fault::Drop(_)
            | Fault::AcceptLoss(_)
            | Fault::Keep
            | Fault::Unkeep
            | Fault::Sleep(_)
            | Fault::ClientJump(..) => {}
        }
    }
}

fn names_node(fault: &Fault) -> bool {
    fault.targets().next().is_some() || matches!(fault, Fault::Join(_))
}

fn moment(when: When, random: &mut Random) -> u64 {
    match when {
        When::At(span) | When::Every(span) => whole_ms(span, random),
    }
}

/// A value of the span; a whole number of milliseconds unless there is no choice.
fn whole_ms(span: Span<Micros>, random: &mut Random) -> u64 {
    let drawn = random.between(span.low.0, span.high.0);
    if span.is_exact() { drawn } else { Micros(drawn).in_milliseconds().0.max(span.low.0) }
}
