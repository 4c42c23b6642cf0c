//! Runs operations: reads what their plans want, commits what they draft, and plans again when
//! what was known did not hold.

use std::ops::Bound;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rustix::io::Errno;
use tyr::blocking::{Keyspace, Transaction};
use tyr::{Bytes, Committed, ErrorKind, OperationId, Scan};

use super::attempts::{ATTEMPTS_MAX, back_off, settled};
use super::bundle::Bundled;
use super::opens::Ending;
use super::store::{DATA_CHUNK_SIZE, FileSystem, META_CHUNK_SIZE, Shared};
use crate::error::{Error, Result};
use crate::layout::key::{self, Blob, Role, Space};
use crate::layout::record::{Access, MODE_AT, RECORD_LEN};
use crate::plan::known::{FileFacts, SEGMENTS_MAX};
use crate::plan::{Change, Condition, Draft, Found, Known, Operation, Stop, Want};

/// How often a plan asks for more.
pub(super) const READS_MAX: u32 = 10_000;

/// What an operation answered, and where its append was put, if it has one.
#[derive(Debug)]
pub struct Done<T> {
    pub answer: T,
    pub appended_at: Option<u64>,
}

/// What of a draft has to be told.
struct Ids {
    append: Option<OperationId>,
}

impl FileSystem {
    /// Runs an operation.
    pub(super) fn run<O: Operation>(&self, operation: &O) -> Result<O::Answer> {
        self.run_telling(operation).map(|done| done.answer)
    }

    /// The same, with where its append was put.
    pub(super) fn run_telling<O: Operation>(&self, operation: &O) -> Result<Done<O::Answer>> {
        if self.bundle.is_some() {
            let answer = self.run_bundled(operation)?;
            return Ok(Done { answer, appended_at: None });
        }
        let (mut known, mut held, mut reads) = (Known::default(), Vec::new(), 0);
        let mut attempts = 0;
        loop {
            let is_done = match operation.plan(&known) {
                // What was read is what the answer is.
                Ok(Draft { changes, answer, .. }) if changes.is_empty() => {
                    Some(Done { answer, appended_at: None })
                }
                Ok(draft) => self.shared.commit(draft)?,
                Err(Stop::Read(want)) if reads < READS_MAX => {
                    reads += 1;
                    match self.shared.read(&mut known, &mut held, want) {
                        Ok(()) => continue,
                        // Data has moved since the moment at which it was read.
                        Err(error) if error.is_too_old() => None,
                        Err(error) => return Err(error),
                    }
                }
                Err(Stop::Read(want)) => {
                    let text = format!("an operation asks without end: {want:?}");
                    return Err(Error::new(Errno::IO, text));
                }
                Err(Stop::Fail(error)) => return Err(error),
                Err(Stop::FailIf(error, conditions)) => {
                    let draft = Draft { conditions, changes: Vec::new(), answer: () };
                    match self.shared.commit(draft)? {
                        Some(_) => return Err(error),
                        None => None,
                    }
                }
                Err(Stop::Again) => None,
            };
            if let Some(done) = is_done {
                return Ok(done);
            }
            attempts += 1;
            if attempts == ATTEMPTS_MAX {
                let text = "others changed it all the time; try again";
                return Err(Error::new(Errno::BUSY, text));
            }
            held.clear();
            (known, reads) = (Known::careful(), 0);
            back_off(attempts);
        }
    }
}

impl FileSystem {
    /// Begins an operation that nobody waits for: it is seen here at once, and lost where others
    /// are in the way, or the power fails soon.
    pub(super) fn run_unwaited<O: Operation<Answer = ()>>(&self, operation: &O) -> Result<()> {
        if self.bundle.is_some() {
            return self.run(operation);
        }
        let (mut known, mut held) = (Known::default(), Vec::new());
        for _ in 0..READS_MAX {
            match operation.plan(&known) {
                Ok(Draft { changes, .. }) if changes.is_empty() => break,
                Ok(Draft { conditions, changes, answer: () }) => {
                    let mut transaction = self.shared.tyr.begin();
                    let mut ids = Ids { append: None };
                    self.shared.fill(&mut transaction, &mut ids, conditions, changes)?;
                    let commit = pin!(transaction.into_async().commit());
                    return match commit.poll(&mut Context::from_waker(Waker::noop())) {
                        Poll::Ready(Err(error)) if error.kind() != ErrorKind::Conflict => {
                            Err(error.into())
                        }
                        Poll::Ready(_) | Poll::Pending => Ok(()),
                    };
                }
                Err(Stop::Read(want)) => self.shared.read(&mut known, &mut held, want)?,
                Err(Stop::Fail(error)) => return Err(error),
                Err(Stop::FailIf(..) | Stop::Again) => break,
            }
        }
        Ok(())
    }
}

