//! Makes a run's [`Setup`] of a scenario and a seed.
//!
//! Here the scenario's statements, each with its own beginning and end, become one list of what
//! happens when: where several of a kind overlap, the end of one leaves the others as they are.

use tyr_protocol::movement::scrub::ScrubConfig;
use tyr_types::{KeyspaceConfig, KeyspaceId, NodeId, PlacedBy, Result};

use crate::fault::{self, FaultPlan};
use crate::setup::{self, Setup};
use crate::workload::{Space, Workload};

use super::draw::{begin, draw, end};
use super::fault::{Fault, FaultLine, Sides, Target};
use super::quantity::Share;
use super::work;
use super::{Checkpoints, Keyspace, Scenario};

/// The share of messages that go through the wire format and back, in millionths.
const ENCODED: u32 = 20_000;

/// Where disks hold damaged bytes, nodes look for them without pause.
const SCRUB: ScrubConfig = ScrubConfig { rate: 64 << 20, every_us: 500_000 };

/// The run that `scenario` describes, from `seed`.
///
/// # Errors
/// `InvalidArgument` when its parts do not fit together.
pub fn run_setup(scenario: &Scenario, seed: u64) -> Result<Setup> {
    scenario.check()?;
    let drawn = draw(scenario, seed);
    let keyspaces = drawn.keyspaces.iter().map(|keyspace| config(keyspace, &drawn));
    let keyspaces: Vec<KeyspaceConfig> = keyspaces.collect::<Result<_>>()?;
    let workloads: Vec<Box<dyn Workload>> = (0..drawn.workloads.len())
        .map(|place| work::workload(&drawn.workloads[place], space(&drawn, place)?))
        .collect::<Result<_>>()?;
    let mut setup = Setup::new(seed);
    setup.nodes = drawn.nodes.low;
    setup.clients = drawn.clients.low;
    setup.older = drawn.older;
    setup.pause_us = (drawn.rest.low.0, drawn.rest.high.0);
    setup.keyspaces = keyspaces;
    setup.duration_us = drawn.length.0;
    setup.network = network(&drawn);
    setup.clocks = setup::Clocks {
        offset_us: drawn.clocks.offset.0,
        drift: millionths(drawn.clocks.drift),
        monotonic_drift: millionths(drawn.clocks.monotonic),
    };
    setup.disks = setup::Disks {
        sync_us: (drawn.sync.low.0, drawn.sync.high.0),
        checkpoint_us: match drawn.checkpoint {
            Checkpoints::Every(span) => Some((span.low.0, span.high.0)),
            Checkpoints::Sometimes | Checkpoints::Never => None,
        },
    };
    setup.stores = drawn.stores;
    setup.faults = plan(&drawn);
    if setup.faults.has_rot() {
        setup.scrub = SCRUB;
    }
    setup.workloads = workloads;
    Ok(setup)
}

fn config(keyspace: &Keyspace, drawn: &Scenario) -> Result<KeyspaceConfig> {
    let config = KeyspaceConfig {
        chunk_size: keyspace.chunk.0,
        replication: keyspace.replicas(drawn).low as u8,
        live_replicas_min: keyspace.live.map(|live| live as u8),
        is_multi_versioned: keyspace.is_multi_versioned,
        durability: keyspace.durability,
        placed_by: keyspace.placed.map_or(PlacedBy::Key, PlacedBy::First),
        is_guarded: keyspace.is_guarded,
        ..KeyspaceConfig::default()
    };
    config.validate()?;
    Ok(config)
}

/// Where the `place`-th workload has its blobs.
fn space(drawn: &Scenario, place: usize) -> Result<Space> {
    let line = &drawn.workloads[place];
    let alike = drawn.workloads[..place].iter().filter(|other| other.name == line.name).count();
    let places: Vec<usize> = match line.keyspaces.is_empty() {
        true => vec![0],
        false => line.keyspaces.iter().map(|name| drawn.keyspace(name)).collect::<Result<_>>()?,
    };
    let of = |place: &usize| (keyspace_id(*place), drawn.keyspaces[*place].chunk.0);
    Ok(Space::over(&places.iter().map(of).collect::<Vec<_>>(), alike))
}

/// The number of a scenario's `place`-th keyspace.
fn keyspace_id(place: usize) -> KeyspaceId {
    KeyspaceId(1 + u32::try_from(place).expect("keyspaces are few"))
}

