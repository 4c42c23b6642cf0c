//! A node's log is cut, in the steps of `docs/internals/member.md`, with time between them.
//!
//! ```text
//!   Idle ─► Paging ─► Applying ─► Syncing ─► Folded ─► cut, Idle
//!           outcomes  until all   the log,   now and then
//!           in pages  is applied  then the   it ends here: the base
//!                     up to s     base       is ahead of the checkpoint
//! ```
//!
//! A crash may come between any two: what is under way is gone with the process, what is on the
//! disk is there. Chunks are folded all at once, up to one timestamp.

use tyr_protocol::member::{Record, Store};
use tyr_types::{NodeId, Timestamp};

use super::disk::Base;
use super::node::Body;
use super::{Happening, World};
use crate::random::Random;

/// The shortest time between two steps when all has ended, in microseconds.
const SETTLED_US: u64 = 2_000_000;

/// Outcomes on a page: few, so that there are several pages.
const PAGE: (u64, u64) = (16, 400);

/// How far the process of a node is with cutting its log.
#[derive(Debug, Default)]
pub enum Cutting {
    /// Nothing is under way.
    #[default]
    Idle,
    /// What is remembered is taken in pages, up to this clock.
    Paging { records: Vec<Record>, after: u64 },
    /// The checkpoint is taken: it stands for the log below `end`, once everything up to `clock` is
    /// applied and in the base.
    Applying { records: Vec<Record>, end: usize, clock: Timestamp },
    /// The base is folded up to here, and durable when the log is up to `synced`.
    Syncing { records: Vec<Record>, end: usize, base: Box<Base>, synced: usize },
    /// The base is durable.
    Folded { records: Vec<Record>, end: usize },
}

impl Cutting {
    /// The base that is not durable yet, if there is one.
    pub fn base_mut(&mut self) -> Option<&mut Base> {
        match self {
            Self::Syncing { base, .. } => Some(base),
            Self::Idle | Self::Paging { .. } | Self::Applying { .. } | Self::Folded { .. } => None,
        }
    }
}

/// When a node's log is cut.
#[derive(Debug)]
pub struct Rhythm {
    /// Shortest and longest time from one to the next, in microseconds; `None` for never.
    between_us: Option<(u64, u64)>,
    random: Random,
}

impl Rhythm {
    /// The rhythm of a node.
    pub fn new(between_us: Option<(u64, u64)>, random: Random) -> Self {
        Self { between_us, random }
    }

    /// How long until the next step; `None` when logs are never cut.
    fn next_us(&mut self, cutting: &Cutting) -> Option<u64> {
        let (low, high) = self.between_us?;
        Some(match cutting {
            Cutting::Idle => self.random.between(low, high),
            Cutting::Paging { .. }
            | Cutting::Applying { .. }
            | Cutting::Syncing { .. }
            | Cutting::Folded { .. } => self.random.between(100, 30_000),
        })
    }
}

impl World {
    /// Plans the next step of the process of this start.
    pub(super) fn plan_cutting(&mut self, node: NodeId, start: u64) {
        let next_us = match &mut self.nodes[usize::from(node.0)].body {
            Body::Real(_) => Some(1),
            Body::Model(model) => {
                let Some(process) = &model.process else { return };
                model.rhythm.next_us(&process.cutting)
            }
        };
        if let Some(after_us) = next_us {
            // When all has ended there is nothing to cut any more.
            let after_us = after_us.max(if self.settled_us.is_some() { SETTLED_US } else { 0 });
            self.queue.push(self.now_us + after_us, Happening::Cut { node, start });
        }
    }

    /// The next step towards a log that is cut.
    pub(super) fn cut(&mut self, node: NodeId, start: u64) {
        if !self.runs(node, start) {
            return;
        }
        let machine = &mut self.nodes[usize::from(node.0)];
        let is_still = machine.is_paused(self.now_us) || machine.is_broken();
        let Body::Model(model) = &mut machine.body else { return self.keep(node, start) };
        if !is_still && let Some(process) = &mut model.process {
            let cutting = std::mem::take(&mut process.cutting);
            let next = self.step_cutting(node, cutting);
            if let Body::Model(model) = &mut self.nodes[usize::from(node.0)].body
                && let Some(process) = &mut model.process
            {
                process.cutting = next;
            }
        }
        self.plan_cutting(node, start);
    }

    fn step_cutting(&mut self, node: NodeId, cutting: Cutting) -> Cutting {
        if let Cutting::Applying { .. } = &cutting {
            self.follow(node);
        }
        let Body::Model(model) = &mut self.nodes[usize::from(node.0)].body else {
            return Cutting::Idle;
        };
        let Some(process) = &mut model.process else { return Cutting::Idle };
        let member = &mut process.member;
        match cutting {
            Cutting::Idle => Cutting::Paging { records: Vec::new(), after: 0 },
            Cutting::Paging { mut records, after } => {
                let (low, high) = PAGE;
                let page = model.rhythm.random.between(low, high) as usize;
                if let Some((record, after)) = member.checkpoint_page(after, page) {
                    records.push(record);
                    return Cutting::Paging { records, after };
                }
                let store = &process.store;
                let rest = member.checkpoint(after).into_iter();
                records.extend(rest.map(|it| it.with_content(|id| store.staged_content(id))));
                let (end, clock) = (model.disk.len(), member.clock());
                Cutting::Applying { records, end, clock }
            }
            Cutting::Applying { records, end, clock } => {
                let at = member.applied_to();
                if at < clock {
                    return Cutting::Applying { records, end, clock };
                }
                let store = process.store.folded(at);
                let content = self.lineage.folded(node, &store);
                let base = Box::new(Base { store, content });
                Cutting::Syncing { records, end, base, synced: model.disk.len() }
            }
            Cutting::Syncing { records, end, base, synced } => {
                if model.disk.synced() < synced {
                    return Cutting::Syncing { records, end, base, synced };
                }
                model.disk.put_base(*base);
                self.counters.folds += 1;
                match model.rhythm.random.percent(15) {
                    true => Cutting::Idle,
                    false => Cutting::Folded { records, end },
                }
            }
            Cutting::Folded { records, end } => {
                model.disk.cut(records, end);
                self.counters.cuts += 1;
                Cutting::Idle
            }
        }
    }
}
