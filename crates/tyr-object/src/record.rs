//! What is known of an installed class: its versions, and where it may be called.
//!
//! A version is never changed: another script is another version. So whoever knows the number of
//! one knows what it does. Records are JSON, for people to read (`tyr meta get classes/NAME`).

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tyr::{Error, Result};

/// Versions that a class may have had: its record has a line for each.
pub const VERSIONS_MAX: u32 = 10_000;

/// A version of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// Its number, from 1 on.
    pub number: u32,
    /// SHA-256 of its script, in hexadecimal.
    pub sha256: String,
    /// Bytes of its script.
    pub bytes: u64,
    /// Whether it may not be called any more; its script is gone then.
    #[serde(default, rename = "retired")]
    pub is_retired: bool,
}

/// A class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassRecord {
    /// The number of the version that calls run; `None` when all are retired.
    pub current: Option<u32>,
    /// All of them, ascending.
    pub versions: Vec<VersionRecord>,
    /// Names of the keyspaces in which it may be called.
    #[serde(default)]
    pub keyspaces: BTreeSet<String>,
}

impl ClassRecord {
    /// The record in its entry.
    ///
    /// # Errors
    /// `Corrupt` when that is no record.
    pub(crate) fn decode(class: &str, value: &[u8]) -> Result<Self> {
        serde_json::from_slice(value).map_err(|error| {
            let text = format!(
                "what the service metadata has of class {class} cannot be read; look at it with \
                 `tyr meta get classes/{class}`, and install the class anew after `tyr meta delete`"
            );
            Error::corrupt(text).with_source(error)
        })
    }

    /// As it is kept.
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("it has names, numbers and texts only")
    }

    /// A version by its number.
    pub fn version(&self, number: u32) -> Option<&VersionRecord> {
        self.versions.iter().find(|version| version.number == number)
    }

    /// The version that calls run.
    ///
    /// # Errors
    /// `NotFound` when all are retired.
    pub fn current(&self, class: &str) -> Result<&VersionRecord> {
        self.current.and_then(|number| self.version(number)).ok_or_else(|| {
            Error::not_found(format!(
                "all versions of class {class} are retired: install one (tyr class install)"
            ))
        })
    }

    /// Makes this script the version that calls run, and answers which that is: the one that has it
    /// already, if that is called now.
    ///
    /// # Errors
    /// `InvalidArgument` when there were too many.
    pub(crate) fn add(&mut self, script: &[u8]) -> Result<Added> {
        let sha256 = fingerprint(script);
        if let Some(current) = self.current.and_then(|number| self.version(number))
            && current.sha256 == sha256
        {
            return Ok(Added { number: current.number, is_new: false });
        }
        let number = self.versions.last().map_or(1, |version| version.number + 1);
        if number > VERSIONS_MAX {
            return Err(Error::invalid(format!(
                "the class has had {VERSIONS_MAX} versions, and may not have more: install it \
                 under another name"
            )));
        }
        let bytes = script.len() as u64;
        self.versions.push(VersionRecord { number, sha256, bytes, is_retired: false });
        self.current = Some(number);
        Ok(Added { number, is_new: true })
    }

    /// Retires a version: it is called no more. Where it was the one that calls run, that is the
    /// highest that is left.
    ///
    /// # Errors
    /// `NotFound` when there is no such version, or it is retired.
    pub(crate) fn retire(&mut self, class: &str, number: u32) -> Result<()> {
        let mut versions = self.versions.iter_mut();
        let found = versions.find(|version| version.number == number && !version.is_retired);
        let Some(version) = found else {
            return Err(Error::not_found(format!(
                "class {class} has no version {number} that could be retired"
            )));
        };
        version.is_retired = true;
        if self.current == Some(number) {
            let left = self.versions.iter().rev().find(|version| !version.is_retired);
            self.current = left.map(|version| version.number);
        }
        Ok(())
    }
}

