//! A keyspace, for async code: every operation on single blobs.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};

use futures_core::Stream;
use tyr_types::{
    ByteRange, Bytes, ChunkLocation, Data, Error, ErrorKind, Key, KeyspaceConfig, KeyspaceId,
    MethodAnswer, MethodCall, NodeId, Number, Operation, Result, Scan, ScanPage, SeatAnswer, Stat,
    Stretches, Transform, limits,
};

use crate::Reader;
use crate::attempts::Attempts;
use crate::blocking::{self, Upload};
use crate::key::ToKey;
use crate::offload::offload;
use crate::pages::{Entries, ScanPages};
use crate::pending::Target;

/// A namespace of blobs. Clone it freely.
#[derive(Clone, Debug)]
pub struct Keyspace {
    inner: blocking::Keyspace,
}

impl AsRef<blocking::Keyspace> for Keyspace {
    fn as_ref(&self) -> &blocking::Keyspace {
        &self.inner
    }
}

impl Keyspace {
    pub(crate) fn from_blocking(inner: blocking::Keyspace) -> Self {
        Self { inner }
    }

    /// The same keyspace, for threads.
    pub fn as_blocking(&self) -> &blocking::Keyspace {
        &self.inner
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Its number, which no other keyspace ever gets.
    pub fn id(&self) -> KeyspaceId {
        self.inner.id()
    }

    /// What it was created with.
    pub fn config(&self) -> &KeyspaceConfig {
        self.inner.config()
    }

    /// Makes an empty blob.
    ///
    /// # Errors
    /// `AlreadyExists`.
    pub async fn create(&self, key: impl ToKey) -> Result<()> {
        self.inner.begin(key, |_| Ok(Operation::Create))?.await.map(drop)
    }

    /// Makes a blob's content `data` and nothing else.
    ///
    /// # Errors
    /// `InvalidArgument` beyond the limits, `Unavailable` when the disk is full or fails; so for
    /// every operation that writes.
    pub async fn put(&self, key: impl ToKey, data: impl Into<Data>) -> Result<()> {
        let (inner, key, data) = (self.inner.clone(), key.to_key()?, data.into());
        if data.len() < limits::EXTENT_PAYLOAD_MIN {
            return inner.begin_put(key, data)?.await.map(drop);
        }
        offload(move || inner.begin_put(key, data)).await?.await.map(drop)
    }

    /// The same from a stream of any length, which goes to disk as it comes. Readers see the old
    /// blob until all of it is there. Answers its length.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; `Unavailable` when the stream fails. The blob stays as it was.
    pub async fn put_stream(
        &self,
        key: impl ToKey,
        stream: impl Stream<Item = io::Result<Bytes>>,
    ) -> Result<u64> {
        let key = key.to_key()?;
        let upload = self.upload(&key, Target::Replace, stream).await?;
        let (inner, len) = (self.inner.clone(), upload.len());
        offload(move || inner.finish(key, upload)).await?.await?;
        Ok(len)
    }

    /// Writes everything from a stream at `offset`, in one transaction. Answers its length.
    ///
    /// # Errors
    /// As [`Keyspace::put_stream`].
    pub async fn write_stream(
        &self,
        key: impl ToKey,
        offset: u64,
        stream: impl Stream<Item = io::Result<Bytes>>,
    ) -> Result<u64> {
        let key = key.to_key()?;
        let upload = self.upload(&key, Target::Write(offset), stream).await?;
        let (inner, len) = (self.inner.clone(), upload.len());
        ByteRange::at(offset, len)?;
        offload(move || inner.finish(key, upload)).await?.await?;
        Ok(len)
    }

    /// Writes `data` at `offset`; makes the blob if there is none; a gap reads as zeros.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub async fn write(&self, key: impl ToKey, offset: u64, data: impl Into<Data>) -> Result<()> {
        let (inner, key, data) = (self.inner.clone(), key.to_key()?, data.into());
        if data.len() < limits::EXTENT_PAYLOAD_MIN {
            return inner.begin_write(key, offset, data)?.await.map(drop);
        }
        offload(move || inner.begin_write(key, offset, data)).await?.await.map(drop)
    }

