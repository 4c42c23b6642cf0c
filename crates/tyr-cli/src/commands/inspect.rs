//! `tyr inspect`: what is in a store, or what is known of one blob.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use tyr::blocking::{Keyspace, Tyr};
use tyr::{ByteRange, Error, Key, limits};

use crate::commands::blob::parse_key_bytes;
use crate::commands::keyspace;
use crate::commands::listing::stat_json;
use crate::data::{key_text, size_text};
use crate::failure::Outcome;
use crate::output::table;
use crate::progress::{self, Unit, Watched};
use crate::session::{Access, Session};

/// `tyr inspect`
#[derive(Args, Debug)]
#[command(after_help = "\
Without arguments: the files by kind, the keyspaces with the number and the bytes of their blobs, \
and the counters of this opening of the store; of a cluster, the keyspaces alone. With KEYSPACE \
KEY: one blob.

Examples:
  tyr inspect
  tyr inspect photos 2026/tree.jpg --checksum")]
pub struct InspectArguments {
    /// The keyspace of the blob
    #[arg(requires = "key")]
    keyspace: Option<String>,
    /// The blob's key
    key: Option<String>,
    /// KEY is given as hexadecimal digits, two a byte
    #[arg(long = "hex-key", requires = "key")]
    is_hex: bool,
    /// Read the blob too, and print its CRC-32C
    #[arg(long = "checksum", requires = "key")]
    has_checksum: bool,
}

/// Shows the store, or a blob.
pub fn run(session: &mut Session, arguments: &InspectArguments) -> Outcome {
    match (&arguments.keyspace, &arguments.key) {
        (Some(name), Some(key)) => {
            let key = Key::new(parse_key_bytes(key, arguments.is_hex)?)?;
            let (_, keyspace) = session.open_keyspace(name, Access::Read)?;
            inspect_blob(session, &keyspace, &key, arguments.has_checksum)
        }
        (Some(_) | None, _) => inspect_store(session),
    }
}

fn inspect_blob(
    session: &mut Session,
    keyspace: &Keyspace,
    key: &Key,
    has_checksum: bool,
) -> Outcome {
    let stat = keyspace.stat(key)?;
    let chunk_size = keyspace.config().chunk_size;
    let chunks = stat.size.div_ceil(chunk_size).max(1);
    let mut json = stat_json(keyspace, key, &stat);
    json["chunk_size"] = json!(chunk_size);
    json["chunks"] = json!(chunks);
    let mut text = format!(
        "keyspace   {}\nkey        {}\nsize       {} ({})\nversion    {}\n\
         chunks     {chunks} of {}",
        keyspace.name(),
        key_text(key),
        stat.size,
        size_text(stat.size),
        stat.version,
        size_text(chunk_size)
    );
    if has_checksum {
        let checksum = format!("{:08x}", checksum(session, keyspace, key)?);
        text.push_str(&format!("\ncrc32c     {checksum}"));
        json["crc32c"] = json!(checksum);
    }
    session.output.record(&json, &text)
}

fn checksum(session: &Session, keyspace: &Keyspace, key: &Key) -> Outcome<u32> {
    let reader = keyspace.reader(key, ByteRange::ALL)?;
    let bar = progress::bar(Some(reader.remaining()), Unit::Bytes, session.output.is_json());
    let mut reader = Watched::new(reader, bar, session.interrupt.clone());
    let mut buffer = vec![0; 1 << 20];
    let mut checksum = 0;
    loop {
        let count =
            reader.read(&mut buffer).map_err(|error| Error::io("cannot read the blob", error))?;
        if count == 0 {
            return Ok(checksum);
        }
        checksum = crc32c::crc32c_append(checksum, &buffer[..count]);
    }
}

fn inspect_store(session: &mut Session) -> Outcome {
    if session.is_cluster()? {
        return inspect_cluster(session);
    }
    let store = session.open(Access::Read)?;
    let files = count_files(&session.data()?)?;
    let keyspaces = count_keyspaces(session, &store)?;
    let counters = counters(&store);
    if session.output.is_json() {
        return session.output.json(&json!({
            "files": files.iter().map(|(kind, count)| json!({
                "kind": kind, "files": count.files, "bytes": count.bytes,
                "bytes_on_disk": count.bytes_on_disk,
            })).collect::<Vec<_>>(),
            "keyspaces": keyspaces.iter().map(|(info, _)| info).collect::<Vec<_>>(),
            "statistics": counters.iter().map(|(name, value)| ((*name).to_owned(), json!(value)))
                .collect::<serde_json::Map<_, _>>(),
        }));
    }
    let rows: Vec<Vec<String>> = files
        .iter()
        .map(|(kind, count)| {
            vec![
                kind.clone(),
                count.files.to_string(),
                size_text(count.bytes),
                size_text(count.bytes_on_disk),
            ]
        })
        .collect();
    session.output.line(&table(&["files", "count", "size", "on disk"], &rows, &[1, 2, 3]))?;
    session.output.line(&format!("\n{}", keyspace_table(keyspaces)))?;
    let rows: Vec<Vec<String>> = counters
        .iter()
        .map(|(name, value)| vec![name.replace('_', " "), value.to_string()])
        .collect();
    session.output.line(&format!("\n{}", table(&["since opened", "value"], &rows, &[1])))
}

