//! Whether what the store says is what the model says.

use tyr::blocking::Keyspace;
use tyr::{CheckFinding, CheckReport, CheckSeverity, Error, ErrorKind, Key, Stat, limits};

use super::reference::Blob;

/// The error's kind, and `NotFound` for no blob.
pub fn kind<T>(result: Result<T, Error>) -> Result<T, ErrorKind> {
    result.map_err(|error| error.kind())
}

pub fn listed(listing: &[(Key, Stat)]) -> Vec<(Vec<u8>, u64)> {
    listing.iter().map(|(key, stat)| (key.as_bytes().to_vec(), stat.size)).collect()
}

pub fn flat(listing: &[(Vec<u8>, u64)]) -> Vec<u8> {
    format!("{listing:?}").into_bytes()
}

pub fn compare_whole(keyspace: &Keyspace, key: &[u8], blob: &Blob) {
    let context = format!("{}/{}", keyspace.name(), key.escape_ascii());
    assert_eq!(keyspace.stat(key).unwrap().size, blob.size, "{context}");
    for (start, len) in blob.written() {
        // A little more on both sides: what lies between must be zeros.
        let (offset, mut rest) = (start.saturating_sub(9), len + 20);
        let mut at = offset;
        while rest > 0 {
            let now = rest.min(limits::READ_LEN_MAX);
            let got = keyspace.read(key, at, now).unwrap();
            assert_same(&got, &blob.read(at, now), &format!("{context} {at}+{now}"));
            (at, rest) = (at + now, rest - now);
        }
    }
    let end = blob.size.saturating_sub(5000);
    assert_same(&keyspace.read(key, end, 9000).unwrap(), &blob.read(end, 9000), &context);
}

pub fn assert_found<T: AsRef<[u8]>>(
    got: Result<T, ErrorKind>,
    expected: Option<Vec<u8>>,
    context: &str,
) {
    match (got, expected) {
        (Ok(got), Some(expected)) => assert_same(got.as_ref(), &expected, context),
        (Err(ErrorKind::NotFound), None) => {}
        (Ok(got), None) => panic!("{context}: {} bytes of an absent blob", got.as_ref().len()),
        (Err(kind), expected) => {
            panic!("{context}: {kind:?}, not {:?} bytes", expected.map(|bytes| bytes.len()));
        }
    }
}

/// Space that belongs to nothing is no damage: a transaction that was rolled back leaves some.
pub fn assert_sound(report: &CheckReport) {
    let is_damage = |finding: &CheckFinding| finding.severity != CheckSeverity::Warning;
    assert!(!report.findings.iter().any(is_damage), "{report:?}");
}

pub fn assert_same(got: &[u8], expected: &[u8], context: &str) {
    assert_eq!(got.len(), expected.len(), "{context}: wrong length");
    if let Some(at) = got.iter().zip(expected).position(|(got, expected)| got != expected) {
        let count = got.iter().zip(expected).filter(|(got, expected)| got != expected).count();
        panic!("{context}: {count} bytes differ, the first at {at}: {} {}", got[at], expected[at]);
    }
}
