//! Feature levels: which messages, operations and records a program speaks, as one number.
//!
//! | level | brings |
//! |---|---|
//! | 1 | all that came with version 2 of the wire |
//! | 2 | [`LEVEL_ALONE`]: what a map says to be lost of a keyspace, marks in a checkpoint |
//! | 3 | [`LEVEL_PLACED`]: keyspaces whose blobs are placed by a part of their keys |
//! | 4 | [`LEVEL_EXPECTING`]: conditions on existence and on numbers, and which one failed |
//! | 5 | [`LEVEL_SCANNING`]: scans with ranges of keys, groups, first bytes |
//! | 6 | [`LEVEL_STAMPING`]: payloads with places that the commit timestamp fills |
//! | 7 | [`LEVEL_CLEARING`]: the operation that makes holes |
//! | 8 | [`LEVEL_MOMENTS`]: each moment at which a snapshot in use reads |
//! | 9 | [`LEVEL_LEASING`]: leases of keys |
//! | 10 | [`LEVEL_STAGING`]: payloads uploaded ahead of their transaction, in pieces |
//! | 11 | [`LEVEL_EVERYTHING`]: moments of everything, of which all nodes know |
//! | 12 | [`LEVEL_STRETCHING`]: what of a blob is written |
//! | 13 | [`LEVEL_GUARDING`]: keyspaces whose leases keep others off |
//! | 14 | [`LEVEL_WATCHING`]: watches of keys |
//! | 15 | [`LEVEL_LISTING`]: transactions that list keys |
//! | 16 | [`LEVEL_COPYING`]: pieces that are filled inside the cluster |
//! | 17 | [`LEVEL_NOTIFYING`]: notices to who watches keys |
//! | 18 | [`LEVEL_KEEPING`]: snapshots that a map keeps |
//! | 19 | [`LEVEL_GROUP_LEASING`]: leases of whole groups |
//! | 20 | [`LEVEL_RETURNING`]: nodes that return by difference |
//! | 21 | [`LEVEL_PAGES`]: page files in the folders of nodes |
//! | 22 | [`LEVEL_SUMMARIZING`]: what a node has, summed up for one that returns |
//! | 23 | [`LEVEL_CALLING`]: methods of objects run at nodes, and the right to call them |
//!
//! A program speaks every level from [`LEVEL_MIN`] to [`LEVEL`]. A change that an older program
//! cannot read, be it a message, a field, an operation or a record, makes the next level: one more
//! line above, and [`LEVEL`] one higher. Whoever writes such a thing says so
//! (`Output::needs` in [`crate::wire`]), and so each frame and each record carries the lowest level
//! that reads it; what holds nothing new stays readable by older programs.
//!
//! The cluster map has the level in use: the lowest that all nodes of it speak. Nothing newer is
//! begun before that is so; see `docs/internals/wire.md`.

use tyr_types::{BlobOperations, Expected, Operation, Payload, Transaction, TransformKind};

/// The highest feature level that this program speaks.
pub const LEVEL: u8 = LEVEL_CALLING;

/// The lowest feature level that this program still speaks. A peer whose highest is below it is
/// refused by name.
pub const LEVEL_MIN: u8 = 1;

/// The level of what came with version 2 of the wire; also that of a cluster whose map was written
/// before.
pub const LEVEL_FIRST: u8 = 1;

/// From this level on a node may be declared down that alone has part of a keyspace of one replica:
/// what it has waits for it. By a map of a lower level that would be gone, so there nobody is.
pub const LEVEL_ALONE: u8 = 2;

/// From this level on a keyspace may place its blobs by a part of their keys (H): a program of
/// before would look for them elsewhere.
pub const LEVEL_PLACED: u8 = 3;

/// From this level on a transaction may have the conditions that a blob is absent, or present, and
/// that a number stands so to another; and an abort says which operation it is about.
pub const LEVEL_EXPECTING: u8 = 4;

