//! The network between the nodes of a trial, and what can be done to it.
//!
//! There are two. [`namespaces`] gives each node a network of its own and takes packets away, as a
//! broken switch does; it needs to be root. [`relays`] puts a relay before each node that holds
//! bytes back; it needs nothing, and can be slow on any kernel. Both cut one way only if asked, and
//! TCP only, so that gossip, which is datagrams, goes on.
//!
//! A fabric knows no node but by its number, and nothing of what is said on it.

pub mod namespaces;
pub mod relays;

use std::net::SocketAddr;
use std::time::Duration;

use tyr_types::Result;

/// An end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// A node.
    Node(u16),
    /// The trial's own process, with all clients.
    Clients,
}

/// Where a node is to be.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where others reach it.
    pub advertise: String,
    /// Words before its command.
    pub command: Vec<String>,
}

/// How slow the lines of a node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowness {
    /// Each piece waits so long.
    pub delay: Duration,
    /// Of a hundred pieces so many have to be sent twice.
    pub loss_percent: u8,
}

/// A network that can be broken.
pub trait Fabric: Send + Sync {
    /// What it is, in a word.
    fn name(&self) -> &'static str;
    /// Makes a place for a node.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    fn endpoint(&self, node: u16) -> Result<Endpoint>;
    /// The node runs as this process now.
    fn started(&self, node: u16, pid: u32);
    /// What `from` sends does not reach `to` any more; or does again.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    fn cut(&self, from: End, to: End, is_cut: bool) -> Result<()>;
    /// What node `from` sends by TCP does not reach node `to` any more, while datagrams do; or does
    /// again.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    fn cut_tcp(&self, from: u16, to: u16, is_cut: bool) -> Result<()>;
    /// The lines of the node are slow; or not any more.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    fn slow(&self, node: u16, slowness: Option<Slowness>) -> Result<()>;
}

/// The best fabric there is: namespaces for root, else relays.
///
/// # Errors
/// `Unavailable` when there is none.
pub fn best() -> Result<Box<dyn Fabric>> {
    match namespaces::Namespaces::new() {
        Ok(fabric) => Ok(Box::new(fabric)),
        Err(_) => Ok(Box::new(relays::Relays::new()?)),
    }
}
