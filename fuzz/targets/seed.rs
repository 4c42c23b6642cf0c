//! Writes `fuzz/corpus` from the golden bytes of the wire format: what the fuzzer begins with.
//!
//! `cargo run --example seed`, in `fuzz/`, after the format has changed.

use std::fs;
use std::io;
use std::path::Path;

/// A line each: kind, slash, name, space, bytes in hexadecimal.
const GOLDEN: &str = include_str!("../../crates/tyr-protocol/src/wire/tests/golden.txt");
/// Bytes of a frame's length and checksum, which the target `message` makes itself.
const PREFIX_LEN: usize = 8;
/// A hello of node 2, in version 2.
const HELLO: &str = "5459522d57495245020008008445bd270001000002000100";

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for line in GOLDEN.lines() {
        let (name, bytes) = line.split_once(' ').ok_or_else(|| malformed(line))?;
        let (kind, name) = name.split_once('/').ok_or_else(|| malformed(line))?;
        let bytes = from_hex(bytes).ok_or_else(|| malformed(line))?;
        let skipped = if kind == "message" { PREFIX_LEN } else { 0 };
        write(&corpus.join(kind), name, &bytes[skipped..])?;
        if kind == "message" {
            // The size of the pieces, a hello, and the message twice.
            let hello = from_hex(HELLO).ok_or_else(|| malformed(HELLO))?;
            let stream = [&[16], &hello[..], &bytes, &bytes].concat();
            write(&corpus.join("stream"), name, &stream)?;
        }
    }
    Ok(())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(name), bytes)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

fn malformed(line: &str) -> io::Error {
    io::Error::other(format!("not a line of golden bytes: {line}"))
}
