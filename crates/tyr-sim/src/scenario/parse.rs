//! Reads a scenario's text, statement by statement.

use std::collections::BTreeSet;

use tyr_protocol::wire::{LEVEL, LEVEL_MIN};
use tyr_types::{Durability, NodeId, Result, limits};

use crate::fault::{Group, Upset};
use crate::setup::Stores;

use super::fault::{Fault, FaultLine, Jump, Sides, Target, When};
use super::quantity::Micros;
use super::words::Words;
use super::{
    CLIENTS_MAX, Checkpoints, Keyspace, LENGTH_MAX, NODES_MAX, Scenario, WorkloadLine, work,
};

const STATEMENTS: &str = "a statement: nodes, replication, clients, rest, older, a length, \
                          keyspace, workload, network, clocks, disks, store, at, every, heal \
                          or unjudged";
const FAULTS: &str = "a fault: crash, stop, restart, replace, power loss, pause, partition, \
                      one-way, unseen, slow link, slow disk, full disk, rot, loss, duplicate, \
                      jump, join, drain, weight, order down, monitors, drop, accept loss, \
                      keep, unkeep or sleep";
const KEYSPACE: &str =
    "chunk, replication, live, single version, placed, guarded, memory, buffered or sync";
const STORES: &str = "model or real";
const UPSETS: &str = "change, mute or pause";
const TARGETS: &str = "a node: random, it or node 2";

/// The scenario that `text` describes.
///
/// # Errors
/// `InvalidArgument` that names line, column and what was expected, or what does not fit together.
pub fn parse(text: &str) -> Result<Scenario> {
    let mut scenario = Scenario { about: about(text), ..Scenario::default() };
    let mut words = Words::new(text);
    while !words.is_over() {
        if !words.is_statement_over() {
            statement(&mut words, &mut scenario)?;
        }
        words.end_statement()?;
    }
    scenario.check()?;
    Ok(scenario)
}

/// The comments before the first statement.
fn about(text: &str) -> Vec<String> {
    let comments = text.lines().map_while(|line| line.strip_prefix('#'));
    comments.map(|line| line.trim().to_owned()).collect()
}

fn statement(words: &mut Words, scenario: &mut Scenario) -> Result<()> {
    if words.is_number_next() {
        return cluster(words, scenario);
    }
    match words.word(STATEMENTS)? {
        "nodes" | "replication" | "clients" | "rest" | "older" => {
            words.step_back();
            cluster(words, scenario)
        }
        "keyspace" => keyspace(words, scenario),
        "workload" => workload(words, scenario),
        "network" => network(words, scenario),
        "clocks" => clocks(words, scenario),
        "disks" => disks(words, scenario),
        "store" => {
            scenario.stores = match words.word(STORES)? {
                "model" => Stores::Model,
                "real" => Stores::Real,
                _ => return words.expected_before(1, STORES),
            };
            Ok(())
        }
        "at" => {
            let when = When::At(words.times()?);
            scenario.faults.push(fault_line(words, when)?);
            Ok(())
        }
        "every" => {
            let span = words.times()?;
            if span.low == Micros(0) {
                return words.expected_before(2, "a pause longer than nothing");
            }
            scenario.faults.push(fault_line(words, When::Every(span))?);
            Ok(())
        }
        "heal" => {
            words.require("at")?;
            scenario.heal = Some(words.time()?);
            Ok(())
        }
        "unjudged" => {
            scenario.unjudged = words.share()?;
            Ok(())
        }
        _ => words.expected_before(1, STATEMENTS),
    }
}

fn cluster(words: &mut Words, scenario: &mut Scenario) -> Result<()> {
    loop {
        if words.take("nodes") {
            scenario.nodes = words.numbers(1, NODES_MAX)?;
        } else if words.take("replication") {
            scenario.replication = words.numbers(1, limits::REPLICATION_MAX.into())?;
        } else if words.take("clients") {
            scenario.clients = words.numbers(1, CLIENTS_MAX)?;
        } else if words.take("rest") {
            scenario.rest = words.times()?;
        } else if words.take("older") {
            let level = words.number(LEVEL_MIN.into(), u64::from(LEVEL) - 1)?;
            scenario.older = Some(level as u8);
        } else {
            scenario.length = words.time()?;
            if !(Micros::seconds(1)..=LENGTH_MAX).contains(&scenario.length) {
                return words.expected_before(2, "a length from 1 s to 100000 s");
            }
        }
        if !words.take(",") {
            return Ok(());
        }
    }
}

