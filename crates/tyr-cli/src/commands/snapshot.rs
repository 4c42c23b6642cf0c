//! `tyr snapshot`: keep, list and drop snapshots; and `--at`, which the commands that read have.

use clap::{Args, Subcommand};
use serde_json::json;
use tyr::KeptSnapshot;
use tyr::blocking::{Snapshot, Tyr};

use crate::data::{size_text, version_time};
use crate::failure::Outcome;
use crate::output::table;
use crate::session::{Access, Session};

/// What to do with kept snapshots.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Keep everything as it is now, until it is dropped
    Keep(KeepArguments),
    /// List the kept snapshots, oldest first
    List(ListArguments),
    /// Drop a kept snapshot
    Drop(DropArguments),
}

/// `tyr snapshot keep`
#[derive(Args, Debug)]
#[command(after_help = "\
What is replaced from then on is held on disk until the snapshot is dropped. Commands that read \
take --at NAME.

Examples:
  tyr snapshot keep before-upgrade
  tyr get notes greeting --at before-upgrade")]
pub struct KeepArguments {
    /// 1 to 64 of A-Z a-z 0-9 _ . : - ; starts with a letter or digit
    name: String,
}

/// `tyr snapshot list`
#[derive(Args, Debug)]
#[command(after_help = "\
What is held was replaced after the snapshot and before the next one; older snapshots need it, \
too. One of a cluster that cannot be read any more says why; what is held for it stays until it \
is dropped.

Example:
  tyr snapshot list")]
pub struct ListArguments {}

/// `tyr snapshot drop`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr snapshot drop before-upgrade")]
pub struct DropArguments {
    /// The kept snapshot
    name: String,
}

/// Keeps, lists and drops.
pub fn run(session: &mut Session, command: SnapshotCommand) -> Outcome {
    match command {
        SnapshotCommand::Keep(arguments) => {
            let kept = session.open(Access::Write)?.keep(&arguments.name)?;
            let text = format!("kept {} as of {}", kept.name, version_time(kept.at));
            session.output.record(&kept_json(&kept), &text)
        }
        SnapshotCommand::List(ListArguments {}) => list(session),
        SnapshotCommand::Drop(arguments) => {
            session.open(Access::Write)?.drop_kept(&arguments.name)?;
            session.output.record(&json!({ "name": arguments.name }), "")
        }
    }
}

fn list(session: &mut Session) -> Outcome {
    let all = session.open(Access::Read)?.kept()?;
    if session.output.is_json() {
        return all.iter().try_for_each(|kept| session.output.json(&kept_json(kept)));
    }
    let row = |kept: &KeptSnapshot| {
        let (at, bytes) = (version_time(kept.at), size_text(kept.bytes));
        vec![kept.name.to_string(), at, kept.at.to_string(), bytes, readable(kept)]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let heads = ["name", "moment (UTC)", "version", "held", "can be read"];
    session.output.line(&table(&heads, &rows, &[3]))
}

/// Whether it can be read, and what to do if not.
fn readable(kept: &KeptSnapshot) -> String {
    match &kept.unreadable {
        None => "yes".to_owned(),
        Some(why) => format!("no: {why}; drop it to get back what is held"),
    }
}

fn kept_json(kept: &KeptSnapshot) -> serde_json::Value {
    json!({
        "name": kept.name.as_str(),
        "version": kept.at.to_string(),
        "held": kept.bytes,
        "unreadable": kept.unreadable,
    })
}

/// The moment that a command reads at.
#[derive(Args, Debug)]
pub struct MomentArguments {
    /// Read what the kept snapshot of this name has, and not what is there now
    #[arg(long = "at", value_name = "NAME")]
    at: Option<String>,
}

impl MomentArguments {
    /// The name of the kept snapshot that is asked for, if one is.
    pub fn name(&self) -> Option<&str> {
        self.at.as_deref()
    }

    /// The kept snapshot that is asked for, if one is.
    pub fn kept(&self, store: &Tyr) -> tyr::Result<Option<Snapshot>> {
        self.at.as_deref().map(|name| store.kept_snapshot(name)).transpose()
    }

    /// The kept snapshot that is asked for, or one of now.
    pub fn snapshot(&self, store: &Tyr) -> tyr::Result<Snapshot> {
        match self.kept(store)? {
            Some(kept) => Ok(kept),
            None => store.snapshot(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tyr::{KeptName, Timestamp};

    use super::*;

    #[test]
    fn one_that_cannot_be_read_says_why_and_what_to_do() {
        let name = KeptName::new("monday").unwrap();
        let mut kept = KeptSnapshot { name, at: Timestamp::ZERO, bytes: 5, unreadable: None };
        assert_eq!(readable(&kept), "yes");
        assert!(kept_json(&kept)["unreadable"].is_null());
        kept.unreadable = Some("what was kept was lost".to_owned());
        assert_eq!(readable(&kept), "no: what was kept was lost; drop it to get back what is held");
        assert_eq!(kept_json(&kept)["unreadable"], "what was kept was lost");
    }
}