fn millionths(share: Share) -> u32 {
    share.0 * 100
}

fn network(drawn: &Scenario) -> setup::Network {
    setup::Network {
        delay_us: (drawn.network.delay.low.0, drawn.network.delay.high.0),
        slow: millionths(drawn.network.slow),
        loss: millionths(drawn.network.loss),
        duplication: millionths(drawn.network.duplicate),
        encoded: ENCODED,
    }
}

/// What a drawn scenario lets happen, in order of time.
pub fn plan(drawn: &Scenario) -> FaultPlan {
    let mut faults = Vec::new();
    for (place, line) in drawn.faults.iter().enumerate() {
        let at_us = begin(line).0;
        faults.extend(starts(line, drawn).into_iter().map(|fault| (at_us, fault)));
        if let Some(until) = end(line) {
            let ends = ends(drawn, place, until.0);
            faults.extend(ends.into_iter().map(|fault| (until.0, fault)));
        }
    }
    if let Some(healed) = drawn.heal {
        faults.extend(healing(drawn).into_iter().map(|fault| (healed.0, fault)));
    }
    FaultPlan::new(faults)
}

/// What happens when a statement begins.
fn starts(line: &FaultLine, drawn: &Scenario) -> Option<fault::Fault> {
    Some(match &line.fault {
        Fault::Crash(target) => fault::Fault::Crash(node(*target)?),
        Fault::Stop(target) => fault::Fault::Stop(node(*target)?),
        Fault::Restart(target) => fault::Fault::Restart(node(*target)?),
        Fault::Replace(target) => fault::Fault::Replace(node(*target)?),
        Fault::PowerLoss => fault::Fault::PowerLoss,
        Fault::Pause(target) => {
            let rest = drawn.healed_at().0 - begin(line).0;
            let lasts = line.lasts.map_or(rest, |lasts| lasts.low.0.min(rest));
            fault::Fault::Pause(node(*target)?, lasts)
        }
        Fault::Partition(Sides::Groups(groups)) => fault::Fault::Partition(groups.clone()),
        Fault::Partition(Sides::RandomHalves | Sides::RandomBridge | Sides::One(_))
        | Fault::StopAll(_) => return None,
        Fault::OneWay(from, to) => fault::Fault::OneWay(node(*from)?, node(*to)?),
        Fault::Unseen(target) => fault::Fault::NoMonitors(node(*target)?),
        Fault::SlowLink(one, other, by) => fault::Fault::SlowLink(node(*one)?, node(*other)?, by.0),
        Fault::Loss(share) => fault::Fault::Loss(millionths(*share)),
        Fault::Duplicate(share) => fault::Fault::Duplication(millionths(*share)),
        Fault::ClockJump(target, jump) => fault::Fault::ClockJump(node(*target)?, jump.by_us()),
        Fault::ClientJump(client, jump) => fault::Fault::ClientJump(*client, jump.by_us()),
        Fault::SlowDisk(target, times) => fault::Fault::SlowDisk(node(*target)?, *times),
        Fault::FullDisk(target) => fault::Fault::FullDisk(node(*target)?),
        Fault::Rot(target) => fault::Fault::Rot(node(*target)?),
        Fault::Join(joining) => fault::Fault::Add(NodeId((*joining)?)),
        Fault::Drain(target) => fault::Fault::Drain(node(*target)?),
        Fault::Weight(target, weight) => fault::Fault::Weight(node(*target)?, *weight),
        Fault::OrderDown(target) => fault::Fault::OrderDown(node(*target)?),
        Fault::Monitors(upset) => fault::Fault::Upset(*upset),
        Fault::Drop(name) => fault::Fault::DropKeyspace(keyspace_id(drawn.keyspace(name).ok()?)),
        Fault::AcceptLoss(name) => {
            fault::Fault::AcceptLoss(keyspace_id(drawn.keyspace(name).ok()?))
        }
        Fault::Keep => fault::Fault::Keep,
        Fault::Unkeep => fault::Fault::DropKept,
        Fault::Sleep(client) => {
            let rest = drawn.healed_at().0 - begin(line).0;
            let lasts = line.lasts.map_or(rest, |lasts| lasts.low.0.min(rest));
            fault::Fault::Sleep((*client)?, lasts)
        }
    })
}