fn keyspace(words: &mut Words, scenario: &mut Scenario) -> Result<()> {
    let keyspace = named(words, scenario)?;
    if words.is_statement_over() {
        return Ok(());
    }
    loop {
        match words.word(KEYSPACE)? {
            "chunk" => keyspace.chunk = words.size()?,
            "replication" => {
                let replicas = words.number(1, limits::REPLICATION_MAX.into())?;
                keyspace.replication = Some(replicas as u16);
            }
            "live" => {
                keyspace.live = Some(words.number(1, limits::REPLICATION_MAX.into())? as u16);
            }
            "single" => {
                words.require("version")?;
                keyspace.is_multi_versioned = false;
            }
            "placed" => {
                let count = words.number(1, limits::PLACED_BY_LEN_MAX.into())?;
                keyspace.placed = Some(count as u8);
            }
            "guarded" => keyspace.is_guarded = true,
            "memory" => keyspace.durability = Durability::Memory,
            "buffered" => keyspace.durability = Durability::Buffered,
            "sync" => keyspace.durability = Durability::Sync,
            _ => return words.expected_before(1, KEYSPACE),
        }
        if !words.take(",") {
            return Ok(());
        }
    }
}

/// The keyspace that a statement is about: a new one when it begins with a name.
fn named<'a>(words: &mut Words, scenario: &'a mut Scenario) -> Result<&'a mut Keyspace> {
    const CLAUSES: [&str; 9] = [
        "chunk",
        "replication",
        "live",
        "single",
        "placed",
        "guarded",
        "memory",
        "buffered",
        "sync",
    ];
    let name = words.word("the name of a keyspace, or chunk, replication, live, ..")?;
    if CLAUSES.contains(&name) {
        words.step_back();
        return Ok(&mut scenario.keyspaces[0]);
    }
    scenario.keyspaces.push(Keyspace::named(name));
    Ok(scenario.keyspaces.last_mut().expect("one was just added"))
}

fn workload(words: &mut Words, scenario: &mut Scenario) -> Result<()> {
    let name = words.word("the name of a workload")?;
    let (keyspaces, parameters) = (Vec::new(), Vec::new());
    let mut line = WorkloadLine { name: name.to_owned(), keyspaces, parameters };
    if let Err(what) = work::check(&line) {
        return words.expected_before(1, &what);
    }
    if words.take("in") {
        loop {
            let keyspace = words.word("the name of a keyspace")?;
            if words.is_number_next() {
                words.step_back(); // It was a parameter.
                break;
            }
            line.keyspaces.push(keyspace.to_owned());
            if words.is_statement_over() {
                break;
            }
        }
    }
    while !words.is_statement_over() {
        let parameter = words.word("the name of a parameter")?;
        let value = words.number(0, u64::from(u32::MAX))?;
        line.parameters.push((parameter.to_owned(), value));
        if let Err(what) = work::check(&line) {
            return words.expected_before(2, &what);
        }
    }
    scenario.workloads.push(line);
    Ok(())
}

fn network(words: &mut Words, scenario: &mut Scenario) -> Result<()> {
    let network = &mut scenario.network;
    loop {
        match words.word("delay, slow, loss or duplicate")? {
            "delay" => network.delay = words.times()?,
            "slow" => network.slow = words.share()?,
            "loss" => network.loss = words.share()?,
            "duplicate" => network.duplicate = words.share()?,
            _ => return words.expected_before(1, "delay, slow, loss or duplicate"),
        }
        if !words.take(",") {
            return Ok(());
        }
    }
}

fn clocks(words: &mut Words, scenario: &mut Scenario) -> Result<()> {
    let clocks = &mut scenario.clocks;
    loop {
        match words.word("offset, drift, monotonic or jump")? {
            "offset" => clocks.offset = words.time()?,
            "drift" => clocks.drift = words.share()?,
            "monotonic" => clocks.monotonic = words.share()?,
            "jump" => {
                clocks.jump = Some(words.time()?);
                words.require("sometimes")?;
            }
            _ => return words.expected_before(1, "offset, drift, monotonic or jump"),
        }
        if !words.take(",") {
            return Ok(());
        }
    }
}

fn disks(words: &mut Words, scenario: &mut Scenario) -> Result<()> {
    loop {
        match words.word("sync or checkpoint")? {
            "sync" => scenario.sync = words.times()?,
            "checkpoint" => {
                scenario.checkpoint = match words.take("never") {
                    true => Checkpoints::Never,
                    false => Checkpoints::Every(words.times()?),
                };
            }
            _ => return words.expected_before(1, "sync or checkpoint"),
        }
        if !words.take(",") {
            return Ok(());
        }
    }
}

fn fault_line(words: &mut Words, when: When) -> Result<FaultLine> {
    let fault = fault(words)?;
    let mut lasts = None;
    if fault.is_undoable() && words.take("for") {
        lasts = Some(words.times()?);
    } else if fault.must_end() {
        return words.expected("for, and how long");
    }
    let is_sometimes = words.take("sometimes");
    Ok(FaultLine { when, fault, lasts, is_sometimes })
}

