//! The policy that is installed, with the versions before it.
//!
//! ```text
//!   policies/balancer      JSON: the version that runs, all versions, the tick
//!   policies/balancer/N    the script of version N, as long as it is one of the last
//! ```

use serde::{Deserialize, Serialize};
use tyr::blocking::Metadata;
use tyr::metadata::{Expected, Path, Transaction};
use tyr::{Error, ErrorKind, Result};

/// Where the record is.
pub const RECORD: &str = "policies/balancer";

/// Versions of which the record tells; of older ones script and line are removed.
const VERSIONS_MAX: usize = 64;

/// Bytes of a script.
const SCRIPT_LEN_MAX: usize = 64 << 10;

/// The shortest and the longest tick, in milliseconds.
const TICK_MS: std::ops::RangeInclusive<u64> = 100..=3_600_000;

/// A version of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// From 1 on.
    pub number: u32,
    /// What it was called: the name of one that came with the program, or of a file.
    pub name: String,
    /// Bytes of its script.
    pub bytes: u64,
}

/// What is known of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The version that runs; `None`: nothing is balanced.
    pub current: Option<u32>,
    /// Milliseconds from one tick to the next.
    pub tick_ms: u64,
    /// The last versions, ascending.
    pub versions: Vec<Version>,
}

impl Default for Record {
    fn default() -> Self {
        Self { current: None, tick_ms: 10_000, versions: Vec::new() }
    }
}

impl Record {
    /// The version that runs.
    pub fn running(&self) -> Option<&Version> {
        let number = self.current?;
        self.versions.iter().find(|version| version.number == number)
    }
}

/// The record, and the revision of its last change; the default where there is none.
///
/// # Errors
/// `Unavailable` when the monitors do not answer; `Corrupt` when it is none.
pub fn find(metadata: &Metadata) -> Result<(Record, Option<u64>)> {
    let Some(entry) = metadata.get(RECORD)? else { return Ok((Record::default(), None)) };
    let record = serde_json::from_slice(&entry.value).map_err(|error| {
        let text = format!(
            "what the service metadata has at {RECORD} is no record of a policy: look at it with \
             `tyr meta get {RECORD}`, delete it, and install the policy anew"
        );
        Error::corrupt(text).with_source(error)
    })?;
    Ok((record, Some(entry.changed)))
}

/// The script of a version.
///
/// # Errors
/// `NotFound` when there is none of this number, any more or yet.
pub fn script(metadata: &Metadata, number: u32) -> Result<String> {
    let entry = metadata.get(&format!("{RECORD}/{number}"))?;
    let entry = entry.ok_or_else(|| {
        Error::not_found(format!("the policy has no version {number}: `tyr balancer show`"))
    })?;
    String::from_utf8(entry.value.to_vec())
        .map_err(|error| Error::corrupt("the policy is no text").with_source(error))
}

/// Makes a script the version that runs; answers its number.
///
/// # Errors
/// `InvalidArgument` when it is too long, or the tick out of range; `Conflict` when somebody else
/// installs one now; `PermissionDenied`; `Unavailable`.
pub fn install(metadata: &Metadata, name: &str, script: &str, tick_ms: u64) -> Result<u32> {
    if script.len() > SCRIPT_LEN_MAX {
        return Err(Error::invalid(format!(
            "a policy has at most {SCRIPT_LEN_MAX} bytes, and this has {}",
            script.len()
        )));
    }
    if !TICK_MS.contains(&tick_ms) {
        return Err(Error::invalid(format!(
            "a tick is 0.1 to 3600 s, not {} s",
            tick_ms as f64 / 1000.0
        )));
    }
    let (mut record, changed) = find(metadata)?;
    let number = record.versions.last().map_or(1, |version| version.number + 1);
    let version = Version { number, name: name.to_owned(), bytes: script.len() as u64 };
    record.versions.push(version);
    (record.current, record.tick_ms) = (Some(number), tick_ms);
    let path = |number| Path::new(format!("{RECORD}/{number}"));
    let mut transaction = Transaction::new().put(path(number)?, script.to_owned());
    while record.versions.len() > VERSIONS_MAX {
        let oldest = record.versions.remove(0);
        transaction = transaction.delete(path(oldest.number)?);
    }
    put(metadata, transaction, &record, changed)?;
    Ok(number)
}

/// Nothing is balanced any more; answers whether anything was.
///
/// # Errors
/// As [`install`].
pub fn stop(metadata: &Metadata) -> Result<bool> {
    let (mut record, changed) = find(metadata)?;
    if record.current.take().is_none() {
        return Ok(false);
    }
    put(metadata, Transaction::new(), &record, changed)?;
    Ok(true)
}

fn put(
    metadata: &Metadata,
    transaction: Transaction,
    record: &Record,
    changed: Option<u64>,
) -> Result<()> {
    let path = Path::new(RECORD)?;
    let value = serde_json::to_vec_pretty(record).expect("it has names and numbers only");
    let expected = changed.map_or(Expected::Absent, Expected::Revision);
    let transaction = transaction.when(path.clone(), expected).put(path, value);
    match metadata.transact(transaction) {
        Err(error) if error.kind() == ErrorKind::Conflict => Err(Error::new(
            ErrorKind::Conflict,
            "somebody else changes the policy now: look at it, and try again",
        )),
        done => done.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbered_on_and_the_last_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = tyr::blocking::Tyr::open(folder.path()).unwrap().metadata();
        assert_eq!(find(&metadata).unwrap(), (Record::default(), None));
        for number in 1..=VERSIONS_MAX as u32 + 2 {
            let script = format!("-- {number}");
            assert_eq!(install(&metadata, "a", &script, 1_000).unwrap(), number);
        }
        let (record, _) = find(&metadata).unwrap();
        assert_eq!(record.running().map(|it| it.number), Some(VERSIONS_MAX as u32 + 2));
        assert_eq!(record.versions[0].number, 3);
        assert_eq!(script(&metadata, 3).unwrap(), "-- 3");
        assert_eq!(script(&metadata, 2).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(stop(&metadata).unwrap() && !stop(&metadata).unwrap());
        assert_eq!(find(&metadata).unwrap().0.running(), None);
        let refused = install(&metadata, "a", "", 99).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    }
}