/// From this level on nodes list what a scan says (Q2). Below it they list keys with attributes
/// behind a key, and nothing else.
pub const LEVEL_SCANNING: u8 = 5;

/// From this level on payloads have places that the commit timestamp fills (C10).
pub const LEVEL_STAMPING: u8 = 6;

/// From this level on a transaction may make holes in blobs.
pub const LEVEL_CLEARING: u8 = 7;

/// From this level on version managers tell each moment at which a snapshot in use reads (V2). One
/// of before is told the oldest only, and tells no more.
pub const LEVEL_MOMENTS: u8 = 8;

/// From this level on nodes give leases of keys (K1).
pub const LEVEL_LEASING: u8 = 9;

/// From this level on payloads may be uploaded ahead of their transaction (U1). Below it they
/// travel in it, and have a bound.
pub const LEVEL_STAGING: u8 = 10;

/// From this level on a moment of everything is taken at the nodes, which count it for all blobs
/// that they manage (V5). Below it, it is the highest clock of the authorities of some blobs, and
/// nobody counts it.
pub const LEVEL_EVERYTHING: u8 = 11;

/// From this level on nodes tell which bytes of a chunk are written.
pub const LEVEL_STRETCHING: u8 = 12;

/// From this level on a keyspace may be guarded by the leases of its keys (K2).
pub const LEVEL_GUARDING: u8 = 13;

/// From this level on nodes tell who watches keys when they change (K5).
pub const LEVEL_WATCHING: u8 = 14;

/// From this level on a transaction may hand in keys that it has listed, to be validated (Q3).
pub const LEVEL_LISTING: u8 = 15;

/// From this level on nodes fill pieces with what a chunk had at a moment (U5).
pub const LEVEL_COPYING: u8 = 16;

/// From this level on nodes pass notices to who watches keys (K6).
pub const LEVEL_NOTIFYING: u8 = 17;

/// From this level on a map has kept snapshots, and nodes keep what was current at them (V7). One
/// of before would fold it away.
pub const LEVEL_KEEPING: u8 = 18;

/// From this level on nodes give leases of groups (K7).
pub const LEVEL_GROUP_LEASING: u8 = 19;

/// From this level on a node that was declared down keeps what it has, and nodes tell it what of
/// that has changed since (D5). Below it, such a node begins empty.
pub const LEVEL_RETURNING: u8 = 20;

/// From this level on a node keeps what is written here and there in page files. A program of
/// before would not open its folder, and until all nodes have this one each may go back.
pub const LEVEL_PAGES: u8 = 21;

/// From this level on a node that returns by difference (D5) compares summaries first. Below it,
/// it is told each name.
pub const LEVEL_SUMMARIZING: u8 = 22;

/// From this level on nodes run methods of objects for who calls them, and a user may have the
/// right to nothing else: a node of before could not read such a user.
pub const LEVEL_CALLING: u8 = 23;

/// The highest level whose bytes this program can read and write at all. With the feature
/// `next-level`, which is for tests, one above [`LEVEL`]: then the program can be told to speak as
/// the next release might.
pub const LEVEL_KNOWN: u8 = LEVEL + cfg!(feature = "next-level") as u8;

/// What was written before there were levels: records and maps of format 1.
pub(crate) const BEFORE_LEVELS: u8 = 0;

