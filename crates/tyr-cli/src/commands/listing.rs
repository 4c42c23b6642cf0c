//! Commands that show what is there: `ls`, `stat`.

use clap::Args;
use serde_json::{Value, json};
use tyr::blocking::Keyspace;
use tyr::{Error, ErrorKind, Key, Scan, ScanEntry, ScanPage, Stat, limits};

use crate::commands::blob::{BlobsArguments, parse_key_bytes};
use crate::commands::snapshot::MomentArguments;
use crate::data::{bytes_text, key_text, size_text, to_hex, version_time, with_key};
use crate::failure::Outcome;
use crate::session::{Access, Session};

/// `tyr ls`
#[derive(Args, Debug)]
#[command(after_help = "\
Keys are printed escaped: \\xNN for bytes that are no text. With --json, key_hex has the exact \
bytes, and a group has group and group_hex in the place of key.

Examples:
  tyr ls photos --prefix 2026/ -l
  tyr ls photos --delimiter / --prefix 2026/
  tyr ls photos --from 2026/05 --to 2026/08
  tyr ls photos --limit 100 --after 2026/tree.jpg")]
pub struct ListArguments {
    /// The keyspace
    keyspace: String,
    /// Only keys that begin with this
    #[arg(long, short, default_value = "")]
    prefix: String,
    /// Only this key and those behind it
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// Only keys before this one
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Only keys behind this one
    #[arg(long, value_name = "KEY")]
    after: Option<String>,
    /// Show keys with this behind the prefix as one line for all that are the same up to there
    #[arg(long, short = 'd', value_name = "TEXT")]
    delimiter: Option<String>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// Show the size, the time of the last change (UTC) and the version too, under a heading
    #[arg(long = "long", short = 'l')]
    is_long: bool,
    /// The prefix, the keys and the delimiter are given as hexadecimal digits, two a byte
    #[arg(long = "hex-key")]
    is_hex: bool,
    #[command(flatten)]
    moment: MomentArguments,
}

impl ListArguments {
    fn scan(&self) -> tyr::Result<Scan> {
        let bytes = |text: &str| parse_key_bytes(text, self.is_hex);
        let given = |text: &Option<String>| text.as_deref().map(bytes).transpose();
        let scan = Scan::new().prefix(bytes(&self.prefix)?);
        let scan = given(&self.from)?.into_iter().fold(scan, Scan::from);
        let scan = given(&self.to)?.into_iter().fold(scan, Scan::to);
        let scan = given(&self.after)?.into_iter().fold(scan, Scan::after);
        let scan = given(&self.delimiter)?.into_iter().fold(scan, Scan::delimiter);
        scan.validate()?;
        Ok(scan)
    }
}

/// Lists blobs and groups in key order, a page of the store at a time.
pub fn list(session: &mut Session, arguments: &ListArguments) -> Outcome {
    let is_json = session.output.is_json();
    let scan = arguments.scan()?;
    let mut next = Some(if arguments.is_long || is_json { scan } else { scan.keys_only() });
    let (store, keyspace) = session.open_keyspace(&arguments.keyspace, Access::Read)?;
    let kept = arguments.moment.kept(&store)?;
    if arguments.is_long && !is_json {
        session.output.line(&long_line("size", "changed (UTC)", "version", "key"))?;
    }
    let mut left = arguments.limit.unwrap_or(u64::MAX);
    while let Some(scan) = next.filter(|_| left > 0) {
        session.interrupt.check()?;
        let limit = usize::try_from(left).unwrap_or(usize::MAX).min(limits::SCAN_LIMIT_MAX);
        let scan = scan.limit(limit);
        let page = match &kept {
            Some(kept) => kept.scan_page(&keyspace, &scan)?,
            None => keyspace.scan_page(&scan)?,
        };
        next = scan.resumed(&page);
        left -= (page.entries.len() + page.groups.len()) as u64;
        list_page(session, &keyspace, page, arguments.is_long)?;
    }
    Ok(())
}

fn list_page(session: &mut Session, keyspace: &Keyspace, page: ScanPage, is_long: bool) -> Outcome {
    let mut groups = page.groups.iter().peekable();
    for entry in &page.entries {
        while let Some(group) = groups.next_if(|group| ***group < *entry.key.as_bytes()) {
            list_group(session, keyspace, group, is_long)?;
        }
        list_one(session, keyspace, entry, is_long)?;
    }
    groups.try_for_each(|group| list_group(session, keyspace, group, is_long))
}

fn list_group(session: &mut Session, keyspace: &Keyspace, group: &[u8], is_long: bool) -> Outcome {
    let text = bytes_text(group);
    if session.output.is_json() {
        let hex = to_hex(group);
        let fields = json!({"keyspace": keyspace.name(), "group": text, "group_hex": hex});
        return session.output.json(&fields);
    }
    match is_long {
        true => session.output.line(&long_line("", "", "", &text)),
        false => session.output.line(&text),
    }
}

fn list_one(
    session: &mut Session,
    keyspace: &Keyspace,
    entry: &ScanEntry,
    is_long: bool,
) -> Outcome {
    let name = key_text(&entry.key);
    let Some(stat) = &entry.stat else { return session.output.line(&name) };
    if session.output.is_json() {
        return session.output.json(&stat_json(keyspace, &entry.key, stat));
    }
    match is_long {
        true => {
            let (size, version) = (stat.size.to_string(), stat.version.to_string());
            session.output.line(&long_line(&size, &version_time(stat.version), &version, &name))
        }
        false => session.output.line(&name),
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
    #[command(flatten)]
    moment: MomentArguments,
}

/// Shows size, space and version of blobs, all at one version of the store.
pub fn stat(session: &mut Session, arguments: &StatArguments) -> Outcome {
    let (store, keyspace) = session.open_keyspace(&arguments.blobs.keyspace, Access::Read)?;
    let snapshot = arguments.moment.snapshot(&store)?;
    let keys = arguments.blobs.keys()?;
    for (index, key) in keys.iter().enumerate() {
        let stat = snapshot.stat(&keyspace, key)?;
        let allocated = match snapshot.allocated(&keyspace, key) {
            Ok(allocated) => Some(allocated),
            // Some node of the cluster is of a release that does not tell, or there are too many.
            Err(error) if is_untold(error.kind()) => None,
            Err(error) => return Err(error.into()),
        };
        let gap = if index == 0 { "" } else { "\n" };
        let told = allocated.map_or_else(
            || "unknown".to_owned(),
            |allocated| format!("{allocated} ({})", size_text(allocated)),
        );
        let text = format!(
            "{gap}keyspace  {}\nkey       {}\nsize      {} ({})\nallocated {told}\nchanged   {}\n\
             version   {}",
            keyspace.name(),
            key_text(key),
            stat.size,
            size_text(stat.size),
            version_time(stat.version),
            stat.version
        );
        let mut fields = stat_json(&keyspace, key, &stat);
        if let Some(allocated) = allocated {
            fields["allocated"] = json!(allocated);
        }
        session.output.record(&fields, &text)?;
    }
    Ok(())
}

/// Whether what was asked for besides is left out for that.
fn is_untold(kind: ErrorKind) -> bool {
    kind == ErrorKind::Unavailable || kind == ErrorKind::InvalidArgument
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
