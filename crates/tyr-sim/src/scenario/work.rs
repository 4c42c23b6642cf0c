//! The workloads that a scenario may name, and what they take.

use tyr_types::{Error, Result};

use crate::workload::bank::Bank;
use crate::workload::borders::Borders;
use crate::workload::caches::Caches;
use crate::workload::calls::Calls;
use crate::workload::copies::Copies;
use crate::workload::counters::Counters;
use crate::workload::ends::Ends;
use crate::workload::holes::Holes;
use crate::workload::lists::Lists;
use crate::workload::locks::Locks;
use crate::workload::log::Log;
use crate::workload::pages::Pages;
use crate::workload::registers::Registers;
use crate::workload::rewrites::Rewrites;
use crate::workload::rooms::Rooms;
use crate::workload::sides::Sides;
use crate::workload::snapshots::Snapshots;
use crate::workload::stamps::Stamps;
use crate::workload::stocks::Stocks;
use crate::workload::uploads::Uploads;
use crate::workload::watches::Watches;
use crate::workload::{Space, Workload};

use super::WorkloadLine;

/// A workload that a scenario may name: its parameters with their defaults, and how it is made of
/// their values, in this order.
struct Kind {
    name: &'static str,
    parameters: &'static [(&'static str, u64)],
    make: fn(Space, &[u64]) -> Box<dyn Workload>,
}

const KINDS: [Kind; 21] = [
    Kind {
        name: "bank",
        parameters: &[("accounts", 20)],
        make: |space, values| Box::new(Bank::new(space, values[0] as usize)),
    },
    Kind {
        name: "borders",
        parameters: &[("blobs", 3)],
        make: |space, values| Box::new(Borders::new(space, values[0] as usize)),
    },
    Kind {
        name: "caches",
        parameters: &[("blobs", 3), ("groups", 0), ("listings", 0)],
        make: |space, values| {
            let caches = Caches::new(space, values[0] as usize);
            Box::new(caches.with_groups(values[1] as usize, values[2]))
        },
    },
    Kind {
        name: "calls",
        parameters: &[("objects", 3), ("batch", 3), ("changes", 3), ("kept", 500)],
        make: |space, values| {
            let calls = Calls::new(space, values[0] as usize, values[1], values[2]);
            Box::new(calls.with_kept(values[3].saturating_mul(1_000)))
        },
    },
    Kind {
        name: "copies",
        parameters: &[("blobs", 3), ("pause", 0)],
        make: |space, values| {
            let pause_us = values[1].saturating_mul(1_000);
            Box::new(Copies::new(space, values[0] as usize, pause_us))
        },
    },
    Kind {
        name: "counters",
        parameters: &[("cells", 6)],
        make: |space, values| Box::new(Counters::new(space, values[0] as usize)),
    },
    Kind {
        name: "ends",
        parameters: &[("blobs", 4)],
        make: |space, values| Box::new(Ends::new(space, values[0] as usize)),
    },
    Kind {
        name: "holes",
        parameters: &[("blobs", 2), ("stretches", 0)],
        make: |space, values| {
            Box::new(Holes::new(space, values[0] as usize).with_stretches(values[1]))
        },
    },
    Kind {
        name: "lists",
        parameters: &[("blobs", 12)],
        make: |space, values| Box::new(Lists::new(space, values[0] as usize)),
    },
    Kind {
        name: "locks",
        parameters: &[("locks", 3), ("fenced", 1)],
        make: |space, values| Box::new(Locks::new(space, values[0] as usize, values[1] != 0)),
    },
    Kind {
        name: "log",
        parameters: &[("blobs", 2)],
        make: |space, values| Box::new(Log::new(space, values[0] as usize)),
    },
    Kind {
        name: "pages",
        parameters: &[("pairs", 12), ("pause", 5), ("kept", 0)],
        make: |space, values| {
            let pages = Pages::new(space, values[0] as usize, values[1].saturating_mul(1_000));
            Box::new(pages.with_kept(values[2]))
        },
    },
    Kind {
        name: "registers",
        parameters: &[("cells", 10)],
        make: |space, values| Box::new(Registers::new(space, values[0] as usize)),
    },
    Kind {
        name: "rewrites",
        parameters: &[("blobs", 4)],
        make: |space, values| Box::new(Rewrites::new(space, values[0] as usize)),
    },
    Kind {
        name: "rooms",
        parameters: &[("rooms", 3), ("placed", 6)],
        make: |space, values| Box::new(Rooms::new(space, values[0] as usize, values[1] as usize)),
    },
    Kind {
        name: "sides",
        parameters: &[("pairs", 3)],
        make: |space, values| Box::new(Sides::new(space, values[0] as usize)),
    },
    Kind {
        name: "snapshots",
        parameters: &[("blobs", 4), ("pause", 20), ("readers", 1_000), ("moments", 0), ("kept", 0)],
        make: |space, values| {
            let pause_us = values[1].saturating_mul(1_000);
            let readers = u16::try_from(values[2]).unwrap_or(u16::MAX);
            let snapshots = Snapshots::new(space, values[0] as usize, pause_us);
            let snapshots = snapshots.with_readers(readers).with_moments(values[3]);
            Box::new(snapshots.with_kept(values[4]))
        },
    },
    Kind {
        name: "stamps",
        parameters: &[("logs", 3)],
        make: |space, values| Box::new(Stamps::new(space, values[0] as usize)),
    },
    Kind {
        name: "stocks",
        parameters: &[("cells", 4)],
        make: |space, values| Box::new(Stocks::new(space, values[0] as usize)),
    },
    Kind {
        name: "uploads",
        parameters: &[("blobs", 3), ("unused", 0), ("pause", 0)],
        make: |space, values| {
            let uploads = Uploads::new(space, values[0] as usize).with_unused(values[1]);
            Box::new(uploads.with_pause(values[2].saturating_mul(1_000)))
        },
    },
    Kind {
        name: "watches",
        parameters: &[("cells", 4), ("watchers", 3), ("notices", 0)],
        make: |space, values| {
            let watchers = u16::try_from(values[1]).unwrap_or(u16::MAX);
            let watches = Watches::new(space, values[0] as usize, watchers);
            Box::new(watches.with_notices(values[2]))
        },
    },
];

