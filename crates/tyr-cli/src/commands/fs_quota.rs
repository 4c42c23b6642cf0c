//! `tyr fs quota`: what a file system may have at most, and has.

use clap::Args;
use serde_json::json;
use tyr_fs::Quota;
use tyr_fs::blocking::FileSystem;

use crate::data::parse_size;
use crate::failure::Outcome;
use crate::session::{Access, Session};

/// `tyr fs quota`
#[derive(Args, Debug)]
#[command(after_help = "\
Whatever would make it more is refused (EDQUOT) by every program that uses the file system, from \
two seconds later on; what others have added in the seconds before may not count yet. A limit that \
no flag names stays. Bytes are those of all files, holes included, and 512 for each; a directory \
counts as two names.

Examples:
  tyr fs quota home --bytes 10GiB --names 1000000
  tyr fs quota home
  tyr fs quota home --none")]
pub struct FsQuotaArguments {
    /// The file system
    name: String,
    /// Bytes at most
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    bytes: Option<u64>,
    /// Names at most
    #[arg(long, value_name = "N")]
    names: Option<u64>,
    /// No limits any more
    #[arg(long = "none", conflicts_with_all = ["bytes", "names"])]
    is_none: bool,
}

/// Sets what is asked for, and shows what holds then.
pub fn run(session: &mut Session, arguments: &FsQuotaArguments) -> Outcome {
    let files = FileSystem::open(&session.open(Access::Write)?, &arguments.name)?;
    let FsQuotaArguments { bytes, names, is_none, .. } = *arguments;
    if is_none || bytes.is_some() || names.is_some() {
        let before = if is_none { Quota::default() } else { files.quota()?.0 };
        files.set_quota(Quota { bytes: bytes.or(before.bytes), files: names.or(before.files) })?;
    }
    let (quota, used) = files.quota()?;
    files.close()?;
    let fields = json!({
        "bytes": used.bytes, "bytes_max": quota.bytes,
        "names": used.files, "names_max": quota.files,
    });
    let of = |limit: Option<u64>| {
        limit.map_or_else(|| "no limit".to_owned(), |limit| format!("of {limit}"))
    };
    let (bytes, names) = (of(quota.bytes), of(quota.files));
    let text = format!("{} bytes, {bytes}\n{} names, {names}", used.bytes, used.files);
    session.output.record(&fields, &text)
}