    /// Appends `data`; makes the blob if there is none. Answers the offset it got.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub async fn append(&self, key: impl ToKey, data: impl Into<Data>) -> Result<u64> {
        self.append_if(key, data.into(), None).await
    }

    /// Appends `data` if the blob ends at `expected_offset` (0 for an absent one).
    ///
    /// # Errors
    /// `Conflict` if it does not; else as [`Keyspace::put`].
    pub async fn append_at(
        &self,
        key: impl ToKey,
        expected_offset: u64,
        data: impl Into<Data>,
    ) -> Result<u64> {
        self.append_if(key, data.into(), Some(expected_offset)).await
    }

    async fn append_if(&self, key: impl ToKey, data: Data, expected: Option<u64>) -> Result<u64> {
        let (inner, key) = (self.inner.clone(), key.to_key()?);
        if data.len() < limits::EXTENT_PAYLOAD_MIN {
            return blocking::offset(&inner.begin_append(key, data, expected)?.await?);
        }
        let begun = offload(move || inner.begin_append(key, data, expected)).await?;
        blocking::offset(&begun.await?)
    }

    /// Appends everything from a stream, in one transaction. Answers the offset it got.
    ///
    /// # Errors
    /// As [`Keyspace::put_stream`].
    pub async fn append_stream(
        &self,
        key: impl ToKey,
        stream: impl Stream<Item = io::Result<Bytes>>,
    ) -> Result<u64> {
        let key = key.to_key()?;
        let upload = self.upload(&key, Target::Append(None), stream).await?;
        let inner = self.inner.clone();
        blocking::offset(&offload(move || inner.finish(key, upload)).await?.await?)
    }

    /// Reads up to `len` bytes at `offset`; fewer where the blob ends.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument` above 64 MiB ([`limits::READ_LEN_MAX`]); `Corrupt` naming
    /// file and place.
    pub async fn read(&self, key: impl ToKey, offset: u64, len: u64) -> Result<Bytes> {
        let name = self.inner.blob(key)?;
        let range = blocking::read_range(offset, len)?;
        let answer = self.inner.space.fetch(&name, range).await?;
        answer.map(|found| found.bytes).ok_or_else(|| self.inner.absent(&name))
    }

    /// The same with the blob's size and version: what [`Keyspace::stat`] tells, of the moment of
    /// the bytes. `len` may be 0.
    ///
    /// # Errors
    /// As [`Keyspace::read`].
    pub async fn read_with_stat(
        &self,
        key: impl ToKey,
        offset: u64,
        len: u64,
    ) -> Result<(Stat, Bytes)> {
        let name = self.inner.blob(key)?;
        let range = blocking::read_range(offset, len)?;
        let answer = self.inner.space.fetch_stated(&name, range).await?;
        answer.ok_or_else(|| self.inner.absent(&name))
    }

    /// Reads a whole blob.
    ///
    /// # Errors
    /// As [`Keyspace::read`]; `InvalidArgument` for a blob above 64 MiB: use
    /// [`Keyspace::reader`].
    pub async fn get(&self, key: impl ToKey) -> Result<Bytes> {
        let name = self.inner.blob(key)?;
        let answer = self.inner.space.fetch_whole(&name).await?;
        self.inner.whole(&name, answer)
    }

    /// Reads any part of a blob as a stream, at one version.
    ///
    /// # Errors
    /// `NotFound`; later, from the stream, `SnapshotTooOld` after 5 minutes.
    pub async fn reader(&self, key: impl ToKey, range: ByteRange) -> Result<Reader> {
        let (inner, name) = (self.inner.clone(), self.inner.blob(key)?);
        let view = inner.space.take_view_of(&name).await?;
        let (view, size) = view.ok_or_else(|| inner.absent(&name))?;
        let snapshot = blocking::Snapshot::new(view);
        Ok(Reader::from_blocking(blocking::Reader::new(snapshot, inner, name, range, size)))
    }

    /// Cuts a blob to `len` bytes, or extends it with zeros; makes it if there is none.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub async fn truncate(&self, key: impl ToKey, len: u64) -> Result<()> {
        self.inner.begin(key, |_| Ok(Operation::Truncate { len }))?.await.map(drop)
    }

    /// Makes a hole of `len` bytes at `offset`: they read as zeros, and take no space. What lies
    /// behind the blob's end stays as it is, and so does an absent blob.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub async fn clear(&self, key: impl ToKey, offset: u64, len: u64) -> Result<()> {
        let range = ByteRange::at(offset, len)?;
        self.inner.begin(key, |_| Ok(Operation::Clear { range }))?.await.map(drop)
    }

    /// Removes a blob; answers whether there was one.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub async fn delete(&self, key: impl ToKey) -> Result<bool> {
        blocking::existed(&self.inner.begin(key, |_| Ok(Operation::Delete))?.await?)
    }

    /// A blob's size and version.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn stat(&self, key: impl ToKey) -> Result<Stat> {
        let name = self.inner.blob(key)?;
        let stat = self.inner.space.fetch_stat(&name).await?;
        stat.ok_or_else(|| self.inner.absent(&name))
    }

    /// Where the parts of a blob lie that are in this range, chunk by chunk in order, as of now:
    /// for programs that go to their data. A range of more than 65,536 chunks is refused.
    ///
    /// # Errors
    /// `NotFound` when there is no such blob; `InvalidArgument` beyond the limit; `Unavailable`
    /// when the cluster does not answer.
    pub async fn locations(&self, key: impl ToKey, range: ByteRange) -> Result<Vec<ChunkLocation>> {
        let name = self.inner.blob(key)?;
        let stat = self.inner.space.fetch_stat(&name).await?;
        let size = stat.ok_or_else(|| self.inner.absent(&name))?.size;
        let range = range.intersection(ByteRange { start: 0, end: size });
        self.inner.space.locations(&name, range).await
    }

    /// Has a method of an object's class run by the node of a cluster that the blob is at; `None`
    /// where nodes do not do that, as in a store in this process: then whoever calls runs it. The
    /// crate `tyr-object` does either, and says what classes are.
    ///
    /// # Errors
    /// `InvalidArgument` for an input of more than 1 MiB; `PermissionDenied`; `Unavailable` when
    /// the node is not reached in time, and nothing was done; `TimedOut` when it does not answer:
    /// then what the method does may have taken effect.
    pub async fn call_method(
        &self,
        key: impl ToKey,
        class: &str,
        method: &str,
        input: Bytes,
    ) -> Result<Option<MethodAnswer>> {
        self.inner.space.call_method(self.request(key, class, method, input)?).await
    }

    /// Asks a seat (a service with a state in memory, at one node at a time) by the class that its
    /// kind goes by, at the node that has it: wherever it was moved to, and first where this
    /// program found it last (S4). `None` where there are no nodes that have seats, as in a store
    /// in this process.
    ///
    /// # Errors
    /// As [`Keyspace::call_method`].
    pub async fn ask_seat(
        &self,
        key: impl ToKey,
        class: &str,
        method: &str,
        input: Bytes,
    ) -> Result<Option<MethodAnswer>> {
        self.inner.space.ask_seat(self.request(key, class, method, input)?).await
    }

    /// Asks a seat at one node, whether or not that has it: what it answers, or where it says that
    /// the seat is. For who passes requests on; others use [`Keyspace::ask_seat`].
    ///
    /// # Errors
    /// As [`Keyspace::call_method`].
    pub async fn ask_seat_at(
        &self,
        node: NodeId,
        key: impl ToKey,
        class: &str,
        method: &str,
        input: Bytes,
    ) -> Result<Option<SeatAnswer>> {
        self.inner.space.ask_seat_at(node, self.request(key, class, method, input)?).await
    }

    /// What a node is asked for.
    fn request(
        &self,
        key: impl ToKey,
        class: &str,
        method: &str,
        input: Bytes,
    ) -> Result<MethodCall> {
        let blob = self.inner.blob(key)?;
        let (class, method) = (class.to_owned(), method.to_owned());
        Ok(MethodCall { blob, class, method, input })
    }

    /// Which bytes of a range of a blob are written, in order, as of now: the rest are holes, which
    /// read as zeros and take no space. A page has 1,024 stretches of a directory, or of a cluster
    /// those of 32 chunks, and says where the next begins.
    ///
    /// What is told may be more than was written: holes within a block of 16 KiB of which some is
    /// written, and, where a chunk of a cluster has more than 1,024 stretches, those between which
    /// there is least. Zeros that were written are written. What is told to be a hole is one.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` in a cluster some node of which is of a release of before.
    pub async fn stretches(&self, key: impl ToKey, range: ByteRange) -> Result<Stretches> {
        let name = self.inner.blob(key)?;
        let view = self.inner.space.take_view_of(&name).await?;
        let (view, _) = view.ok_or_else(|| self.inner.absent(&name))?;
        let found = view.stretches(&self.inner.space, &name, range).await?;
        found.ok_or_else(|| self.inner.absent(&name))
    }

    /// How many bytes of a blob are in stretches that are written, as of now. In a cluster the
    /// nodes of its chunks are asked for them.
    ///
    /// # Errors
    /// As [`Keyspace::stretches`]; `InvalidArgument` in a cluster for more than 65,536 chunks.
    pub async fn allocated(&self, key: impl ToKey) -> Result<u64> {
        let name = self.inner.blob(key)?;
        let view = self.inner.space.take_view_of(&name).await?;
        let (view, _) = view.ok_or_else(|| self.inner.absent(&name))?;
        let found = view.allocated(&self.inner.space, &name).await?;
        found.ok_or_else(|| self.inner.absent(&name))
    }

    /// Lists blobs in key order: up to `limit` whose keys begin with `prefix` and come after
    /// `after`.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit of 0 or above 10,000.
    pub async fn scan(
        &self,
        prefix: &[u8],
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<(Key, Stat)>> {
        let (inner, prefix, after) = (self.inner.clone(), prefix.to_vec(), after.cloned());
        offload(move || inner.scan(&prefix, after.as_ref(), limit)).await
    }

    /// Lists all blobs whose keys begin with `prefix`, in key order, page by page; each page is of
    /// its own moment.
    pub fn scan_stream(&self, prefix: &[u8]) -> impl Stream<Item = Result<(Key, Stat)>> + use<> {
        Entries::new(self.scan_pages(&Scan::new().prefix(prefix).limit(limits::SCAN_LIMIT_MAX)))
    }

    /// Lists a page: what `scan` says, with sizes and versions, and first bytes if they are asked
    /// for, all of one moment. [`Scan::resumed`] goes on behind it. In a guarded keyspace a listing
    /// of one group waits for what others hold alone of it (K2).
    ///
    /// # Errors
    /// `InvalidArgument` for a scan out of range; `Unavailable` in a cluster some node of which is
    /// of a release that lists keys with size and version only.
    pub async fn scan_page(&self, scan: &Scan) -> Result<ScanPage> {
        if let Some(page) = self.inner.space.scan_guarded(scan).await {
            return page;
        }
        let mut attempts = Attempts::default();
        loop {
            let view = self.inner.space.backend().take_view().await?;
            let error = match view.fetch_page(&self.inner.space, scan).await {
                // Data has moved since that moment, which nobody asked for: a later one is as good.
                Err(error) if error.kind() == ErrorKind::SnapshotTooOld => error,
                done => return done,
            };
            let Some(pause) = attempts.pause_after(&error, None) else { return Err(error) };
            offload(move || std::thread::sleep(pause)).await;
        }
    }

    /// Lists all that `scan` says, page by page; each page is of its own moment. It ends with the
    /// first error.
    pub fn scan_pages(&self, scan: &Scan) -> impl Stream<Item = Result<ScanPage>> + use<> {
        let keyspace = self.clone();
        ScanPages::new(scan, move |scan: Scan| {
            let keyspace = keyspace.clone();
            async move { keyspace.scan_page(&scan).await }
        })
    }

    /// Does arithmetic in place; answers the new value. Makes or extends the blob with zeros where
    /// nothing is.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; in a cluster `InvalidArgument` for a number that lies in two chunks.
    pub async fn apply(
        &self,
        key: impl ToKey,
        offset: u64,
        transform: Transform,
    ) -> Result<Number> {
        let begun = self.inner.begin(key, |_| Ok(Operation::Apply { offset, transform }))?;
        blocking::value(&begun.await?)
    }

    /// Replaces `expected` at `offset` by `new`, if exactly that is there.
    ///
    /// # Errors
    /// `Conflict` if something else is there, or the blob ends earlier or is absent.
    pub async fn compare_and_swap(
        &self,
        key: impl ToKey,
        offset: u64,
        expected: impl Into<Bytes>,
        new: impl Into<Data>,
    ) -> Result<()> {
        self.inner.begin_swap(key, offset, expected.into(), new.into())?.await.map(drop)
    }

    /// Takes a whole stream to disk. One piece at a time is in memory.
    async fn upload(
        &self,
        key: &Key,
        target: Target,
        stream: impl Stream<Item = io::Result<Bytes>>,
    ) -> Result<Upload> {
        let mut upload = Upload::new(self.inner.space.clone(), self.inner.blob(key)?, target);
        let mut stream = pin!(stream);
        while let Some(piece) = next(stream.as_mut()).await {
            let piece = piece.map_err(|error| Error::io("reading the data to store", error))?;
            upload = offload(move || upload.push(&piece).map(|()| upload)).await?;
        }
        Ok(upload)
    }
}

async fn next<S: Stream>(mut stream: Pin<&mut S>) -> Option<S::Item> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}