const _: () = assert!(BEFORE_LEVELS < LEVEL_FIRST && LEVEL_FIRST <= LEVEL_MIN);
const _: () = assert!(LEVEL_MIN <= LEVEL && LEVEL_KNOWN < u8::MAX);
const _: () = assert!(LEVEL_FIRST < LEVEL_ALONE && LEVEL_ALONE < LEVEL_PLACED, "levels only come");
const _: () = assert!(LEVEL_PLACED < LEVEL_EXPECTING, "levels only come");
const _: () = assert!(LEVEL_EXPECTING < LEVEL_SCANNING, "levels only come");
const _: () = assert!(LEVEL_SCANNING < LEVEL_STAMPING, "levels only come");
const _: () = assert!(LEVEL_STAMPING < LEVEL_CLEARING, "levels only come");
const _: () = assert!(LEVEL_CLEARING < LEVEL_MOMENTS, "levels only come");
const _: () = assert!(LEVEL_MOMENTS < LEVEL_LEASING, "levels only come");
const _: () = assert!(LEVEL_LEASING < LEVEL_STAGING, "levels only come");
const _: () = assert!(LEVEL_STAGING < LEVEL_EVERYTHING, "levels only come");
const _: () = assert!(LEVEL_EVERYTHING < LEVEL_STRETCHING, "levels only come");
const _: () = assert!(LEVEL_STRETCHING < LEVEL_GUARDING, "levels only come");
const _: () = assert!(LEVEL_GUARDING < LEVEL_WATCHING, "levels only come");
const _: () = assert!(LEVEL_WATCHING < LEVEL_LISTING, "levels only come");
const _: () = assert!(LEVEL_LISTING < LEVEL_COPYING, "levels only come");
const _: () = assert!(LEVEL_COPYING < LEVEL_NOTIFYING, "levels only come");
const _: () = assert!(LEVEL_NOTIFYING < LEVEL_KEEPING, "levels only come");
const _: () = assert!(LEVEL_KEEPING < LEVEL_GROUP_LEASING, "levels only come");
const _: () = assert!(LEVEL_GROUP_LEASING < LEVEL_RETURNING, "levels only come");
const _: () = assert!(LEVEL_RETURNING < LEVEL_PAGES, "levels only come");
const _: () = assert!(LEVEL_PAGES < LEVEL_SUMMARIZING, "levels only come");
const _: () = assert!(LEVEL_SUMMARIZING < LEVEL_CALLING, "levels only come");

/// The level that a transaction needs: all nodes of its chain speak it, or it is not begun.
pub fn level_of(transaction: &Transaction) -> u8 {
    let operations =
        transaction.blobs.iter().flat_map(|BlobOperations { operations, .. }| operations);
    let lists = transaction.reads.iter().any(|read| read.listed.is_some());
    let least = if lists { LEVEL_LISTING } else { LEVEL_FIRST };
    let level = operations.map(level_of_operation).fold(least, u8::max);
    debug_assert!(level <= LEVEL_KNOWN, "what this program can build it can also send");
    level
}

fn level_of_operation(operation: &Operation) -> u8 {
    match operation {
        Operation::Apply { transform, .. } => level_of_transform(transform.kind()),
        Operation::Write { payload, .. }
        | Operation::Append { payload, .. }
        | Operation::Replace { payload } => level_of_payload(payload),
        Operation::Create
        | Operation::Truncate { .. }
        | Operation::Delete
        | Operation::Compare { expected: Expected::Bytes(_), .. } => BEFORE_LEVELS,
        Operation::Clear { .. } => LEVEL_CLEARING,
        Operation::Expect { .. } | Operation::Compare { expected: Expected::Number { .. }, .. } => {
            LEVEL_EXPECTING
        }
    }
}

fn level_of_payload(payload: &Payload) -> u8 {
    match payload {
        Payload::Inline(_) | Payload::Extents(_) => BEFORE_LEVELS,
        Payload::Stamped(_) => LEVEL_STAMPING,
        Payload::Uploaded(_) => LEVEL_STAGING,
    }
}

/// The level that brought a kind of transform.
pub(crate) fn level_of_transform(kind: TransformKind) -> u8 {
    match kind {
        TransformKind::Add
        | TransformKind::Sub
        | TransformKind::Mul
        | TransformKind::Div
        | TransformKind::Min
        | TransformKind::Max
        | TransformKind::And
        | TransformKind::Or
        | TransformKind::Xor
        | TransformKind::Swap => BEFORE_LEVELS,
        #[cfg(feature = "next-level")]
        TransformKind::Nand => LEVEL_KNOWN,
    }
}
