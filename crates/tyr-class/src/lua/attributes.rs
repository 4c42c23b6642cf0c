//! Attributes of a blob: keys of its map that begin with byte 1, which no other keys do.
//!
//! So the map of a script and the attributes do not see each other, and are one tree all the same.
//! A script's key that begins with byte 1 or 2 is kept with a byte 2 before it, which leaves the
//! order of keys as it is.

use tyr_types::{Bytes, Result};

use crate::context::{Companion, Context};
use crate::limits::MAP_LISTED_MAX;
use crate::map::{Entry, Map};

/// What keys of attributes begin with.
const MARK: u8 = 1;

/// What is put before keys that could be taken for others.
const ESCAPE: u8 = 2;

/// The key of an attribute.
pub fn key(name: &[u8]) -> Vec<u8> {
    [&[MARK], name].concat()
}

/// A key of a script, or what its keys begin with, as it is kept.
pub fn kept(key: &[u8]) -> Vec<u8> {
    match key.first() {
        Some(&(MARK | ESCAPE)) => [&[ESCAPE], key].concat(),
        Some(_) | None => key.to_vec(),
    }
}

/// A key of a script that is kept as this.
fn shown(key: &Bytes) -> Bytes {
    if key.first() == Some(&ESCAPE) { key.slice(1..) } else { key.clone() }
}

/// All attributes, by name.
///
/// # Errors
/// Those of the map.
pub fn list(map: &mut Map<'_>) -> Result<Vec<Entry>> {
    let entries = map.prefix(&[MARK], &[], MAP_LISTED_MAX)?;
    Ok(entries.into_iter().map(|(key, value)| (key.slice(1..), value)).collect())
}

/// The first `count` entries of a script above `after` whose keys begin with `prefix`.
///
/// # Errors
/// Those of the map.
pub fn list_others(
    map: &mut Map<'_>,
    prefix: &[u8],
    after: &[u8],
    count: usize,
) -> Result<Vec<Entry>> {
    let (prefix, after) = (kept(prefix), kept(after));
    let mut entries = map.prefix(&prefix, &after, count)?;
    if entries.iter().any(|(key, _)| key.first() == Some(&MARK)) {
        // Those below the attributes stay; those above are listed from behind the attributes on,
        // of which there may be more than a listing has.
        entries.retain(|(key, _)| key.first() < Some(&MARK));
        let above = map.keys(&[MARK + 1], &prefix, count - entries.len())?;
        if let Some(first) = above.first() {
            let value = map.get(first)?.unwrap_or_default();
            entries.push((first.clone(), value));
            entries.extend(map.prefix(&prefix, first, count - entries.len())?);
        }
    }
    Ok(entries.into_iter().map(|(key, value)| (shown(&key), value)).collect())
}

/// Takes all keys out that are no attributes.
///
/// # Errors
/// Those of the map.
pub fn clear_others(context: &mut dyn Context) -> Result<()> {
    let mut companion = Companion(context);
    let mut map = Map::new(&mut companion);
    let mut kept: Vec<Entry> = Vec::new();
    loop {
        let after = kept.last().map(|(key, _)| key.clone()).unwrap_or_default();
        let more = map.prefix(&[MARK], &after, MAP_LISTED_MAX)?;
        if more.is_empty() {
            break;
        }
        kept.extend(more);
    }
    map.clear()?;
    kept.iter().try_for_each(|(key, value)| map.set(key, value))
}
