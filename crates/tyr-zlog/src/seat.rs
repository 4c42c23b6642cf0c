//! A sequencer that is asked over the network: the one of the node that the log's lock is at.
//!
//! ```text
//!   node:    SequencerKind ── seat of NAME \0 lock ──► Capability: the lock, the counter in memory
//!   client:  next() ─► in line ─► one asks for all that wait: next(n) ─► a run of n positions
//! ```
//!
//! What a seat has is a [`Capability`], as a client's own sequencer is: it takes the lock, goes on
//! with the counter that was left or recovers the log, and leaves its counter when it is recalled.
//! So clients that ask the seat and clients that hold the capability themselves append to the same
//! log side by side, and hand the lock on to each other by their policies. The term that comes
//! with each position is what keeps those apart that a lost seat has given from those of the next:
//! objects are sealed in between, and refuse what is of a view before.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tyr::{Bytes, Error, ErrorKind, Key, Keyspace, Result};
use tyr_object::blocking::Classes;
use tyr_object::{Answering, Failure, Seat, SeatKind};

use crate::capability::Capability;
use crate::class::Fields;
use crate::client::Client;
use crate::layout;
use crate::name::Name;
use crate::options::Opening;
use crate::sequencer::{Given, Run, Sequencer};

/// What requests to sequencers call.
const CLASS: &str = "zlog.sequencer";
const METHOD: &str = "next";

/// Positions of one request.
const RUN_MAX: u64 = 1_024;

/// The sequencers of logs, as seats of nodes: what `tyr serve` gives to what runs methods.
#[derive(Clone, Debug, Default)]
pub struct SequencerKind {
    /// How its sequencers hold the lock.
    pub opening: Opening,
}

impl SeatKind for SequencerKind {
    fn name(&self) -> &str {
        CLASS
    }

    fn seat(
        &self,
        classes: &Classes,
        keyspace: &tyr::blocking::Keyspace,
        key: &Key,
    ) -> Result<Arc<dyn Seat>> {
        let text = std::str::from_utf8(key.as_bytes()).ok();
        let name = text.and_then(|text| text.strip_suffix(layout::LOCK_SUFFIX));
        let name = name.ok_or_else(|| {
            Error::invalid("a sequencer is asked at the key of its log's lock, and this is none")
        })?;
        let (store, keyspace) = (classes.store().clone(), keyspace.clone());
        let client = Client::open(store, keyspace, classes.clone(), Name::new(name)?)?;
        Ok(Arc::new(SeatedSequencer(Capability::new(Arc::new(client), &self.opening))))
    }
}

/// The seat of a log's sequencer.
struct SeatedSequencer(Capability);

impl Seat for SeatedSequencer {
    fn ask(self: Arc<Self>, method: &str, input: &[u8]) -> Answering {
        let wanted = match (method, <[u8; 8]>::try_from(input).map(u64::from_le_bytes)) {
            (METHOD, Ok(wanted @ 1..=RUN_MAX)) => Ok(wanted),
            _ => Err(Error::invalid(format!(
                "a sequencer is asked for \"{METHOD}\", with a number from 1 to {RUN_MAX} in 8 \
                 bytes"
            ))),
        };
        Box::pin(async move {
            let Run { first, count, token } = self.0.next_run(wanted?).await?;
            Ok(Fields::of([token, first.term, first.position, count]).into())
        })
    }

    fn leave(&self, within: Duration) {
        self.0.leave(within);
    }
}

/// Who waits for a position of a [`RoundTrip`].
type Turn = oneshot::Sender<Told>;

/// What who waits is told.
enum Told {
    /// The position, or why there is none.
    Given(Result<Given>),
    /// That it is the one who asks now.
    Ask,
}

/// The sequencer of a client that asks the seat. Those of the client that come while a request is
/// under way share the next one.
pub(crate) struct RoundTrip {
    keyspace: Keyspace,
    key: Key,
    line: Mutex<Line>,
    /// In a store without nodes that have seats.
    own: Capability,
}

#[derive(Default)]
struct Line {
    is_asked: bool,
    is_closed: bool,
    waiting: Vec<Turn>,
}

impl std::fmt::Debug for RoundTrip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RoundTrip(at {:?})", self.key)
    }
}

