//! Which blob holds what: the keys of raw blobs, aggregates and the catalog.
//!
//! ```text
//!   catalog/SITE/CLUSTER/HOST/PARAMETER/JOB/REGION     empty; says that the generator exists
//!   2026-11-21/raw/SITE/CLUSTER/HOST/PARAMETER/JOB/REGION      its samples of that day
//!   2026-11-21/SCOPE/PARAMETER/NAMES...                        the aggregate's slots of that day
//! ```
//!
//! The day comes first: a query touches the days it asks for and no others, an old day is one
//! prefix, and whatever a day's aggregates should be follows from that day's raw blobs alone. The
//! region is part of the raw key, so that aggregates can be recomputed from the keys even after
//! the mapping from sites to regions has changed.
//!
//! Names are written as they are, except `/`, `%` and control characters, which become `%XX`. So
//! keys are readable, split at `/`, and turn back into names without loss.

use std::fmt::Write;

use tyr::{Error, Key, Result, limits};

use crate::calendar::Day;
use crate::series::{Measurement, Series};
use crate::subject::{AggregateName, Scope, Subject};

/// Names of a series.
pub const SERIES_NAMES: usize = 5;
/// The longest name, in bytes as written in a key (an escaped character counts as three).
pub const NAME_LEN_MAX: usize = 160;

/// What stands before the names of a key: the day, and the longest of the words after it.
const PREFIX_LEN_MAX: usize = "2026-11-21/generator/".len();
const _: () =
    assert!(PREFIX_LEN_MAX + (SERIES_NAMES + 1) * (NAME_LEN_MAX + 1) <= limits::KEY_LEN_MAX);

/// Prefix of the catalog's keys.
pub const CATALOG_PREFIX: &str = "catalog/";

/// Checks that a text can be a name.
///
/// # Errors
/// `InvalidArgument` with the bounds; `what` says which name it is.
pub fn validate_name(what: &str, name: &str) -> Result<()> {
    let len: usize = name.bytes().map(|byte| if is_escaped(byte) { 3 } else { 1 }).sum();
    if (1..=NAME_LEN_MAX).contains(&len) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a {what} is 1 to {NAME_LEN_MAX} bytes long (/, % and control characters count as three), \
         this one has {len}"
    )))
}

fn is_escaped(byte: u8) -> bool {
    byte == b'/' || byte == b'%' || byte.is_ascii_control()
}

/// Appends the name to a key, escaped.
fn push_name(key: &mut String, name: &str) {
    for character in name.chars() {
        match u8::try_from(character) {
            Ok(byte) if is_escaped(byte) => {
                write!(key, "%{byte:02X}").expect("a String takes any text");
            }
            _ => key.push(character),
        }
    }
}

/// The name that was escaped to this text; none where the text is no escape of a name.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}

/// The names as a path: escaped, with `/` between them.
pub fn join_path<T: AsRef<str>>(names: &[T]) -> String {
    let mut path = String::new();
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            path.push('/');
        }
        push_name(&mut path, name.as_ref());
    }
    path
}

/// The names of a path; none where one is no escape of a name.
pub fn split_path(path: &str) -> Option<Vec<String>> {
    path.split('/').map(unescape).collect()
}

/// Writes the path of a measurement's generator to `path`, which is cleared first.
///
/// # Errors
/// `InvalidArgument` for a name of no bytes or too many.
pub fn write_series_path(measurement: &Measurement<'_>, path: &mut String) -> Result<()> {
    path.clear();
    for (what, name) in measurement.names() {
        validate_name(what, name)?;
        if !path.is_empty() {
            path.push('/');
        }
        push_name(path, name);
    }
    Ok(())
}

/// The path of a generator's names: site, cluster, host, parameter, job.
///
/// # Errors
/// `InvalidArgument` for a name of no bytes or too many.
pub fn series_path(series: &Series) -> Result<String> {
    let mut path = String::new();
    write_series_path(&series.at(0, 0.0), &mut path)?;
    Ok(path)
}

/// The key that says in the catalog that this generator exists.
pub fn catalog_key(series_path: &str, region: &str) -> Result<Key> {
    let mut key = format!("{CATALOG_PREFIX}{series_path}/");
    push_name(&mut key, region);
    Key::new(key)
}

/// The key of a generator's samples of a day.
pub fn raw_key(day: Day, series_path: &str, region: &str) -> Result<Key> {
    let mut key = format!("{day}/raw/{series_path}/");
    push_name(&mut key, region);
    Key::new(key)
}

/// The key of an aggregate's slots of a day.
pub fn aggregate_key(day: Day, name: &AggregateName) -> Result<Key> {
    let mut key = aggregate_prefix(day, name.subject.scope(), Some(&name.parameter));
    for part in name.subject.names() {
        push_name(&mut key, part);
        key.push('/');
    }
    key.pop();
    Key::new(key)
}

/// The prefix of all keys of a day.
pub fn day_prefix(day: Day) -> String {
    format!("{day}/")
}

/// The prefix of a day's raw keys, narrowed by the first names of a path.
pub fn raw_prefix(day: Day, names: &str) -> String {
    format!("{day}/raw/{names}")
}

