//! `tyr stretches`: which bytes of a blob are written, and which are holes.

use clap::Args;
use serde_json::json;
use tyr::ByteRange;

use super::blob::{BlobArguments, RangeArguments};
use super::snapshot::MomentArguments;
use crate::failure::Outcome;
use crate::output::table;
use crate::session::{Access, Session};

/// `tyr stretches`
#[derive(Args, Debug)]
#[command(after_help = "\
What is not shown is a hole: it reads as zeros and takes no space. What is shown may be more than \
was written: holes within a block of 16 KiB of which some is written, and, where a chunk has more \
than 1,024 stretches, those between which there is least.

Examples:
  tyr stretches disks vm1
  tyr stretches disks vm1 --offset 1GiB --len 256MiB --json")]
pub struct StretchesArguments {
    #[command(flatten)]
    blob: BlobArguments,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    moment: MomentArguments,
}

/// Shows what is written, one stretch a line, all at one version of the store.
pub fn run(session: &mut Session, arguments: &StretchesArguments) -> Outcome {
    let range = arguments.range.range()?;
    let (store, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Read)?;
    let (snapshot, key) = (arguments.moment.snapshot(&store)?, arguments.blob.key()?);
    let (mut rows, mut next) = (Vec::new(), Some(range.start));
    while let Some(start) = next {
        session.interrupt.check()?;
        let page = snapshot.stretches(&keyspace, &key, ByteRange { start, ..range })?;
        for ByteRange { start, end } in page.written {
            match session.output.is_json() {
                true => session.output.json(&json!({ "offset": start, "bytes": end - start }))?,
                false => rows.push(vec![start.to_string(), (end - start).to_string()]),
            }
        }
        next = page.resume;
    }
    match session.output.is_json() {
        true => Ok(()),
        false => session.output.line(&table(&["offset", "bytes"], &rows, &[0, 1])),
    }
}
