//! What a client needs of the monitors: the newest map, changes of it, and service metadata.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tyr_control::call::{CallAnswer, CallKind, Called};
use tyr_control::status::Bootstrap;
use tyr_control::usage::NodeUsage;
use tyr_control::{Answer, CallError, NodeRecord, Request};
use tyr_metadata::KeyChange;
use tyr_protocol::map::Change;
use tyr_types::{Epoch, NodeId, Result};

use super::presence::Presence;

/// An answer of the monitors, later.
pub type Asked<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// What nodes say of how much there is with them, by number.
pub type UsageOfNodes = BTreeMap<u16, Result<NodeUsage>>;

/// What came of a call that a node was sent.
pub type CalledAt = std::result::Result<Option<CallAnswer>, CallError>;

/// The monitors, as a client sees them.
pub trait Control: Send + Sync + 'static {
    /// The map that holds, every change in it that was answered before to anybody; and what the
    /// nodes tell of themselves.
    fn newest(&self) -> Asked<Bootstrap>;
    /// A change of the map. The answer is the epoch from which it holds.
    fn propose(&self, change: Change) -> Asked<Epoch>;
    /// Whatever else can be asked, but for watches.
    fn ask(&self, request: Request) -> Asked<Answer>;
    /// What each of these nodes says of how much there is with it, or why it does not say.
    fn usage_of(&self, nodes: BTreeMap<u16, NodeRecord>) -> Asked<UsageOfNodes>;
    /// Has a node run a method, or asks a seat there, after a pause; `None` when it is of an older
    /// release. What is known of where the node is may be old.
    fn call_at(
        &self,
        node: NodeId,
        kind: CallKind,
        called: Called,
        pause: Duration,
        patience: Duration,
    ) -> Asked<CalledAt>;
    /// What changed under a prefix of the service metadata after a revision, and up to which
    /// revision that is everything; comes when there is something. Dropping it withdraws it.
    fn changes(&self, prefix: String, after: u64) -> Asked<(Vec<KeyChange>, u64)>;
    /// A presence of this client, which is renewed from then on.
    fn presence(&self, ttl: Duration) -> Asked<Presence>;
    /// Nothing is asked any more. Does nothing the second time.
    fn close(&self);
}