/// Whether there is such a workload with such parameters.
///
/// # Errors
/// What was expected instead.
pub fn check(line: &WorkloadLine) -> Result<(), String> {
    let Some(kind) = KINDS.iter().find(|kind| kind.name == line.name) else {
        let names = KINDS.map(|kind| kind.name);
        return Err(format!("a workload: {}", names.join(", ")));
    };
    let known: Vec<&str> = kind.parameters.iter().map(|(name, _)| *name).collect();
    if !line.parameters.iter().all(|(name, _)| known.contains(&name.as_str())) {
        return Err(format!("a parameter of {}: {}", line.name, known.join(", ")));
    }
    Ok(())
}

/// The workload that the line names, with its blobs in `space`.
///
/// # Errors
/// `InvalidArgument` when there is none.
pub fn workload(line: &WorkloadLine, space: Space) -> Result<Box<dyn Workload>> {
    check(line).map_err(|what| Error::invalid(format!("\"{line}\" is not {what}")))?;
    let kind = KINDS.iter().find(|kind| kind.name == line.name).expect("it was just checked");
    let value = |(name, default): &(&'static str, u64)| {
        let said = line.parameters.iter().rev().find(|(said, _)| said == name);
        said.map_or(*default, |(_, value)| *value)
    };
    let values: Vec<u64> = kind.parameters.iter().map(value).collect();
    Ok((kind.make)(space, &values))
}

#[cfg(test)]
mod tests {
    use tyr_types::KeyspaceId;

    use super::*;

    fn line(name: &str) -> WorkloadLine {
        let (keyspaces, parameters) = (Vec::new(), Vec::new());
        WorkloadLine { name: name.to_owned(), keyspaces, parameters }
    }

    #[test]
    fn every_kind_makes_the_workload_of_its_name() {
        let space = Space::new(KeyspaceId(1), 4096);
        for kind in &KINDS {
            let line = line(kind.name);
            assert_eq!(workload(&line, space.clone()).unwrap().name(), kind.name);
        }
    }

    #[test]
    fn a_workload_that_nobody_knows_is_refused_with_those_there_are() {
        let space = Space::new(KeyspaceId(1), 4096);
        let line = line("bonk");
        let error = workload(&line, space).err().unwrap();
        assert!(error.message().contains("bank"), "{error}");
    }
}
