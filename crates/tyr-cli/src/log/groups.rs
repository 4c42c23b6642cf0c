//! `tyr log groups`: the groups of consumers of a log.

use clap::Args;
use serde_json::json;
use tyr_log::Start;

use super::NameArguments;
use super::words::parse_start;
use crate::data::size_text;
use crate::failure::Outcome;
use crate::output::table;
use crate::session::{Access, Session};

/// `tyr log groups`
#[derive(Args, Debug)]
#[command(after_help = "\
Each line is a group in a partition: where it is, how many bytes it is behind the end, and how \
many deliveries were taken and are not acknowledged.

Examples:
  tyr log groups orders
  tyr log groups orders --seek billing --to oldest
  tyr log groups orders --delete billing")]
pub struct GroupsArguments {
    #[command(flatten)]
    name: NameArguments,
    /// Move this group to the place of --to; what was not acknowledged does not come again
    #[arg(long, value_name = "GROUP", requires = "to")]
    seek: Option<String>,
    /// Where to: as --from of `tyr log read`
    #[arg(long, value_name = "PLACE", value_parser = parse_start, requires = "seek")]
    to: Option<Start>,
    /// Delete this group
    #[arg(long, value_name = "GROUP", conflicts_with = "seek")]
    delete: Option<String>,
}

/// Lists, moves or deletes groups.
pub fn run(session: &mut Session, arguments: &GroupsArguments) -> Outcome {
    let is_change = arguments.seek.is_some() || arguments.delete.is_some();
    let access = if is_change { Access::Write } else { Access::Read };
    let (runtime, log) = arguments.name.open(session, access)?;
    if let (Some(name), Some(to)) = (&arguments.seek, &arguments.to) {
        let group = runtime.block_on(log.open_group(name))?;
        return Ok(runtime.block_on(group.seek(to))?);
    }
    if let Some(name) = &arguments.delete {
        let group = runtime.block_on(log.open_group(name))?;
        return Ok(runtime.block_on(group.delete())?);
    }
    let mut rows = Vec::new();
    for name in runtime.block_on(log.groups())? {
        session.interrupt.check()?;
        let group = runtime.block_on(log.open_group(&name))?;
        for status in runtime.block_on(group.status())? {
            let (position, behind) = (status.position.to_string(), status.behind_bytes);
            if session.output.is_json() {
                session.output.json(&json!({
                    "group": name,
                    "position": position,
                    "behind_bytes": behind,
                    "unacknowledged": status.lent,
                }))?;
            }
            rows.push(vec![name.clone(), position, size_text(behind), status.lent.to_string()]);
        }
    }
    match session.output.is_json() {
        true => Ok(()),
        false => session.output.line(&table(
            &["group", "position", "behind", "unacknowledged"],
            &rows,
            &[2, 3],
        )),
    }
}
