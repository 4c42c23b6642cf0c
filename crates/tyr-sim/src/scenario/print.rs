//! Writes a scenario as text that reads back as the same scenario.
//!
//! Everything that differs from the default is written, one statement a line, always in the same
//! order: a text in this form comes back letter by letter.

use std::fmt;

use tyr_types::Durability;

use super::quantity::Share;
use crate::setup::Stores;

use super::{Checkpoints, Keyspace, Scenario, WorkloadLine};

impl fmt::Display for WorkloadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "workload {}", self.name)?;
        if !self.keyspaces.is_empty() {
            write!(f, " in {}", self.keyspaces.join(" "))?;
        }
        self.parameters.iter().try_for_each(|(name, value)| write!(f, " {name} {value}"))
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.about {
            writeln!(f, "{}", format!("# {line}").trim_end())?;
        }
        let (nodes, replication, clients) = (self.nodes, self.replication, self.clients);
        write!(f, "nodes {nodes}, replication {replication}, clients {clients}, ")?;
        if self.rest != Self::default().rest {
            write!(f, "rest {}, ", self.rest)?;
        }
        if let Some(level) = self.older {
            write!(f, "older {level}, ")?;
        }
        writeln!(f, "{}", self.length)?;
        for (place, keyspace) in self.keyspaces.iter().enumerate() {
            keyspace.print(place, f)?;
        }
        self.workloads.iter().try_for_each(|workload| writeln!(f, "{workload}"))?;
        self.print_surroundings(f)?;
        self.faults.iter().try_for_each(|fault| writeln!(f, "{fault}"))?;
        if let Some(heal) = self.heal {
            writeln!(f, "heal at {heal}")?;
        }
        if self.unjudged != Share(0) {
            writeln!(f, "unjudged {}", self.unjudged)?;
        }
        Ok(())
    }
}

impl Keyspace {
    /// The `place`-th of a scenario; the first is written only when something is said of it.
    fn print(&self, place: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if place == 0 && *self == Self::named(&self.name) {
            return Ok(());
        }
        let name = if place == 0 { "" } else { self.name.as_str() };
        write!(f, "keyspace {name}{}chunk {}", if place == 0 { "" } else { " " }, self.chunk)?;
        if let Some(replication) = self.replication {
            write!(f, ", replication {replication}")?;
        }
        if let Some(live) = self.live {
            write!(f, ", live {live}")?;
        }
        if !self.is_multi_versioned {
            f.write_str(", single version")?;
        }
        if let Some(placed) = self.placed {
            write!(f, ", placed {placed}")?;
        }
        if self.is_guarded {
            f.write_str(", guarded")?;
        }
        writeln!(
            f,
            "{}",
            match self.durability {
                Durability::Memory => ", memory",
                Durability::Buffered => ", buffered",
                Durability::Sync => "",
            }
        )
    }
}

impl Scenario {
    fn print_surroundings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::default();
        let (network, default) = (self.network, usual.network);
        let mut line = Line::new("network");
        line.add(network.delay != default.delay, format_args!("delay {}", network.delay));
        line.add(network.slow != default.slow, format_args!("slow {}", network.slow));
        line.add(network.loss != default.loss, format_args!("loss {}", network.loss));
        let duplicate = network.duplicate;
        line.add(duplicate != default.duplicate, format_args!("duplicate {duplicate}"));
        line.print(f)?;

        let (clocks, default) = (self.clocks, usual.clocks);
        let mut line = Line::new("clocks");
        line.add(clocks.offset != default.offset, format_args!("offset {}", clocks.offset));
        line.add(clocks.drift != default.drift, format_args!("drift {}", clocks.drift));
        let monotonic = clocks.monotonic;
        line.add(monotonic != default.monotonic, format_args!("monotonic {monotonic}"));
        let jump = clocks.jump.unwrap_or_default();
        line.add(clocks.jump.is_some(), format_args!("jump {jump} sometimes"));
        line.print(f)?;

        let mut line = Line::new("disks");
        line.add(self.sync != usual.sync, format_args!("sync {}", self.sync));
        match self.checkpoint {
            Checkpoints::Sometimes => {}
            Checkpoints::Never => line.add(true, format_args!("checkpoint never")),
            Checkpoints::Every(span) => line.add(true, format_args!("checkpoint {span}")),
        }
        line.print(f)?;
        match self.stores {
            Stores::Model => Ok(()),
            Stores::Real => writeln!(f, "store real"),
        }
    }
}

/// A statement of clauses, left out when it has none.
struct Line {
    keyword: &'static str,
    clauses: Vec<String>,
}

impl Line {
    fn new(keyword: &'static str) -> Self {
        Self { keyword, clauses: Vec::new() }
    }

    fn add(&mut self, is_wanted: bool, clause: fmt::Arguments<'_>) {
        if is_wanted {
            self.clauses.push(clause.to_string());
        }
    }

    fn print(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clauses.is_empty() {
            true => Ok(()),
            false => writeln!(f, "{} {}", self.keyword, self.clauses.join(", ")),
        }
    }
}