impl Shared {
    pub(super) fn keyspace(&self, space: Space) -> &Keyspace {
        match space {
            Space::Meta => &self.meta,
            Space::Data => &self.data,
        }
    }

    /// Reads what a plan wants.
    fn read<'a>(&'a self, known: &mut Known, held: &mut Vec<Ending<'a>>, want: Want) -> Result<()> {
        match want {
            Want::Blob(blob, len) => {
                let found = self.find(&blob, len)?;
                known.learn_blob(blob, len, found);
            }
            Want::Access(directory) => {
                let header = Blob::header(directory);
                let read = self.meta.read(&header.key, MODE_AT, Access::LEN as u64);
                known.learn_access(directory, absent_is_none(read)?)?;
            }
            Want::Tail(blob, from) => {
                let read = self.keyspace(blob.space).read(&blob.key, from, 64 << 20);
                let bytes = absent_is_none(read)?.unwrap_or_default();
                known.learn_tail(blob, from, bytes);
            }
            Want::File(number) => {
                let scan = Scan::new().prefix(key::file(number)).first_bytes(RECORD_LEN as u64);
                let page = self.data.scan_page(&scan)?;
                let found = page.entries.into_iter().map(|entry| {
                    let stat = entry.stat.expect("attributes were asked for");
                    let (size, version) = (stat.size, stat.version);
                    let blob = Blob { space: Space::Data, key: entry.key };
                    (blob, Found { size, version, bytes: entry.bytes })
                });
                known.learn_file(number, FileFacts::decode(found)?);
            }
            Want::Segments(number, from) => {
                known.learn_segments(number, from, self.segments(number, from)?);
            }
            Want::Others => known.learn_others(self.others(known.is_careful)?),
            Want::IsOpen(number) => {
                let ending = self.opens.hold_closed(number);
                known.learn_open(number, ending.is_none());
                held.extend(ending);
            }
        }
        Ok(())
    }

    /// A blob with so many of its first bytes, at one moment.
    fn find(&self, blob: &Blob, len: u64) -> Result<Option<Found>> {
        // What is wanted is in the first chunk, at one node.
        let len = len.min(match blob.space {
            Space::Meta => META_CHUNK_SIZE,
            Space::Data => DATA_CHUNK_SIZE,
        });
        let read = self.keyspace(blob.space).read_with_stat(&blob.key, 0, len);
        Ok(absent_is_none(read)?.map(|(stat, bytes)| {
            let (size, version) = (stat.size, stat.version);
            Found { size, version, bytes }
        }))
    }

    /// The highest segments of a file from this one on.
    fn segments(&self, number: u64, from: u32) -> Result<Vec<u32>> {
        let prefix = number.to_be_bytes();
        let from = Blob::content(number, from);
        let scan = Scan::new().prefix(prefix).from(from.key.as_bytes()).keys_only();
        let mut segments = Vec::new();
        for page in self.data.scan_pages(&scan) {
            for entry in page?.entries {
                let blob = Blob { space: Space::Data, key: entry.key };
                if let Role::Content(_, segment) = blob.parse()? {
                    segments.push(segment);
                }
            }
        }
        let too_many = segments.len().saturating_sub(SEGMENTS_MAX);
        segments.drain((Bound::Unbounded, Bound::Excluded(too_many)));
        Ok(segments)
    }

    /// Commits a draft; `None` when a condition did not hold.
    fn commit<T>(&self, draft: Draft<T>) -> Result<Option<Done<T>>> {
        let Draft { conditions, changes, answer } = draft;
        if conditions.is_empty() && changes.is_empty() {
            return Ok(Some(Done { answer, appended_at: None }));
        }
        let (mut transaction, mut ids) = (self.tyr.begin(), Ids { append: None });
        self.fill(&mut transaction, &mut ids, conditions, changes)?;
        let Some(committed) = self.finish(transaction.commit())? else { return Ok(None) };
        let appended_at = ids.append.and_then(|id| committed.offset(id));
        Ok(Some(Done { answer, appended_at }))
    }

    /// Commits what was bundled; whether all conditions held.
    pub(super) fn commit_bundled(&self, bundled: Bundled) -> Result<bool> {
        let Bundled { conditions, changes, mut transaction, closed, .. } = bundled;
        // Whoever opens them from now on waits until it is clear whether they are there.
        let Some(_held) = self.opens.hold_all_closed(&closed) else { return Ok(false) };
        self.fill(&mut transaction, &mut Ids { append: None }, conditions, changes)?;
        Ok(self.finish(transaction.commit())?.is_some())
    }

    fn fill(
        &self,
        transaction: &mut Transaction,
        ids: &mut Ids,
        conditions: Vec<Condition>,
        changes: Vec<Change>,
    ) -> tyr::Result<()> {
        for condition in conditions {
            self.require(transaction, condition)?;
        }
        for change in changes {
            self.change(transaction, ids, change)?;
        }
        Ok(())
    }

    fn require(&self, transaction: &mut Transaction, condition: Condition) -> tyr::Result<()> {
        match condition {
            Condition::Bytes(blob, offset, bytes) => {
                transaction.compare(self.keyspace(blob.space), &blob.key, offset, bytes).map(drop)
            }
            Condition::Number(blob, offset, relation, number) => transaction
                .compare_number(self.keyspace(blob.space), &blob.key, offset, relation, number)
                .map(drop),
            Condition::Absent(blob) => {
                transaction.expect_absent(self.keyspace(blob.space), &blob.key).map(drop)
            }
            Condition::Unchanged(blob, version) => {
                transaction.expect_version(self.keyspace(blob.space), &blob.key, version)
            }
        }
    }

    fn change(
        &self,
        transaction: &mut Transaction,
        ids: &mut Ids,
        change: Change,
    ) -> tyr::Result<()> {
        match change {
            Change::Put(blob, data) => {
                transaction.put(self.keyspace(blob.space), &blob.key, data).map(drop)
            }
            Change::Write(blob, offset, data) => {
                transaction.write(self.keyspace(blob.space), &blob.key, offset, data).map(drop)
            }
            Change::Append(blob, data) => {
                ids.append =
                    Some(transaction.append(self.keyspace(blob.space), &blob.key, data)?);
                Ok(())
            }
            Change::Truncate(blob, len) => {
                transaction.truncate(self.keyspace(blob.space), &blob.key, len).map(drop)
            }
            Change::Clear(blob, offset, len) => {
                transaction.clear(self.keyspace(blob.space), &blob.key, offset, len).map(drop)
            }
            Change::Delete(blob) => {
                transaction.delete(self.keyspace(blob.space), &blob.key).map(drop)
            }
            Change::Apply(blob, offset, transform) => {
                transaction.apply(self.keyspace(blob.space), &blob.key, offset, transform).map(drop)
            }
        }
    }

    /// What became of a transaction; `None` when a condition did not hold.
    fn finish(&self, outcome: tyr::Result<Committed>) -> Result<Option<Committed>> {
        match settled(&self.tyr, outcome) {
            Ok(committed) => Ok(Some(committed)),
            Err(error) => match error.kind() {
                ErrorKind::Conflict
                | ErrorKind::AlreadyExists
                | ErrorKind::NotFound
                | ErrorKind::SnapshotTooOld => Ok(None),
                ErrorKind::TimedOut => {
                    Err(Error::from(error).context("nobody tells whether it was done"))
                }
                ErrorKind::Unavailable
                | ErrorKind::InvalidArgument
                | ErrorKind::PermissionDenied
                | ErrorKind::QuotaExceeded
                | ErrorKind::Corrupt => Err(error.into()),
            },
        }
    }
}

/// No blob is an answer, too.
pub fn absent_is_none<T>(result: tyr::Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => Ok(Some(result?)),
    }
}

/// Bytes of zeros.
pub fn zeros(len: u64) -> Bytes {
    Bytes::from(vec![0; usize::try_from(len).expect("reads are bounded")])
}

impl FileSystem {
    /// Commits a repair; whether all was as it was when it was looked at.
    pub(crate) fn commit_repair(&self, draft: Draft<()>) -> Result<bool> {
        Ok(self.shared.commit(draft)?.is_some())
    }

    /// One of the two keyspaces.
    pub(crate) fn keyspace(&self, space: Space) -> &Keyspace {
        self.shared.keyspace(space)
    }
}