/// The prefix of a day's aggregates of one scope, and of one parameter where it is given.
pub fn aggregate_prefix(day: Day, scope: Scope, parameter: Option<&str>) -> String {
    let mut prefix = format!("{day}/{}/", scope.name());
    if let Some(parameter) = parameter {
        push_name(&mut prefix, parameter);
        prefix.push('/');
    }
    prefix
}

/// What a key of the keyspace names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The samples of one generator, counted in one region, of one day.
    Raw(Day, Series, String),
    /// An aggregate's slots of one day.
    Aggregate(Day, AggregateName),
    /// That a generator exists, and in which region it is counted.
    Catalog(Series, String),
}

impl Entry {
    /// What the key names; none for keys that no measurement makes.
    pub fn parse(key: &Key) -> Option<Self> {
        let text = std::str::from_utf8(key.as_bytes()).ok()?;
        if let Some(path) = text.strip_prefix(CATALOG_PREFIX) {
            return parse_series(path).map(|(series, region)| Self::Catalog(series, region));
        }
        let (day, rest) = text.split_once('/')?;
        let day = Day::parse(day)?;
        let (kind, path) = rest.split_once('/')?;
        if kind == "raw" {
            return parse_series(path).map(|(series, region)| Self::Raw(day, series, region));
        }
        let mut names = split_path(path)?;
        let scope = Scope::parse(kind).ok()?;
        let parameter = names.remove(0);
        let subject = Subject::new(scope, &names).ok()?;
        Some(Self::Aggregate(day, AggregateName { subject, parameter }))
    }
}

fn parse_series(path: &str) -> Option<(Series, String)> {
    let names: [String; SERIES_NAMES + 1] = split_path(path)?.try_into().ok()?;
    let [site, cluster, host, parameter, job, region] = names;
    Some((Series { site, cluster, host, parameter, job }, region))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> Series {
        Series {
            site: "Zürich/ETH".into(),
            cluster: "50%".into(),
            host: "node\u{1}\n".into(),
            parameter: "cpu.0 load".into(),
            job: "日本".into(),
        }
    }

    #[test]
    fn any_name_survives_the_way_into_a_key_and_back() {
        let path = series_path(&series()).unwrap();
        let day = Day(20_000);
        let raw = raw_key(day, &path, "a/b").unwrap();
        assert_eq!(Entry::parse(&raw), Some(Entry::Raw(day, series(), "a/b".into())));
        let catalog = catalog_key(&path, "eu").unwrap();
        assert_eq!(Entry::parse(&catalog), Some(Entry::Catalog(series(), "eu".into())));
        for scope in Scope::ALL {
            let subject = Subject::of(scope, &series(), "eu");
            let name = AggregateName { subject, parameter: "cpu.0 load".into() };
            let key = aggregate_key(day, &name).unwrap();
            assert_eq!(Entry::parse(&key), Some(Entry::Aggregate(day, name)));
        }
    }

    #[test]
    fn keys_read_as_they_are_documented() {
        let path = "cern/batch/node17/load/reco";
        let day = Day::parse("2026-11-21").unwrap();
        let raw = raw_key(day, path, "eu").unwrap();
        assert_eq!(raw.as_bytes(), b"2026-11-21/raw/cern/batch/node17/load/reco/eu");
        let subject = Subject::parse(Scope::Cluster, "cern/batch").unwrap();
        let key = aggregate_key(day, &AggregateName { subject, parameter: "load".into() });
        assert_eq!(key.unwrap().as_bytes(), b"2026-11-21/cluster/load/cern/batch");
        let all = AggregateName { subject: Subject::ALL, parameter: "load".into() };
        assert_eq!(aggregate_key(day, &all).unwrap().as_bytes(), b"2026-11-21/all/load");
    }

    #[test]
    fn the_longest_names_fit_a_key_and_longer_ones_are_refused() {
        let longest = "x".repeat(NAME_LEN_MAX);
        let mut series = Series {
            site: longest.clone(),
            cluster: longest.clone(),
            host: longest.clone(),
            parameter: longest.clone(),
            job: longest.clone(),
        };
        let path = series_path(&series).unwrap();
        raw_key(Day(0), &path, &longest).unwrap();
        let subject = Subject::of(Scope::Generator, &series, &longest);
        aggregate_key(Day(0), &AggregateName { subject, parameter: longest.clone() }).unwrap();
        for bad in [String::new(), "x".repeat(NAME_LEN_MAX + 1), "/".repeat(54)] {
            series.host = bad;
            let error = series_path(&series).unwrap_err();
            assert!(error.message().contains("host is 1 to 160"), "{error}");
        }
    }

    #[test]
    fn keys_of_others_are_not_mistaken_for_ours() {
        for foreign in [
            "catalog/a/b",
            "2026-11-21",
            "2026-11-21/raw/a/b/c",
            "2026-13-21/all/x",
            "2026-11-21/host/load/a",
            "2026-11-21/nothing/load",
            "x/%zz",
        ] {
            assert_eq!(Entry::parse(&Key::new(foreign).unwrap()), None, "{foreign}");
        }
        assert_eq!(Entry::parse(&Key::new([0xFF, 0xFE]).unwrap()), None);
    }
}
