//! How the protocols' own values are written: chains, aborts, messages, envelopes.

use std::borrow::Cow;

use tyr_types::{
    BlobName, ByteRange, Bytes, Changes, Key, LeaseMode, NodeId, Notice, NoticeId, Notified,
    OperationId, ScanEntry, ScanPage, Stat, Timestamp, WatchTarget, Watcher,
};

use super::encoded::{Encoded, encode_list, encoded_enum, encoded_struct};
use super::input::{Input, Malformed};
use super::output::Output;
use crate::abort::Abort;
use crate::chain::{Chain, Ends, Hop, Part, Piece};
use crate::commit::OutcomeRetention;
use crate::commit::recovery::{self, Known};
use crate::commit::{self, Answered, Attempt, Decision, Outcomes, Placed, Remembered};
use crate::key_lease::{self, Wish};
use crate::key_watch;
use crate::level::{LEVEL_EXPECTING, LEVEL_MOMENTS};
use crate::message::{
    Address, Asked, Body, ListRequest, ListedBlob, ReadPart, ReadRequest, ScanRequest,
};
use crate::movement::{self, Summary};
use crate::read::Kind;
use crate::versions::{MOMENTS_MAX, Usage};

impl Encoded for Cow<'static, str> {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(self.len() as u64);
        output.raw(self.as_bytes());
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        String::decode(input).map(Cow::Owned)
    }
}

encoded_struct!(OperationId, 2, { blob, operation });

/// Which operation it is about is only told: an abort reaches programs of before without it.
impl Encoded for Abort {
    const LEN_MIN: usize = 3;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self { kind, reason, blob, operation } = self;
        kind.encode(output);
        reason.encode(output);
        blob.encode(output);
        if output.tells(LEVEL_EXPECTING) {
            operation.encode(output);
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let abort = Self {
            kind: Encoded::decode(input)?,
            reason: Encoded::decode(input)?,
            blob: Encoded::decode(input)?,
            operation: None,
        };
        let operation = match input.is_told(LEVEL_EXPECTING) {
            true => Encoded::decode(input)?,
            false => None,
        };
        match operation.is_none() || abort.blob.is_some() {
            true => Ok(Self { operation, ..abort }),
            false => Err(input.malformed("the abort before is of an operation on no blob")),
        }
    }
}

encoded_struct!(Piece, 6, { blob, range, is_attributes, is_written, authority });
encoded_enum!(Part, "form of part", { 0 => Whole, 1 => Pieces(pieces) });
encoded_struct!(Hop, 2, { node, part });

impl Encoded for Chain {
    const LEN_MIN: usize = 4;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        encode_list(self.hops(), output);
        self.ends().encode(output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let hops: Vec<Hop> = Encoded::decode(input)?;
        let ends: Ends = Encoded::decode(input)?;
        Self::new(hops, ends).map_err(|_| {
            input.malformed("the chain before is empty, out of order, or whole at one of many")
        })
    }
}

/// Each moment is only told: programs of before are told the oldest, below which nobody reads, and
/// a list that was always empty.
impl Encoded for Usage {
    const LEN_MIN: usize = 16;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self { as_of, moments } = self;
        moments.first().unwrap_or(as_of).encode(output);
        output.raw(&NO_LIST);
        if output.tells(LEVEL_MOMENTS) {
            debug_assert!(moments.len() <= MOMENTS_MAX, "more are refused");
            as_of.encode(output);
            moments.encode(output);
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let oldest = Timestamp::decode(input)?;
        if input.array()? != NO_LIST {
            return Err(input.malformed_last("versions in use, where nobody tells any"));
        }
        let (as_of, moments) = match input.is_told(LEVEL_MOMENTS) {
            true => (Encoded::decode(input)?, Encoded::decode(input)?),
            false => (oldest, Vec::new()),
        };
        Usage::checked(as_of, moments).filter(|usage| usage.oldest() == oldest).ok_or_else(|| {
            input.malformed("the moments before are too many, out of order, or not from the oldest")
        })
    }
}

/// The form of a list, and that there is nothing in it.
const NO_LIST: [u8; 2] = [0, 0];

encoded_struct!(Attempt, 3, { epoch, number, coordinator });
encoded_enum!(Decision, "decision", { 0 => Commit(at), 1 => Abort(abort) });
encoded_struct!(Answered, 3, { blob, operation, outcome });

impl Encoded for Outcomes {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        encode_list(self, output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Vec::decode(input).map(Self::from)
    }
}

encoded_struct!(Placed, 2, { index, offset });
encoded_struct!(Remembered, 25, { id, attempt, ends, decision, outcomes });

encoded_enum!(commit::Message, "message of the commit protocol", {
    0 => Forward { transaction, chain, attempt, begun, highest, known, usages },
    1 => Backward { id, attempt, decision, outcomes, usages },
    2 => Misplaced { id, attempt, blob, end },
    3 => Withdrawn { id, attempt },
    4 => Again { id, attempt },
    5 => Decided { id, attempt, at },
    6 => Anchored { id, attempt, by },
    7 => Stable { id, by, outcomes },
    8 => AskStable { id, by, from },
});

encoded_enum!(Known, "state of knowledge", {
    0 => Nothing,
    1 => Validated { attempt, proposal, chain },
    2 => Committed { at, ends },
    3 => Aborted(abort),
    4 => Forgotten,
});

encoded_enum!(recovery::Message, "message of recovery", {
    0 => Ask { transaction, chain, begun },
    1 => Query { id, attempt, begun },
    2 => Report { id, attempt, from, known },
    3 => Clear { id, attempt },
    4 => Abort { id, attempt, abort },
    5 => Behind { id, attempt, promised },
    6 => Aborted { id, attempt, from },
});

