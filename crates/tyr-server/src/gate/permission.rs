//! Who may say what, by the rights of the user behind a connection.

use std::sync::atomic::Ordering;

use tyr_protocol::message::{Address, Body, ReadRequest};
use tyr_protocol::{key_lease, key_watch};
use tyr_types::{BlobName, Error, KeyspaceId, LeaseMode, Operation, Result, Transaction};

use super::{Gate, Parts, abort};
use tyr_net::access::{Caller, Right};

impl Gate {
    pub(super) fn permit_transaction(
        &self,
        caller: &Caller,
        transaction: &Transaction,
    ) -> Result<()> {
        for entry in &transaction.blobs {
            // An extent of anybody's could be named, and would be read as this blob's.
            if entry.operations.iter().any(Operation::has_extents) {
                self.refused.forged.fetch_add(1, Ordering::Relaxed);
                return Err(Error::invalid("a client sends payloads by value, not as extents"));
            }
            let is_writing = entry.operations.iter().any(|operation| operation.is_write());
            let right = if is_writing { Right::Write } else { Right::Read };
            self.permit(caller, &entry.blob, right)?;
        }
        transaction.reads.iter().try_for_each(|read| self.permit(caller, &read.blob, Right::Read))
    }

    pub(super) fn permit_read(
        &self,
        caller: &Caller,
        request: &ReadRequest,
        client: u64,
    ) -> Result<()> {
        if request.asker != Address::Client(client) || request.is_copy {
            self.refused.forged.fetch_add(1, Ordering::Relaxed);
            return Err(Error::invalid("a client reads for itself"));
        }
        self.permit(caller, &request.blob, Right::Read)
    }

    /// Who has a piece filled reads what it is filled with.
    pub(super) fn permit_copy(
        &self,
        caller: &Caller,
        blob: &BlobName,
        source: &BlobName,
    ) -> Result<()> {
        self.permit(caller, blob, Right::Write)?;
        self.permit(caller, source, Right::Read)
    }

    pub(super) fn refused_listing(
        &self,
        parts: &Parts,
        caller: &Caller,
        read: u64,
        keyspace: KeyspaceId,
    ) -> Option<Body> {
        let admit = |()| self.admit_read(parts, keyspace);
        let error = if caller.permits(keyspace, Right::Read) {
            self.check_read_room(parts).and_then(admit).err()?
        } else {
            self.refused.permission.fetch_add(1, Ordering::Relaxed);
            caller.refusal(&self.name_of(keyspace), Right::Read)
        };
        Some(Body::Refused { read, abort: abort(&error, None) })
    }

    /// Who keeps others from writing may write.
    pub(super) fn refused_lease(
        &self,
        caller: &Caller,
        message: &key_lease::Message,
    ) -> Option<Body> {
        let (lease, blob, mode) = match message {
            key_lease::Message::Ask { lease, blob, mode, .. } => (lease, blob, mode),
            key_lease::Message::AskGroup { lease, group, mode, .. } => (lease, group, mode),
            // What is said of what was permitted, and what a client does not say.
            key_lease::Message::Renew { .. }
            | key_lease::Message::GiveBack { .. }
            | key_lease::Message::Granted { .. }
            | key_lease::Message::Waits { .. }
            | key_lease::Message::Renewed { .. }
            | key_lease::Message::Recall { .. } => return None,
        };
        let right = match mode {
            LeaseMode::Shared => Right::Read,
            LeaseMode::Exclusive => Right::Write,
        };
        let error = self.permit(caller, blob, right).err()?;
        Some(Body::Refused { read: *lease, abort: abort(&error, Some(blob)) })
    }

    /// Who is told what changes may read it; who disturbs those may write it.
    pub(super) fn refused_watch(
        &self,
        caller: &Caller,
        message: &key_watch::Message,
    ) -> Option<Body> {
        let (read, keyspace, right) = match message {
            key_watch::Message::Ask { watch, target } => (*watch, target.keyspace, Right::Read),
            key_watch::Message::Notify { number, blob, .. } => {
                (*number, blob.keyspace, Right::Write)
            }
            // What is said of what was permitted, and what a client does not say.
            key_watch::Message::Renew { .. }
            | key_watch::Message::Heard { .. }
            | key_watch::Message::End { .. }
            | key_watch::Message::Watching { .. }
            | key_watch::Message::Changed { .. }
            | key_watch::Message::Renewed { .. }
            | key_watch::Message::Notice { .. }
            | key_watch::Message::Acknowledge { .. }
            | key_watch::Message::Notified { .. } => return None,
        };
        let error = self.permit_in(caller, keyspace, right).err()?;
        Some(Body::Refused { read, abort: abort(&error, None) })
    }

    /// Who calls a method of an object changes it, by what the method lets.
    pub fn permit_call(&self, caller: &Caller, blob: &BlobName) -> Result<()> {
        self.permit(caller, blob, Right::Call)
    }

    /// Who reads nothing has nodes keep nothing.
    pub(super) fn permit_moment(&self, caller: &Caller) -> Result<()> {
        if caller.reads_anything() {
            return Ok(());
        }
        let error = caller.refusal("any", Right::Read);
        self.refused.note_permission(caller.name(), &error);
        Err(error)
    }

    pub(super) fn permit(&self, caller: &Caller, blob: &BlobName, right: Right) -> Result<()> {
        self.permit_in(caller, blob.keyspace, right)
    }

    fn permit_in(&self, caller: &Caller, keyspace: KeyspaceId, right: Right) -> Result<()> {
        if caller.permits(keyspace, right) {
            return Ok(());
        }
        let error = caller.refusal(&self.name_of(keyspace), right);
        self.refused.note_permission(caller.name(), &error);
        Err(error)
    }
}