/// What happens when the statement at `place` ends.
fn ends(drawn: &Scenario, place: usize, until: u64) -> Vec<fault::Fault> {
    let line = &drawn.faults[place];
    let others = drawn.faults.iter().enumerate().filter(|(other, line)| {
        *other != place && begin(line).0 <= until && end(line).is_none_or(|end| end.0 > until)
    });
    let others = others.map(|(_, line)| line);
    match &line.fault {
        Fault::Crash(target) | Fault::Stop(target) => {
            node(*target).map(fault::Fault::Restart).into_iter().collect()
        }
        Fault::PowerLoss => vec![fault::Fault::RestartAll],
        Fault::Partition(_) | Fault::OneWay(..) | Fault::Unseen(_) | Fault::SlowLink(..) => {
            let lasting = others.filter(|line| is_of_links(&line.fault));
            let lasting = lasting.filter_map(|line| starts(line, drawn));
            std::iter::once(fault::Fault::Join).chain(lasting).collect()
        }
        Fault::Loss(_) => {
            let lasting = others.filter(|line| matches!(line.fault, Fault::Loss(_)));
            let lasting = lasting.filter_map(|line| starts(line, drawn)).next_back();
            let usual = fault::Fault::Loss(millionths(drawn.network.loss));
            vec![lasting.unwrap_or(usual)]
        }
        Fault::Duplicate(_) => {
            let lasting = others.filter(|line| matches!(line.fault, Fault::Duplicate(_)));
            let lasting = lasting.filter_map(|line| starts(line, drawn)).next_back();
            let usual = fault::Fault::Duplication(millionths(drawn.network.duplicate));
            vec![lasting.unwrap_or(usual)]
        }
        Fault::SlowDisk(target, _) => {
            node(*target).map(|node| fault::Fault::SlowDisk(node, 1)).into_iter().collect()
        }
        Fault::FullDisk(target) => {
            node(*target).map(fault::Fault::RoomOnDisk).into_iter().collect()
        }
        Fault::Monitors(upset) => vec![fault::Fault::Lead(*upset)],
        Fault::Pause(_)
        | Fault::StopAll(_)
        | Fault::Restart(_)
        | Fault::Replace(_)
        | Fault::ClockJump(..)
        | Fault::Rot(_)
        | Fault::Join(_)
        | Fault::Drain(_)
        | Fault::Weight(..)
        | Fault::OrderDown(_)
        | Fault::Drop(_)
        | Fault::AcceptLoss(_)
        | Fault::Keep
        | Fault::Unkeep
        | Fault::Sleep(_)
        | Fault::ClientJump(..) => Vec::new(),
    }
}

fn is_of_links(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Partition(_) | Fault::OneWay(..) | Fault::Unseen(_) | Fault::SlowLink(..)
    )
}

/// What ends all that still lasts.
fn healing(drawn: &Scenario) -> Vec<fault::Fault> {
    let mut healing = vec![
        fault::Fault::Join,
        fault::Fault::Loss(millionths(drawn.network.loss)),
        fault::Fault::Duplication(millionths(drawn.network.duplicate)),
        fault::Fault::RestartAll,
    ];
    for line in drawn.faults.iter().filter(|line| line.lasts.is_none()) {
        match &line.fault {
            Fault::SlowDisk(target, _) => {
                healing.extend(node(*target).map(|node| fault::Fault::SlowDisk(node, 1)));
            }
            Fault::FullDisk(target) => {
                healing.extend(node(*target).map(fault::Fault::RoomOnDisk));
            }
            Fault::Crash(_)
            | Fault::Stop(_)
            | Fault::StopAll(_)
            | Fault::Restart(_)
            | Fault::Replace(_)
            | Fault::PowerLoss
            | Fault::Pause(_)
            | Fault::Partition(_)
            | Fault::OneWay(..)
            | Fault::Unseen(_)
            | Fault::SlowLink(..)
            | Fault::Loss(_)
            | Fault::Duplicate(_)
            | Fault::ClockJump(..)
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
    }
    healing
}

/// The node of a drawn target.
fn node(target: Target) -> Option<NodeId> {
    match target {
        Target::Node(node) => Some(NodeId(node)),
        Target::Random | Target::It => None,
    }
}
