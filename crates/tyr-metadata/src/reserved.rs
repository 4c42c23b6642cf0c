//! The keys of the service metadata that the cluster itself uses.
//!
//! What lies under [`CLUSTER`], [`USERS`], [`QUOTAS`] and [`super::access::PREFIX`] is for
//! administrators and the system; a few keys are the system's alone, since the monitors count on
//! what they wrote.

use tyr_types::NodeId;

use super::Path;

/// What the cluster knows of itself.
pub const CLUSTER: &str = "cluster/";
/// Users, one key each.
pub const USERS: &str = "users/";
/// Quotas of keyspaces, one key each.
pub const QUOTAS: &str = "quotas/";
/// Classes of objects, one key each, and their scripts behind. They are not the cluster's own: who
/// may write them is a matter of rights.
pub const CLASSES: &str = "classes/";
/// What nodes reported of themselves, one key each.
pub const NODES: &str = "cluster/nodes/";
/// Nodes that were drained, one key each: they come in again when an administrator says so, and not
/// by themselves.
pub const DRAINED: &str = "cluster/drained/";
/// The cluster log: what became different with each map, one key for those that differ, and behind
/// each what happened while it was in effect.
pub const LOG: &str = "cluster/log/";
/// The cluster's identity: 16 random bytes, written once.
pub const ID: &str = "cluster/id";
/// The map in effect, as `tyr_protocol::wire` writes it.
pub const MAP: &str = "cluster/map";
/// The highest epoch that any node was ever asked to prepare for.
pub const EPOCH_MAX: &str = "cluster/epoch_max";

/// Where a node's report lies.
pub fn node(node: NodeId) -> Path {
    path(&format!("{NODES}{}", node.0))
}

/// Where it is noted what became different with the map of this epoch; in order of epochs.
pub fn log_entry(epoch: u32) -> Path {
    path(&format!("{LOG}{epoch:010}"))
}

/// Where it is noted what happened while the map of this epoch was in effect: behind what became
/// different with it, in the order of these numbers. `of` is whose entry it is.
pub fn log_event(epoch: u32, number: u64, of: &str) -> Path {
    path(&format!("{LOG}{epoch:010}.{number:010}.{of}"))
}

/// Of an entry of the cluster log: the epoch and, of what happened in it, the number and whose it
/// is.
pub fn log_place(path: &str) -> Option<(u32, Option<(u64, &str)>)> {
    let mut parts = path.strip_prefix(LOG)?.splitn(3, '.');
    let epoch = parts.next()?.parse().ok()?;
    let Some(number) = parts.next() else { return Some((epoch, None)) };
    Some((epoch, Some((number.parse().ok()?, parts.next()?))))
}

/// The name of the class whose record this key has; of a script there is none.
pub fn class(path: &str) -> Option<&str> {
    path.strip_prefix(CLASSES).filter(|name| !name.is_empty() && !name.contains('/'))
}

/// Where it is noted that a node was drained.
pub fn drained(node: NodeId) -> Path {
    path(&format!("{DRAINED}{}", node.0))
}

/// One of the keys above.
pub fn path(text: &str) -> Path {
    Path::new(text).expect("the keys of the cluster itself are well-formed")
}

/// Whether only the monitors may write this key: they decide by what it holds.
pub fn is_system(path: &str) -> bool {
    matches!(path, ID | MAP | EPOCH_MAX)
}