/// What a client knows of a cluster: files and counters are of its nodes.
fn inspect_cluster(session: &mut Session) -> Outcome {
    let store = session.open(Access::Read)?;
    let keyspaces = count_keyspaces(session, &store)?;
    if session.output.is_json() {
        let keyspaces: Vec<&Value> = keyspaces.iter().map(|(info, _)| info).collect();
        return session.output.json(&json!({"keyspaces": keyspaces}));
    }
    session.output.line(&keyspace_table(keyspaces))?;
    session.output.line(
        "\nFiles and counters are of the nodes: `tyr status` shows how each is, and its /metrics \
         on HTTP all that it counts.",
    )
}

fn keyspace_table(keyspaces: Vec<(Value, Vec<String>)>) -> String {
    let rows: Vec<Vec<String>> = keyspaces.into_iter().map(|(_, row)| row).collect();
    table(&["keyspace", "durability", "blobs", "bytes"], &rows, &[2, 3])
}

/// The counters of this opening of the store, in reading order.
fn counters(store: &Tyr) -> [(&'static str, u64); 14] {
    let counted = store.statistics();
    [
        ("commits", counted.commits),
        ("aborts", counted.aborts),
        ("reads", counted.reads),
        ("reads_from_disk", counted.reads_from_disk),
        ("log_syncs", counted.log_syncs),
        ("synced_commits", counted.synced_commits),
        ("log_bytes", counted.log_bytes),
        ("extent_bytes", counted.extent_bytes),
        ("index_bytes", counted.index_bytes),
        ("versions_held", counted.versions_held),
        ("snapshots_in_use", counted.snapshots_in_use),
        ("memory_bytes", counted.memory_bytes),
        ("dirty_bytes", counted.dirty_bytes),
        ("folds", counted.folds),
    ]
}

/// Each keyspace in JSON and as a row, with its blobs counted.
fn count_keyspaces(session: &Session, store: &Tyr) -> Outcome<Vec<(Value, Vec<String>)>> {
    let bar = progress::bar(None, Unit::Things("blobs"), session.output.is_json());
    let mut counted = Vec::new();
    for info in store.keyspaces()? {
        let keyspace = store.keyspace(info.name.as_str())?;
        let (mut blobs, mut bytes, mut after) = (0_u64, 0_u64, None);
        loop {
            session.interrupt.check()?;
            let page = keyspace.scan(b"", after.as_ref(), limits::SCAN_LIMIT_MAX)?;
            blobs += page.len() as u64;
            bar.inc(page.len() as u64);
            bytes = page.iter().fold(bytes, |sum, (_, stat)| sum.saturating_add(stat.size));
            match page.into_iter().last() {
                Some((key, _)) => after = Some(key),
                None => break,
            }
        }
        let mut json = keyspace::as_json(&info);
        json["blobs"] = json!(blobs);
        json["bytes"] = json!(bytes);
        let row = vec![
            info.name.to_string(),
            info.config.durability.name().to_owned(),
            blobs.to_string(),
            size_text(bytes),
        ];
        counted.push((json, row));
    }
    Ok(counted)
}

/// Files of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct FileCount {
    files: u64,
    bytes: u64,
    bytes_on_disk: u64,
}

/// The files of the store by kind: the folder they are in, or `.`.
fn count_files(data: &Path) -> Outcome<BTreeMap<String, FileCount>> {
    let mut counts = BTreeMap::new();
    let complain = |error| Error::io(format!("cannot look into {}", data.display()), error);
    for entry in std::fs::read_dir(data).map_err(complain)? {
        let entry = entry.map_err(complain)?;
        if entry.file_type().map_err(complain)?.is_dir() {
            let kind = entry.file_name().to_string_lossy().into_owned();
            let count: &mut FileCount = counts.entry(kind).or_default();
            count_folder(&entry.path(), count).map_err(complain)?;
        } else {
            let count = counts.entry(".".to_owned()).or_default();
            count_file(&entry.metadata().map_err(complain)?, count);
        }
    }
    Ok(counts)
}

fn count_folder(folder: &Path, count: &mut FileCount) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // A file that is removed while we look is not there.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            count_folder(&entry.path(), count)?;
        } else {
            count_file(&metadata, count);
        }
    }
    Ok(())
}

fn count_file(metadata: &std::fs::Metadata, count: &mut FileCount) {
    /// `st_blocks` counts these.
    const STAT_BLOCK: u64 = 512;
    count.files += 1;
    count.bytes += metadata.len();
    count.bytes_on_disk += metadata.blocks() * STAT_BLOCK;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_by_the_folder_they_are_in() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("log/deep")).unwrap();
        std::fs::write(dir.path().join("log/a"), [0; 10]).unwrap();
        std::fs::write(dir.path().join("log/deep/b"), [0; 5]).unwrap();
        std::fs::write(dir.path().join("LOCK"), []).unwrap();
        let counts = count_files(dir.path()).unwrap();
        assert_eq!((counts["log"].files, counts["log"].bytes), (2, 15));
        assert_eq!((counts["."].files, counts["."].bytes), (1, 0));
    }
}
