//! Commands that show what is there: `ls`, `stat`.

use clap::Args;
use serde_json::{Value, json};
use tyr::blocking::Keyspace;
use tyr::{Error, Key, Stat, limits};

use crate::commands::blob::{BlobsArguments, parse_key_bytes};
use crate::data::{key_text, size_text, version_time, with_key};
use crate::failure::Outcome;
use crate::session::{Access, Session};

/// `tyr ls`
#[derive(Args, Debug)]
#[command(after_help = "\
Keys are printed escaped: \\xNN for bytes that are no text. With --json, key_hex has the exact \
bytes.

Examples:
  tyr ls photos --prefix 2026/ -l
  tyr ls photos --limit 100 --after 2026/tree.jpg")]
pub struct ListArguments {
    /// The keyspace
    keyspace: String,
    /// Only keys that begin with this
    #[arg(long, short, default_value = "")]
    prefix: String,
    /// Only keys behind this one
    #[arg(long, value_name = "KEY")]
    after: Option<String>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// Show the size, the time of the last change (UTC) and the version too, under a heading
    #[arg(long = "long", short = 'l')]
    is_long: bool,
    /// The prefix and the key are given as hexadecimal digits, two a byte
    #[arg(long = "hex-key")]
    is_hex: bool,
}

/// Lists blobs in key order, a page of the store at a time.
pub fn list(session: &mut Session, arguments: &ListArguments) -> Outcome {
    let prefix = parse_key_bytes(&arguments.prefix, arguments.is_hex)?;
    let mut after = match &arguments.after {
        Some(key) => Some(Key::new(parse_key_bytes(key, arguments.is_hex)?)?),
        None => None,
    };
    let (_, keyspace) = session.open_keyspace(&arguments.keyspace, Access::Read)?;
    if arguments.is_long && !session.output.is_json() {
        session.output.line(&long_line("size", "changed (UTC)", "version", "key"))?;
    }
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    while left > 0 {
        session.interrupt.check()?;
        let page_len = usize::try_from(left).unwrap_or(usize::MAX).min(limits::SCAN_LIMIT_MAX);
        let page = keyspace.scan(&prefix, after.as_ref(), page_len)?;
        for (key, stat) in &page {
            list_one(session, &keyspace, key, stat, arguments.is_long)?;
        }
        left -= page.len() as u64;
        match page.into_iter().last() {
            Some((key, _)) => after = Some(key),
            None => break,
        }
    }
    Ok(())
}

fn list_one(
    session: &mut Session,
    keyspace: &Keyspace,
    key: &Key,
    stat: &Stat,
    is_long: bool,
) -> Outcome {
    if session.output.is_json() {
        return session.output.json(&stat_json(keyspace, key, stat));
    }
    let name = key_text(key);
    if is_long {
        let (size, version) = (stat.size.to_string(), stat.version.to_string());
        session.output.line(&long_line(&size, &version_time(stat.version), &version, &name))
    } else {
        session.output.line(&name)
    }
}

fn long_line(size: &str, time: &str, version: &str, key: &str) -> String {
    format!("{size:>14}  {time:<20}  {version:<22}  {key}")
}

/// `tyr stat`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr stat photos 2026/tree.jpg --json")]
pub struct StatArguments {
    #[command(flatten)]
    blobs: BlobsArguments,
}

/// Shows size and version of blobs, all at one version of the store.
pub fn stat(session: &mut Session, arguments: &StatArguments) -> Outcome {
    let (store, keyspace) = session.open_keyspace(&arguments.blobs.keyspace, Access::Read)?;
    let snapshot = store.snapshot()?;
    let keys = arguments.blobs.keys()?;
    for (index, key) in keys.iter().enumerate() {
        let stat = snapshot.stat(&keyspace, key)?;
        let gap = if index == 0 { "" } else { "\n" };
        let text = format!(
            "{gap}keyspace  {}\nkey       {}\nsize      {} ({})\nchanged   {}\nversion   {}",
            keyspace.name(),
            key_text(key),
            stat.size,
            size_text(stat.size),
            version_time(stat.version),
            stat.version
        );
        session.output.record(&stat_json(&keyspace, key, &stat), &text)?;
    }
    Ok(())
}

/// A blob's name, size and version in JSON.
pub fn stat_json(keyspace: &Keyspace, key: &Key, stat: &Stat) -> Value {
    let fields = json!({
        "keyspace": keyspace.name(),
        "size": stat.size,
        "version": stat.version.to_string(),
    });
    with_key(key, fields)
}

/// `NotFound` for a blob.
pub fn no_blob(keyspace: &Keyspace, key: &Key) -> Error {
    let name = keyspace.name();
    Error::not_found(format!("keyspace {name} has no blob \"{}\"", key_text(key)))
}
