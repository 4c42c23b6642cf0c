//! Calls of a method in Lua, beside the plain write that each becomes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tyr::{Durability, Error, Keyspace, KeyspaceConfig, Result, Tyr};
use tyr_object::{Call, Classes};
use tyr_runtime::waiting::block_on;

use super::meter::Figures;
use super::pace::{self, Pace, Step};

/// Bytes that are written.
pub(super) const WRITTEN: usize = 100;

/// The keyspace of a folder.
const KEYSPACE: &str = "bench";

/// The class, with the method that writes its input.
const SCRIPT: &str = r#"return { name = "bench", methods = {
  put = { kind = "call", run = function(cx, blob, input) blob:write(0, input) end },
} }"#;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// A plain write, each caller to a blob of its own.
    Plain,
    /// A call that does the same.
    Call,
    /// Calls of one object by all callers.
    Hot,
}

impl Work {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain writes of 100 B",
            Self::Call => "calls that write 100 B",
            Self::Hot => "calls of one object",
        }
    }

    fn key(self, caller: usize) -> String {
        match self {
            Self::Plain | Self::Call => format!("object-{caller}"),
            Self::Hot => "object".to_owned(),
        }
    }
}

/// How its keyspace is made.
pub(super) fn config() -> KeyspaceConfig {
    tyr_object::keyspace_config()
}

/// A keyspace of objects, and what is done to them.
pub(super) struct CallCase {
    keyspace: Keyspace,
    classes: Classes,
    work: Work,
    /// Which callers have done it: in a short run some may not have had the time.
    has_done: Vec<AtomicBool>,
}

impl CallCase {
    /// The case for so many callers, with its class installed where it has one.
    pub(super) async fn new(
        store: &Tyr,
        keyspace: Keyspace,
        work: Work,
        callers: usize,
    ) -> Result<Self> {
        let classes = Classes::of(store);
        if work != Work::Plain {
            classes.ensure(None, SCRIPT.as_bytes()).await?;
            classes.enable("bench", keyspace.name()).await?;
        }
        let has_done = (0..callers).map(|_| AtomicBool::new(false)).collect();
        Ok(Self { keyspace, classes, work, has_done })
    }

    /// This caller does it once.
    pub(super) async fn once(&self, caller: usize) -> Result<()> {
        let key = self.work.key(caller);
        if self.work == Work::Plain {
            self.keyspace.write(key, 0, vec![7; WRITTEN]).await?;
        } else {
            let call = Call::new("bench", "put", vec![7; WRITTEN]);
            self.classes.call(&self.keyspace, key, &call).await?;
        }
        self.has_done[caller].store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The same in the thread that calls.
    fn once_here(&self, caller: usize) -> Result<()> {
        if self.work == Work::Plain {
            return block_on(self.once(caller));
        }
        let call = Call::new("bench", "put", vec![7; WRITTEN]);
        let keyspace = self.keyspace.as_blocking();
        self.classes.as_blocking().call(keyspace, self.work.key(caller), &call)?;
        self.has_done[caller].store(true, Ordering::Relaxed);
        Ok(())
    }

    /// An error unless the blob of each caller that has done it is what was written.
    pub(super) async fn verify(&self) -> Result<()> {
        let callers = (0..).zip(&self.has_done);
        for (caller, _) in callers.filter(|(_, has_done)| has_done.load(Ordering::Relaxed)) {
            if self.keyspace.get(self.work.key(caller)).await? != [7; WRITTEN][..] {
                let text = format!("{} is not what was written", self.work.key(caller));
                return Err(Error::corrupt(text));
            }
        }
        Ok(())
    }
}

/// Measures so many threads at a folder; looks at the blobs afterwards.
pub fn run(pace: Pace, dir: &Path, work: Work, threads: usize) -> Result<Figures> {
    let store = block_on(Tyr::open(dir))?;
    let buffered = KeyspaceConfig { durability: Durability::Buffered, ..config() };
    let keyspace = block_on(store.create_keyspace(KEYSPACE, buffered))?;
    let case = block_on(CallCase::new(&store, keyspace, work, threads))?;
    let shared = &case;
    let step = |caller| -> Step<'_> { Box::new(move || shared.once_here(caller)) };
    let run = pace::run(pace, (0..threads).map(step).collect(), || ())?;
    block_on(case.verify())?;
    let mut figures = Figures::default();
    run.cost.report(pace::count(&run.threads), &mut figures);
    pace::report_latencies(&run.threads, &mut figures);
    drop(case);
    block_on(store.close())?;
    Ok(figures)
}