impl RoundTrip {
    pub fn new(client: &Arc<Client>, keyspace: &Keyspace, opening: &Opening) -> Result<Self> {
        let own = Capability::new(Arc::clone(client), opening);
        let key = layout::lock_key(&client.name)?;
        Ok(Self { keyspace: keyspace.clone(), key, line: Mutex::default(), own })
    }

    /// Asks the seat for so many positions.
    async fn ask(&self, wanted: u64) -> Result<Run> {
        let input = Bytes::copy_from_slice(&wanted.to_le_bytes());
        let asked = self.keyspace.ask_seat(&self.key, CLASS, METHOD, input).await?;
        let Some(answer) = asked else { return self.own.next_run(wanted).await };
        let answer = answer.map_err(|failure| Error::from(Failure::from(failure)))?;
        match answer.as_chunks() {
            ([token, term, position, count], []) => {
                let [token, term, position, count] =
                    [token, term, position, count].map(|it| u64::from_le_bytes(*it));
                let first = Given { position, term };
                Ok(Run { first, count, token })
            }
            _ => Err(Error::corrupt("the sequencer answered no positions")),
        }
    }

    /// A place in line; `None` for who is the one to ask.
    fn stand_in_line(&self) -> Result<Option<oneshot::Receiver<Told>>> {
        let mut line = self.line.lock();
        if line.is_closed {
            return Err(Error::unavailable("the log was closed: open it anew"));
        }
        if !std::mem::replace(&mut line.is_asked, true) {
            return Ok(None);
        }
        let (turn, told) = oneshot::channel();
        line.waiting.push(turn);
        Ok(Some(told))
    }

    /// Asks for all that wait now; the first position is for who asks.
    async fn ask_for_all(&self) -> Result<Given> {
        // Whatever becomes of this, somebody else asks next.
        let _role = Role(&self.line);
        let waiting = {
            let mut line = self.line.lock();
            line.waiting.retain(|turn| !turn.is_closed());
            let count = line.waiting.len().min(RUN_MAX as usize - 1);
            line.waiting.drain(..count).collect::<Vec<_>>()
        };
        let mut run = match self.ask(1 + waiting.len() as u64).await {
            Ok(run) => run,
            Err(error) => {
                for turn in waiting {
                    let _ = turn.send(Told::Given(Err(error.duplicate())));
                }
                return Err(error);
            }
        };
        let short = || Error::corrupt("the sequencer answered fewer positions than it was asked");
        let own = run.take().ok_or_else(short);
        for turn in waiting {
            // Who does not wait any more leaves a hole.
            let _ = turn.send(Told::Given(run.take().ok_or_else(short)));
        }
        own
    }
}

/// That one asks for all; goes to the first in line.
struct Role<'a>(&'a Mutex<Line>);

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let mut line = self.0.lock();
        while !line.waiting.is_empty() {
            if line.waiting.remove(0).send(Told::Ask).is_ok() {
                return;
            }
        }
        line.is_asked = false;
    }
}

impl Sequencer for RoundTrip {
    fn next(&self) -> BoxFuture<'_, Result<Given>> {
        Box::pin(async {
            let Some(told) = self.stand_in_line()? else { return self.ask_for_all().await };
            let mut told = Heard { told: Some(told.into_future()), line: &self.line };
            match told.hear().await {
                Some(Told::Given(given)) => given,
                Some(Told::Ask) => self.ask_for_all().await,
                None => Err(Error::new(
                    ErrorKind::Unavailable,
                    "who asked the sequencer for this ended without an answer: try again",
                )),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.line.lock().is_closed = true;
            self.own.close().await
        })
    }
}

/// A place in line. Who leaves it although it was told to ask gives that on.
struct Heard<'a> {
    told: Option<oneshot::AsyncReceiver<Told>>,
    line: &'a Mutex<Line>,
}

impl Heard<'_> {
    async fn hear(&mut self) -> Option<Told> {
        let told = self.told.as_mut()?.await.ok();
        self.told = None;
        told
    }
}

impl Drop for Heard<'_> {
    fn drop(&mut self) {
        let Some(told) = self.told.take() else { return };
        // Whoever has somebody ask does that under this lock.
        let line = self.line.lock();
        let is_to_ask = matches!(told.now_or_never(), Some(Ok(Told::Ask)));
        drop(line);
        if is_to_ask {
            drop(Role(self.line));
        }
    }
}