fn fault(words: &mut Words) -> Result<Fault> {
    Ok(match words.word(FAULTS)? {
        "crash" => Fault::Crash(target(words)?),
        "stop" if words.take("all") => {
            words.require("within")?;
            Fault::StopAll(words.time()?)
        }
        "stop" => Fault::Stop(target(words)?),
        "restart" => Fault::Restart(target(words)?),
        "replace" => Fault::Replace(target(words)?),
        "pause" => Fault::Pause(target(words)?),
        "unseen" => Fault::Unseen(target(words)?),
        "drain" => Fault::Drain(target(words)?),
        "rot" => Fault::Rot(target(words)?),
        "power" => {
            words.require("loss")?;
            Fault::PowerLoss
        }
        "partition" => Fault::Partition(sides(words)?),
        "one-way" => {
            let from = target(words)?;
            words.require("to")?;
            Fault::OneWay(from, target(words)?)
        }
        "slow" => return slow(words),
        "full" => {
            words.require("disk")?;
            Fault::FullDisk(target(words)?)
        }
        "loss" => Fault::Loss(words.share()?),
        "duplicate" => Fault::Duplicate(words.share()?),
        "jump" if words.take("client") => {
            let client = words.number(0, u64::from(CLIENTS_MAX) - 1)? as u16;
            Fault::ClientJump(client, jump(words)?)
        }
        "jump" => Fault::ClockJump(target(words)?, jump(words)?),
        "join" => Fault::Join(match words.take("node") {
            true => Some(words.number(0, u64::from(NODES_MAX) - 1)? as u16),
            false => None,
        }),
        "weight" => Fault::Weight(target(words)?, words.number(1, 10_000)? as u32),
        "order" => {
            words.require("down")?;
            Fault::OrderDown(target(words)?)
        }
        "monitors" => Fault::Monitors(match words.word(UPSETS)? {
            "change" => Upset::Change,
            "mute" => Upset::Mute,
            "pause" => Upset::Pause,
            _ => return words.expected_before(1, UPSETS),
        }),
        "accept" => {
            words.require("loss")?;
            Fault::AcceptLoss(words.word("the name of a keyspace")?.to_owned())
        }
        "keep" => Fault::Keep,
        "unkeep" => Fault::Unkeep,
        "drop" => Fault::Drop(words.word("the name of a keyspace")?.to_owned()),
        "sleep" => Fault::Sleep(match words.word("random or client 2")? {
            "random" => None,
            "client" => Some(words.number(0, u64::from(CLIENTS_MAX) - 1)? as u16),
            _ => return words.expected_before(1, "random or client 2"),
        }),
        _ => return words.expected_before(1, FAULTS),
    })
}

fn slow(words: &mut Words) -> Result<Fault> {
    if words.take("disk") {
        let target = target(words)?;
        words.require("times")?;
        return Ok(Fault::SlowDisk(target, words.number(1, 100_000)? as u32));
    }
    if !words.take("link") {
        return words.expected("link or disk");
    }
    let one = target(words)?;
    words.require("to")?;
    let other = target(words)?;
    words.require("by")?;
    Ok(Fault::SlowLink(one, other, words.time()?))
}

fn jump(words: &mut Words) -> Result<Jump> {
    let is_back = match words.word("forward or back")? {
        "forward" => false,
        "back" => true,
        _ => return words.expected_before(1, "forward or back"),
    };
    Ok(Jump { by: words.time()?, is_back })
}

fn target(words: &mut Words) -> Result<Target> {
    Ok(match words.word(TARGETS)? {
        "random" => Target::Random,
        "it" => Target::It,
        "node" => Target::Node(words.number(0, u64::from(NODES_MAX) - 1)? as u16),
        _ => return words.expected_before(1, TARGETS),
    })
}

fn sides(words: &mut Words) -> Result<Sides> {
    if words.take("nodes") {
        return groups(words);
    }
    let target = target(words)?;
    if target == Target::Random && words.take("halves") {
        return Ok(Sides::RandomHalves);
    }
    if target == Target::Random && words.take("bridge") {
        return Ok(Sides::RandomBridge);
    }
    Ok(Sides::One(target))
}

fn groups(words: &mut Words) -> Result<Sides> {
    let mut groups = Vec::new();
    loop {
        let mut nodes = BTreeSet::new();
        while words.is_number_next() {
            nodes.insert(NodeId(words.number(0, u64::from(NODES_MAX) - 1)? as u16));
        }
        if nodes.is_empty() {
            return words.expected("the numbers of a group's nodes");
        }
        groups.push(Group { nodes, has_monitors: words.take("monitors") });
        if !words.take("|") {
            return Ok(Sides::Groups(groups));
        }
    }
}