encoded_enum!(Kind, "kind of read", {
    0 => Direct,
    1 => Whole,
    2 => First,
    3 => At(at),
    4 => Clock,
    5 @ 12 => Layout(at),
});

encoded_enum!(Address, "kind of address", {
    0 => Node(node),
    1 => Client(client),
    2 => Monitors,
});

encoded_struct!(ReadRequest, 9, { read, asker, blob, range, is_attributes, kind, is_copy });
encoded_struct!(ReadPart, 34, { read, range, at, version, bytes, size, clock });
encoded_enum!(Asked, "kind of question", { 0 => Transaction(id), 1 => Read(read) });

encoded_enum!(LeaseMode, "mode of lease", { 0 => Shared, 1 => Exclusive });
encoded_enum!(Wish, "wish for a lease", { 0 => Wait, 1 => Try, 2 => Keep });

encoded_enum!(key_lease::Message, "message about a lease", {
    0 => Ask { lease, blob, mode, duration_us, sent_us, wish },
    1 => Renew { sent_us, leases },
    2 => GiveBack { lease },
    3 => Granted { lease, sent_us },
    4 => Waits { lease },
    5 => Renewed { sent_us, held, unknown },
    6 => Recall { lease },
    7 @ 19 => AskGroup { lease, group, mode, duration_us, sent_us, wish },
});

encoded_struct!(WatchTarget, 3, { keyspace, prefix, is_exact });
encoded_struct!(Changes, 16, { at, keys, is_more });
encoded_enum!(key_watch::Message, "message about a watch", {
    0 => Ask { watch, target },
    1 => Renew { watches },
    2 => Heard { watch, told },
    3 => End { watch },
    4 => Watching { watch },
    5 => Changed { watch, told, changes },
    6 => Renewed { unknown },
    7 @ 17 => Notify { number, blob, payload, timeout_us },
    8 @ 17 => Notice { watch, notice },
    9 @ 17 => Acknowledge { watch, id, reply },
    10 @ 17 => Notified { number, notified },
});

encoded_struct!(NoticeId, 2, { client, number });
encoded_struct!(Watcher, 2, { client, watch });
encoded_struct!(Notice, 5, { id, key, payload });
encoded_struct!(Notified, 2, { acknowledged, missed });

encoded_struct!(OutcomeRetention, 4, { clock_us, done_to_us, window_us, slowest });

encoded_enum!(movement::Message, "message of data movement", {
    0 => List { after },
    1 => Listed { after, chunks, next },
    2 => Copied { read, chunk, copy },
    3 => Recall { after },
    4 => Recalled { after, outcomes, next },
    5 @ 20 => ListSince { since, after },
    6 @ 20 => ListedSince { since, after, unchanged, changed, next },
    7 @ 22 => Summarize { since, after },
    8 @ 22 => Summarized { since, after, unchanged, changed, next },
});

encoded_struct!(Summary, 17, { chunks, sum });

const _: () = {
    assert!(Usage::LEN_MIN == Timestamp::LEN_MIN + NO_LIST.len(), "of a program of before");
    assert!(Piece::LEN_MIN == BlobName::LEN_MIN + ByteRange::LEN_MIN + 1 + 1 + NodeId::LEN_MIN);
    assert!(ListedBlob::LEN_MIN == 1 + 1 + Timestamp::LEN_MIN);
    assert!(Chain::LEN_MIN == 1 + Hop::LEN_MIN + 1, "hops, of which there is one, and no guess");
};

encoded_struct!(ListRequest, 6, { number, keyspace, prefix, after, limit, at });
encoded_struct!(ListedBlob, 16, { key, size, version });

encoded_struct!(ScanRequest, 10, {
    number, keyspace, prefix, start, end, limit, delimiter, range, is_keys_only, at
});
encoded_struct!(Stat, 15, { size, version });

impl Encoded for Key {
    const LEN_MIN: usize = 2;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(self.as_bytes().len() as u64);
        output.raw(self.as_bytes());
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Key::new(Bytes::decode(input)?)
            .map_err(|_| input.malformed("the key before is empty or too long"))
    }
}

encoded_struct!(ScanEntry, 4, { key, stat, bytes });

encoded_struct!(ScanPage, 3, { entries, groups, resume });

encoded_enum!(Body, "message", {
    0 => Commit(message),
    1 => Recovery(message),
    2 => Submit { transaction, ends, begun_us, is_retry, settled },
    3 => Read(request),
    4 => CancelRead { read },
    5 => SnapshotEnded { read },
    6 => FetchMap,
    7 => Reply { id, decision, outcomes, clock },
    8 => Part(part),
    9 => Refused { read, abort },
    10 => NewerMap(map),
    11 => NotHere(asked),
    12 => Renew { incarnation, epoch, sent_us, retention },
    13 => Granted { incarnation, sent_us, duration_us, epoch, retention },
    14 => Prepare(map),
    15 => Prepared { epoch },
    16 => Effective(map),
    17 => CaughtUp { epoch },
    18 => Return { incarnation, has_disk, level },
    19 => Movement(message),
    20 => ListKeys(request),
    21 => Keys { number, keys, is_end },
    22 => NotUnderstood { asked, level },
    23 @ 5 => Scan(request),
    24 @ 5 => Scanned { number, page },
    25 @ 9 => KeyLease(message),
    26 @ 10 => Upload(message),
    27 @ 11 => Moment { read, placed },
    28 @ 14 => KeyWatch(message),
});
