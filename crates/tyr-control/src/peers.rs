//! Control connections from a node to others: one to each address, opened when it is needed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use super::connect::Connect;
use super::connection::{CallError, Connection};
use super::hello::Hello;
use super::message::{Answer, Question};
use tyr_net as network;

/// How long opening a connection may take: a round trip or two on any network, and then some.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection on which nothing was heard for this long, although something was asked, is not used
/// for anything new. Those who wait on it for something that takes long go on waiting.
const SILENT_MAX: Duration = Duration::from_secs(2);

/// Most addresses that are remembered: every node of the largest cluster, and as many again that
/// have moved. Beyond that those without a connection are forgotten.
const ADDRESSES_MAX: usize = 2048;

/// What a connection says first, as of the moment when it is opened.
pub type SayHello = Arc<dyn Fn() -> Hello + Send + Sync>;

/// Filled while there is a connection; whoever needs another one opens it while the rest wait.
type Slot = Arc<AsyncMutex<Option<Arc<Connection>>>>;

/// Connections to other nodes. Clones share them.
#[derive(Clone)]
pub struct Peers {
    connect: Arc<dyn Connect>,
    hello: SayHello,
    slots: Arc<Mutex<HashMap<String, Slot>>>,
}

impl Peers {
    /// None yet.
    pub fn new(connect: Arc<dyn Connect>, hello: SayHello) -> Self {
        Self { connect, hello, slots: Arc::default() }
    }

    /// Asks whoever is at this address.
    ///
    /// # Errors
    /// As [`CallError`] says.
    pub async fn call(&self, address: &str, question: Question) -> Result<Answer, CallError> {
        self.connection(address).await?.call(question).await
    }

    /// The connection to this address, opened if there is none.
    ///
    /// # Errors
    /// `NotSent` when it cannot be opened, `Denied` when the other end refuses.
    pub async fn connection(&self, address: &str) -> Result<Arc<Connection>, CallError> {
        let slot = self.slot(address);
        let mut slot = slot.lock().await;
        let is_good = |it: &&Arc<Connection>| !it.is_closed() && !it.is_silent_for(SILENT_MAX);
        if let Some(open) = slot.as_ref().filter(is_good) {
            return Ok(Arc::clone(open));
        }
        *slot = None;
        let hello = (self.hello)();
        let opening = async {
            let stream = self.connect.connect(address).await?;
            Connection::open(stream, &hello).await
        };
        let failed = |text: String| CallError::NotSent(format!("{address}: {text}"));
        let open = match tokio::time::timeout(OPEN_TIMEOUT, opening).await {
            Ok(Ok(open)) => Arc::new(open),
            Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(CallError::Denied(format!("{address}: {error}")));
            }
            Ok(Err(error)) => {
                // The called looks at a certificate when the caller believes to be through.
                return Err(match network::explain(&error) {
                    Some(denied) => CallError::Denied(format!("{address}: {denied}")),
                    None => failed(error.to_string()),
                });
            }
            Err(_) => return Err(failed("no answer".to_owned())),
        };
        *slot = Some(Arc::clone(&open));
        Ok(open)
    }

    fn slot(&self, address: &str) -> Slot {
        let mut slots = self.slots.lock();
        if slots.len() >= ADDRESSES_MAX {
            slots.retain(|_, slot| slot.try_lock().is_ok_and(|it| it.is_some()));
        }
        Arc::clone(slots.entry(address.to_owned()).or_default())
    }
}
