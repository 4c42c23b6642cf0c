//! An upload in parts: one stream into a blob, which is committed when its end is told.
//!
//! ```text
//!   put_part ──▶ queue ──▶ the write of a stream ──▶ the store, a few MiB at a time
//!   complete ──▶ the end, in the queue ──▶ one commit
//! ```
//!
//! A part is done when the write has taken it, so that who bounds the parts under way bounds what
//! the queue holds, as `BufWriter` and `WriteMultipart::wait_for_capacity` do. Parts that nobody
//! waits for are bounded by [`UNWRITTEN_MAX`].
//!
//! There is no task behind it: who awaits a part or the end drives the write, so that it runs on
//! any executor. An upload that is dropped without its end changes nothing, and its space is given
//! back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, Shared, select};
use futures_util::{FutureExt, stream};
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, UploadPart};
use tokio::sync::{mpsc, oneshot};
use tyr::Keyspace;

use crate::failure::{generic, told};

type Written = Result<u64, Arc<tyr::Error>>;
type Write = Shared<BoxFuture<'static, Written>>;

enum Step {
    Piece(Bytes),
    /// All that came before of a part is taken.
    PartEnd(oneshot::Sender<()>),
    End,
}

/// What the parts that were put and not written may have together, in bytes: 1 GiB.
const UNWRITTEN_MAX: usize = 1 << 30;

/// An upload that is under way or over.
pub(crate) struct Upload {
    location: Path,
    /// `None` once it is over.
    under_way: Option<UnderWay>,
}

struct UnderWay {
    steps: mpsc::UnboundedSender<Step>,
    write: Write,
    /// The bytes in the queue.
    unwritten: Arc<AtomicUsize>,
}

/// The other end of the queue.
struct Steps {
    steps: mpsc::UnboundedReceiver<Step>,
    unwritten: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Upload({})", self.location)
    }
}

impl Upload {
    pub fn new(keyspace: Keyspace, key: String, location: Path) -> Self {
        let (steps, taken) = mpsc::unbounded_channel();
        let unwritten = Arc::new(AtomicUsize::new(0));
        let taken = Steps { steps: taken, unwritten: unwritten.clone() };
        let pieces = Box::pin(stream::try_unfold(Some(taken), next_piece));
        let write = async move { keyspace.put_stream(key, pieces).await.map_err(Arc::new) };
        let write = write.boxed().shared();
        Self { location, under_way: Some(UnderWay { steps, write, unwritten }) }
    }
}

async fn next_piece(steps: Option<Steps>) -> io::Result<Option<(Bytes, Option<Steps>)>> {
    let Some(mut steps) = steps else { return Ok(None) };
    loop {
        match steps.steps.recv().await {
            Some(Step::Piece(piece)) => {
                steps.unwritten.fetch_sub(piece.len(), Ordering::Relaxed);
                return Ok(Some((piece, Some(steps))));
            }
            // Nobody waits for a part whose future was dropped.
            Some(Step::PartEnd(taken)) => drop(taken.send(())),
            Some(Step::End) => return Ok(None),
            None => return Err(io::Error::other("the upload was given up before its end")),
        }
    }
}

fn over() -> object_store::Error {
    generic("this upload is complete or aborted; begin another")
}

fn too_much() -> object_store::Error {
    generic(format!(
        "parts of more than {UNWRITTEN_MAX} bytes wait to be written, so the upload was aborted; \
         await parts before putting more, as BufWriter and WriteMultipart::wait_for_capacity do"
    ))
}

fn failed(error: &tyr::Error, location: &Path) -> object_store::Error {
    told(error.duplicate(), location)
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let Some(UnderWay { steps, write, unwritten }) = &self.under_way else {
            return async { Err(over()) }.boxed();
        };
        let before = unwritten.fetch_add(data.content_length(), Ordering::Relaxed);
        if before.saturating_add(data.content_length()) > UNWRITTEN_MAX && before > 0 {
            // Without this part the object would have a hole, so nothing of it is committed.
            self.under_way = None;
            return async { Err(too_much()) }.boxed();
        }
        let (taken, is_taken) = oneshot::channel();
        // A write that failed has no queue any more; it says so itself below.
        for piece in data {
            let _ = steps.send(Step::Piece(piece));
        }
        let _ = steps.send(Step::PartEnd(taken));
        let (write, location) = (write.clone(), self.location.clone());
        async move {
            match select(is_taken, write).await {
                Either::Left((Ok(()), _)) => Ok(()),
                Either::Left((Err(_), write)) => match write.await {
                    Ok(_) => Err(over()),
                    Err(error) => Err(failed(&error, &location)),
                },
                Either::Right((Err(error), _)) => Err(failed(&error, &location)),
                // It ended, so every part before the end was taken.
                Either::Right((Ok(_), mut is_taken)) => is_taken.try_recv().map_err(|_| over()),
            }
        }
        .boxed()
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        let UnderWay { steps, write, .. } = self.under_way.take().ok_or_else(over)?;
        let _ = steps.send(Step::End);
        match write.await {
            // Which version it has, the commit of a stream does not tell.
            Ok(_) => Ok(PutResult { e_tag: None, version: None, extensions: Default::default() }),
            Err(error) => Err(failed(&error, &self.location)),
        }
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.under_way.take().map(drop).ok_or_else(over)
    }
}