/// What a change of a class's record is, in words, for who looks back later; `None` when either is
/// no record, or nothing became different.
pub fn describe_change(class: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Option<String> {
    let read = |value: Option<&[u8]>| value.map(serde_json::from_slice).transpose().ok();
    let old: Option<ClassRecord> = read(old)?;
    let Some(new) = read(new)? else { return Some(format!("class {class}: removed")) };
    let old = old.unwrap_or_default();
    let mut acts: Vec<String> = Vec::new();
    for VersionRecord { number, sha256, bytes, is_retired } in &new.versions {
        let before = old.version(*number);
        if before.is_none() {
            let sha256 = sha256.get(..16).unwrap_or(sha256);
            acts.push(format!("version {number} installed ({bytes} bytes, SHA-256 {sha256}...)"));
        }
        if *is_retired && !before.is_some_and(|before| before.is_retired) {
            acts.push(format!("version {number} retired"));
        }
    }
    let enabled = new.keyspaces.difference(&old.keyspaces);
    acts.extend(enabled.map(|keyspace| format!("enabled in keyspace {keyspace}")));
    let disabled = old.keyspaces.difference(&new.keyspaces);
    acts.extend(disabled.map(|keyspace| format!("disabled in keyspace {keyspace}")));
    if old.current != new.current {
        acts.push(match new.current {
            Some(number) => format!("calls run version {number}"),
            None => "no version is left to be called".to_owned(),
        });
    }
    (!acts.is_empty()).then(|| format!("class {class}: {}", acts.join(", ")))
}

/// What came of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// The version that has it.
    pub number: u32,
    /// Whether there was none.
    pub is_new: bool,
}

/// By which a script is known again.
pub(crate) fn fingerprint(script: &[u8]) -> String {
    HEXLOWER.encode(digest(&SHA256, script).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_a_version_once_as_long_as_it_is_called() {
        let mut record = ClassRecord::default();
        assert_eq!(record.add(b"one").unwrap(), Added { number: 1, is_new: true });
        assert_eq!(record.add(b"one").unwrap(), Added { number: 1, is_new: false });
        assert_eq!(record.add(b"two").unwrap(), Added { number: 2, is_new: true });
        // Going back is a version too, so that numbers tell what came later.
        assert_eq!(record.add(b"one").unwrap(), Added { number: 3, is_new: true });
        assert_eq!(record.current("it").unwrap().sha256, record.version(1).unwrap().sha256);
    }

    #[test]
    fn calls_run_the_highest_version_that_is_not_retired() {
        let mut record = ClassRecord::default();
        for script in [b"one", b"two", b"six"] {
            record.add(script).unwrap();
        }
        record.retire("it", 2).unwrap();
        assert_eq!(record.current, Some(3));
        record.retire("it", 3).unwrap();
        assert_eq!(record.current, Some(1));
        assert!(record.retire("it", 3).unwrap_err().message().contains("no version 3"));
        record.retire("it", 1).unwrap();
        assert!(record.current("it").unwrap_err().message().contains("retired"));
        assert_eq!(record.add(b"two").unwrap().number, 4);
    }

    #[test]
    fn what_is_done_to_a_class_is_told_in_words() {
        let mut record = ClassRecord::default();
        let mut told = Vec::new();
        let mut before = None;
        let steps: [fn(&mut ClassRecord); 5] = [
            |record| _ = record.add(b"one").unwrap(),
            |record| _ = record.keyspaces.insert("goods".into()),
            |record| _ = record.add(b"another").unwrap(),
            |record| _ = record.keyspaces.remove("goods"),
            |record| record.retire("it", 2).unwrap(),
        ];
        for step in steps {
            step(&mut record);
            let after = record.encode();
            told.push(describe_change("it", before.as_deref(), Some(&after)).unwrap());
            assert_eq!(describe_change("it", Some(&after), Some(&after)), None);
            before = Some(after);
        }
        told.push(describe_change("it", before.as_deref(), None).unwrap());
        let expected = [
            "class it: version 1 installed (3 bytes, SHA-256 7692c3ad3540bb80...), calls run \
             version 1",
            "class it: enabled in keyspace goods",
            "class it: version 2 installed (7 bytes, SHA-256 ae448ac86c4e8e4d...), calls run \
             version 2",
            "class it: disabled in keyspace goods",
            "class it: version 2 retired, calls run version 1",
            "class it: removed",
        ];
        assert_eq!(told, expected);
        assert_eq!(describe_change("it", None, Some(b"{")), None, "that is no record");
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_damage_is_told() {
        let mut record = ClassRecord::default();
        record.add(b"one").unwrap();
        record.keyspaces.insert("objects".into());
        assert_eq!(ClassRecord::decode("it", &record.encode()).unwrap(), record);
        let error = ClassRecord::decode("it", b"{").unwrap_err();
        assert!(error.message().contains("tyr meta get classes/it"), "{error}");
    }
}
