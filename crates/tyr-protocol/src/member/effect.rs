//! What a node asks of its driver.

use std::sync::Arc;

use tyr_types::Timestamp;

use super::record::Record;
use crate::map::ClusterMap;
use crate::message::{Address, Envelope, ListForm, ReadRequest, ScanRequest};
use crate::movement::scrub::Finding;

/// What the driver does for a node.
///
/// Order rules:
/// - Effects are executed in the order they were given, those of one step before the next step.
/// - `Persist` is answered by `Persisted` or `PersistFailed` when it is synced, at once or later.
///   Records become durable in the order they were given: whoever is durable, all before it are.
/// - `Serve` reads the store as it is now, before the next step: at a timestamp what is at or
///   below it, without one the newest.
/// - `Resume` is answered by [`super::Event::Resume`], and `Yield` by [`super::Event::Continue`].
/// - `Send` may be slow, and may overtake another.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Give this to that address.
    Send {
        /// The receiver.
        to: Address,
        /// The message.
        envelope: Envelope,
    },
    /// Add the record to the node's log.
    Persist {
        /// What the answer names.
        number: u64,
        /// The record.
        record: Record,
        /// Whether the answer is waited for, and it has to be durable before. If not, it is durable
        /// within some 50 milliseconds (F7).
        is_synced: bool,
    },
    /// Read the store, and send the asker a [`crate::message::ReadPart`] at `at`, or for a copy
    /// ([`ReadRequest::is_copy`]) a [`crate::movement::Message::Copied`]; a
    /// [`crate::message::Body::Refused`] when the version is gone. [`super::Member::envelope`]
    /// puts the address on it. The asker may be this node itself.
    Serve {
        /// The read; its asker gets the answer.
        request: ReadRequest,
        /// The timestamp to read at; `None` for the newest.
        at: Option<Timestamp>,
    },
    /// List the blobs that this node is the authority of by this map, as they were at the
    /// timestamp that is asked for, now or later: what was there then is applied, and does not
    /// change. When it is done, and [`super::Member::has_listed_by`] says that the map still holds,
    /// send the client the page in its form, or a `Refused` when the moment is too old; else a
    /// `NotHere`.
    List {
        /// Who asked.
        client: u64,
        /// What it wants.
        request: Arc<ScanRequest>,
        /// How it is answered.
        form: ListForm,
        /// When the first bytes are read: at the same timestamp (Q2).
        bytes_at: Option<Timestamp>,
        /// Says of which blobs the node is the authority.
        map: Arc<ClusterMap>,
    },
    /// Tell whoever looks after the node what was found in comparing replicas (D4).
    Found(Finding),
    /// Step again with [`super::Event::Resume`].
    Resume,
    /// Let what was sent so far go out, and then step again with [`super::Event::Continue`]: what
    /// follows takes a while. Other steps may come in between.
    Yield,
}
