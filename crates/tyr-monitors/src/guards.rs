//! Guards of the service metadata: the leader looks at them before anything is agreed on.

use tyr_control::Fault;
use tyr_metadata::{Actor, Transaction, guard};

use super::monitor::Monitor;

/// How often a transaction is looked at again that met another one.
const TRIES_MAX: usize = 8;

impl Monitor {
    /// Has a transaction agreed on that somebody asks for, if the guards let it pass; the revision.
    pub(super) async fn write_guarded(
        &self,
        actor: &Actor,
        transaction: Transaction,
    ) -> Result<u64, Fault> {
        // A guard whose put was answered is there then.
        self.be_current().await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let guarded = self.guarded(actor, &transaction)?;
            let is_added = guarded.conditions.len() > transaction.conditions.len();
            let noted = self.note_act(actor, guarded);
            match self.write(actor, noted).await {
                // What a guard was asked about has changed since, perhaps.
                Err(Fault::Refused(refusal))
                    if refusal.is_conflict() && is_added && tries < TRIES_MAX => {}
                written => return written,
            }
        }
    }

    /// A transaction with what guards want to stay as it is, by what is here: whoever asks is the
    /// leader, and current.
    pub(super) fn guarded(
        &self,
        actor: &Actor,
        transaction: &Transaction,
    ) -> Result<Transaction, Fault> {
        let store = self.shared.committed.read();
        guard::guarded(&store, actor, transaction).map_err(|error| Fault::Refused(error.into()))
    }
}
