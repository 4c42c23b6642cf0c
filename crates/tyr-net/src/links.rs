//! All connections, by who is at the other end; and those with something to flush.
//!
//! Must not know: how a connection comes about, and how it writes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use parking_lot::{Mutex, RwLock};
use tyr_protocol::message::{Address, Envelope};
use tyr_types::{Error, ErrorKind, Result};

use super::link::{Link, Put};

/// Why a client is not taken.
const SAME_CLIENT: &str = "another client is connected under the number of this one: a machine or \
                           a process was copied while it was connected; connect anew";

/// Between two looks whether all is written.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The connections in use.
#[derive(Debug, Default)]
pub(super) struct Links {
    table: RwLock<HashMap<Address, Arc<Link>, FixedState>>,
    unflushed: Mutex<Unflushed>,
}

/// The connections that got a message since they were flushed last.
#[derive(Debug, Default)]
struct Unflushed {
    list: Vec<Arc<Link>>,
    /// An empty one, so that a list need not be made for each flush.
    spare: Vec<Arc<Link>>,
}

impl Links {
    /// Takes a connection into use. An older one with the same peer ends.
    ///
    /// # Errors
    /// `InvalidArgument` when one of a newer incarnation is in use: this one is a leftover.
    /// `AlreadyExists` when another client of the same number is connected.
    pub fn insert(&self, link: &Arc<Link>) -> Result<()> {
        let mut table = self.table.write();
        if let Some(other) = table.get(&link.peer.address) {
            debug_assert!(!Arc::ptr_eq(other, link), "a connection is taken into use once");
            debug_assert_ne!(
                other.peer.connection, link.peer.connection,
                "each connection has a number of its own"
            );
            check_incarnation(other, link.peer.incarnation)?;
            other.end("the peer has made a newer connection");
        }
        table.insert(link.peer.address, Arc::clone(link));
        debug_assert!(
            table.iter().all(|(address, link)| *address == link.peer.address),
            "a connection lies under its peer's address"
        );
        Ok(())
    }

    /// Whether a peer of this incarnation would be taken.
    ///
    /// # Errors
    /// As [`Links::insert`].
    pub fn check(&self, address: Address, incarnation: u64) -> Result<()> {
        match self.table.read().get(&address) {
            Some(other) => check_incarnation(other, incarnation),
            None => Ok(()),
        }
    }

    /// Takes a connection out of use; a newer one with the same peer stays.
    pub fn remove(&self, link: &Arc<Link>) {
        let mut table = self.table.write();
        if table.get(&link.peer.address).is_some_and(|other| Arc::ptr_eq(other, link)) {
            table.remove(&link.peer.address);
        }
        debug_assert!(
            table.get(&link.peer.address).is_none_or(|other| !Arc::ptr_eq(other, link)),
            "who is out of use is not found"
        );
    }

    /// Puts a message into the outbox of its receiver; `None` when it is not connected.
    pub fn put(&self, to: Address, envelope: &Envelope) -> Option<Put> {
        // Not under the table's lock: a large message takes milliseconds, for its checksum.
        let link = self.table.read().get(&to).cloned()?;
        let put = link.put(envelope);
        if put == (Put::Taken { is_first: true }) {
            self.unflushed.lock().list.push(link);
        }
        Some(put)
    }

    /// Whether there is a connection with this one.
    pub fn has(&self, address: Address) -> bool {
        self.table.read().contains_key(&address)
    }

    /// Writes what was put in before this call and was not taken over by another who flushes.
    pub fn flush(&self) {
        let mut list = {
            let mut unflushed = self.unflushed.lock();
            let spare = std::mem::take(&mut unflushed.spare);
            std::mem::replace(&mut unflushed.list, spare)
        };
        debug_assert!(
            self.unflushed.lock().spare.is_empty(),
            "the spare list is empty, or in use by another who flushes"
        );
        for link in list.drain(..) {
            link.flush();
        }
        self.unflushed.lock().spare = list;
    }

    /// Until sockets have taken what was put in, but no longer than `patience`.
    pub fn wait_written(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut waiting: Vec<_> = self.table.read().values().cloned().collect();
        loop {
            waiting.retain(|link| link.waiting_len() > 0);
            if waiting.is_empty() || Instant::now() >= until {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Ends the connection with this one, if there is one.
    pub fn end_one(&self, address: Address, reason: &str) {
        if let Some(link) = self.table.read().get(&address) {
            link.end(reason);
        }
    }

    /// Ends all connections, and lets go of their sockets.
    pub fn end(&self, reason: &str) {
        let mut table = self.table.write();
        for (_, link) in table.drain() {
            link.end(reason);
        }
        drop(table);
        *self.unflushed.lock() = Unflushed::default();
    }

    /// Connections with nodes, and with clients.
    pub fn counts(&self) -> (usize, usize) {
        let table = self.table.read();
        let clients = table.values().filter(|link| link.is_client()).count();
        debug_assert!(clients <= table.len(), "clients are some of all");
        (table.len() - clients, clients)
    }
}

/// Whether a peer of this incarnation may take the place of another connection.
///
/// A client counts its connections, and says how many. So none of its own is as high as the one
/// that it makes: what is, is another client of the same number. Who says 0 does not count, as
/// programs of before.
fn check_incarnation(other: &Link, incarnation: u64) -> Result<()> {
    let known = other.peer.incarnation;
    if other.is_client() && incarnation > 0 && known >= incarnation {
        return Err(Error::new(ErrorKind::AlreadyExists, SAME_CLIENT));
    }
    if known <= incarnation {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{:?} is connected already as incarnation {}, this one is {incarnation}: end the older \
         process, or give one of the two another number",
        other.peer.address, other.peer.incarnation
    )))
}
