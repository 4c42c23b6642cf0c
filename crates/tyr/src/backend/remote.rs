//! A cluster. Every call is a future that waits for nodes; dropping it withdraws what was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use super::remote_upload::RemoteUpload;
pub(crate) use tyr_client::{
    Client, KeyLease as RemoteLease, KeyWatch as RemoteWatch, Lease, Presence as RemotePresence,
    Unresolved,
};
use tyr_client::{LEVEL_COPYING, LEVEL_LISTING, LEVEL_STRETCHING, Place, Seen, Want, layout};
use tyr_runtime::ticket::Ticket;
use tyr_runtime::waiting::block_on;
use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Error, ErrorKind, KeptName, KeyspaceId,
    KeyspaceInfo, KeyspaceName, LeaseMode, Leased, Notified, ReadCheck, Result, Scan, ScanPage,
    Stat, Stretches, Timestamp, WatchTarget, limits,
};

use super::remote_upload;
use super::{Answer, BlobPart, Found, Moment, VersionedRead};

/// A keyspace of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct RemoteSpace {
    client: Arc<Client>,
    info: Arc<KeyspaceInfo>,
}

/// A cluster, at one moment.
#[derive(Clone, Debug)]
pub(crate) struct RemoteView {
    client: Arc<Client>,
    /// `None` in a cluster that had no keyspace then.
    at: Option<Timestamp>,
    /// Whether it is that of a kept snapshot.
    is_kept: bool,
    /// Keeps the versions of all blobs, or of the one whose first read began it.
    _lease: Option<Arc<Lease>>,
}

/// What a transaction of a cluster has read.
#[derive(Debug, Default)]
pub(crate) struct RemoteVersions {
    /// The S of all blobs, if it has one.
    moment: Option<Timestamp>,
    /// Bounded by the reads of the transaction.
    at: BTreeMap<BlobName, Timestamp>,
    /// Keep those versions.
    leases: Vec<Lease>,
}

/// The name of a keyspace, as far as the client has heard of it.
pub(super) fn name_of(client: &Client, keyspace: KeyspaceId) -> Option<KeyspaceName> {
    client.map().keyspaces.get(&keyspace).map(|known| known.name.clone())
}

impl RemoteSpace {
    pub fn new(client: &Arc<Client>, info: KeyspaceInfo) -> Self {
        Self { client: Arc::clone(client), info: Arc::new(info) }
    }

    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub fn info(&self) -> &KeyspaceInfo {
        &self.info
    }

    /// The newest bytes of a range, and the size if it is wanted.
    pub async fn read(
        &self,
        name: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Result<Answer> {
        let want = Want { blob: name.clone(), range, is_attributes };
        let sight = self.client.read(want, Place::Newest).answer().await?;
        Ok(found(&sight.seen))
    }

    pub async fn lease(
        &self,
        of: Leased,
        mode: LeaseMode,
        duration: Duration,
        wait: Option<Duration>,
    ) -> Result<RemoteLease> {
        self.client.lease(of, mode, duration, wait).answer().await
    }

    /// A page as it is now; of one group all of one moment.
    pub async fn scan_newest(&self, scan: &Scan) -> Result<ScanPage> {
        self.client.scan(self.info.id, scan.clone(), None).answer().await
    }

    pub async fn watch(&self, target: WatchTarget) -> Result<RemoteWatch> {
        self.client.watch(target).answer().await
    }

    pub async fn notify(
        &self,
        blob: BlobName,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Notified> {
        self.client.notify(blob, payload, timeout).answer().await
    }

    pub async fn read_whole(&self, name: &BlobName) -> Result<Answer> {
        self.read(name, ByteRange { start: 0, end: limits::READ_LEN_MAX }, true).await
    }

    /// Whether payloads may be uploaded ahead of their transactions.
    pub fn may_upload(&self) -> bool {
        self.client.may_upload()
    }

    /// Where what is uploaded goes: to `offset` of the blob, or to where it ends now.
    pub async fn upload(
        &self,
        name: &BlobName,
        offset: Option<u64>,
    ) -> Result<(RemoteUpload, u64)> {
        let offset = match offset {
            Some(offset) => offset,
            None => remote_upload::size_of(&self.client, name).await?.unwrap_or(0),
        };
        let chunk_size = self.info.config.chunk_size;
        Ok((RemoteUpload::new(&self.client, name.clone(), chunk_size, offset), offset))
    }

    /// Refuses copies while a node is of a release that fills no pieces (U5).
    pub fn check_copies(&self) -> Result<()> {
        self.client.map().check_level(LEVEL_COPYING)
    }

    /// What will be filled for a blob.
    pub fn copy(&self, name: &BlobName) -> RemoteUpload {
        RemoteUpload::new(&self.client, name.clone(), self.info.config.chunk_size, 0)
    }

    pub async fn stat(&self, name: &BlobName) -> Result<Option<Stat>> {
        let sight = self.client.read(Want::stat(name.clone()), Place::Newest).answer().await?;
        stat(found(&sight.seen))
    }
}

impl RemoteView {
    /// The cluster as it is now: everything acknowledged before is in it.
    pub async fn new(client: &Arc<Client>) -> Result<Self> {
        let mut moment = client.moment().answer().await?;
        if moment.is_none() && !client.keyspaces().await?.is_empty() {
            // Somebody else has made the first one.
            moment = client.moment().answer().await?;
        }
        let (at, lease) = moment.map_or((None, None), |(at, lease)| (Some(at), lease));
        let (client, lease) = (Arc::clone(client), lease.map(Arc::new));
        Ok(Self { client, at, is_kept: false, _lease: lease })
    }

    /// The cluster as it was when a snapshot was kept.
    pub async fn kept(client: &Arc<Client>, name: &KeptName) -> Result<Self> {
        let at = Some(client.kept_moment(name).await?);
        Ok(Self { client: Arc::clone(client), at, is_kept: true, _lease: None })
    }

    /// The same for one blob, whose versions stay as long as the view does; with its size. `None`:
    /// no such blob.
    pub async fn of_blob(client: &Arc<Client>, name: &BlobName) -> Result<Option<(Self, u64)>> {
        let sight = client.read(Want::stat(name.clone()), Place::Snapshot).answer().await?;
        let Some(stat) = stat(found(&sight.seen))? else { return Ok(None) };
        let at = Some(sight.seen.at.ok_or_else(unplaced)?);
        let lease = sight.lease.map(Arc::new);
        let client = Arc::clone(client);
        Ok(Some((Self { client, at, is_kept: false, _lease: lease }, stat.size)))
    }

    /// The cluster at a moment that something else keeps.
    pub fn kept_at(client: &Arc<Client>, at: Timestamp) -> Self {
        Self { client: Arc::clone(client), at: Some(at), is_kept: false, _lease: None }
    }

    pub fn at(&self) -> Timestamp {
        self.at.unwrap_or(Timestamp::ZERO)
    }

    /// The bytes of a range then, and the size if it is wanted.
    pub async fn read(
        &self,
        name: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Result<Answer> {
        let Some(at) = self.at else { return Ok(None) };
        self.check()?;
        let want = Want { blob: name.clone(), range, is_attributes };
        let sight = self.client.read(want, Place::At(at)).answer().await;
        Ok(found(&self.told(sight).await?.seen))
    }

    /// Whether it can still be read, as far as is known here.
    fn check(&self) -> Result<()> {
        match self.at {
            Some(at) if self.is_kept => self.client.check_kept(at),
            Some(_) | None => Ok(()),
        }
    }

    /// What was answered; of a kept snapshot, why it was not.
    async fn told<T>(&self, answer: Result<T>) -> Result<T> {
        match (answer, self.at) {
            (Err(error), Some(at)) if self.is_kept => Err(self.client.unread_kept(at, error).await),
            (answer, _) => answer,
        }
    }

    pub async fn read_into(&self, name: &BlobName, offset: u64, out: &mut [u8]) -> Result<bool> {
        let range = ByteRange::at(offset, out.len() as u64)?;
        let Some(found) = self.read(name, range, false).await? else { return Ok(false) };
        if found.bytes.len() != out.len() {
            return Err(Error::corrupt(format!(
                "{name} has fewer bytes at {offset} than its size says, at one version"
            )));
        }
        out.copy_from_slice(&found.bytes);
        Ok(true)
    }

    pub async fn stat(&self, name: &BlobName) -> Result<Option<Stat>> {
        stat(self.read(name, ByteRange::NOTHING, true).await?)
    }

    /// What is written of a range then; `None`: no such blob. The nodes of some chunks are asked at
    /// once.
    pub async fn stretches(
        &self,
        keyspace: &KeyspaceInfo,
        name: &BlobName,
        range: ByteRange,
    ) -> Result<Option<Stretches>> {
        let (Some(at), Some(stat)) = (self.at, self.stat(name).await?) else { return Ok(None) };
        self.client.map().check_level(LEVEL_STRETCHING)?;
        let end = range.end.min(stat.size);
        let pieces = Stretches::pieces(range.start, end, keyspace.config.chunk_size);
        let ask = |piece: &ByteRange| {
            self.client.read(Want::bytes(name.clone(), *piece), Place::Layout(at))
        };
        let asked: Vec<_> = pieces.iter().map(ask).collect();
        let mut found = Stretches::default();
        for (piece, asked) in pieces.iter().zip(asked) {
            let sight = self.told(asked.answer().await).await?;
            let written = layout::decode(*piece, &sight.seen.bytes);
            found.extend(written.ok_or_else(unstretched)?);
        }
        let resume = pieces.last().map_or(range.start, |piece| piece.end);
        found.resume = (resume < end).then_some(resume);
        Ok(Some(found))
    }

    /// A page of a keyspace, as it was then (Q1, Q2); without older versions, as it is now, but
    /// where that was kept.
    pub async fn scan(&self, keyspace: &KeyspaceInfo, scan: &Scan) -> Result<ScanPage> {
        let Some(at) = self.at else { return Ok(ScanPage::default()) };
        self.check()?;
        let at = (self.is_kept || keyspace.config.is_multi_versioned).then_some(at);
        let page = self.client.scan(keyspace.id, scan.clone(), at).answer().await;
        self.told(page).await
    }
}

impl RemoteVersions {
    /// Those of a transaction that has read nothing, and is to read at S if that is given.
    pub fn new(moment: Option<Timestamp>) -> Self {
        Self { moment, ..Self::default() }
    }

    pub fn into_leases(self) -> Vec<Lease> {
        self.leases
    }

    pub async fn read(
        &mut self,
        client: &Client,
        name: &BlobName,
        range: ByteRange,
        is_attributes: bool,
    ) -> Result<VersionedRead> {
        let known = self.moment.or_else(|| self.at.get(name).copied());
        let place = known.map_or(Place::Transaction, Place::At);
        let want = Want { blob: name.clone(), range, is_attributes };
        let sight = client.read(want, place).answer().await?;
        let check = sight.seen.check().ok_or_else(unplaced)?;
        if known.is_none() {
            self.at.insert(name.clone(), check.at);
        }
        self.leases.extend(sight.lease);
        Ok(VersionedRead { answer: found(&sight.seen), check })
    }
}

impl RemoteVersions {
    /// A page of a group, whose prefix is `group`, and the S at which it was listed: that of the
    /// first read of a blob of this name, whether there is one or not, whose authority lists. Where
    /// no older versions are kept it is as it is now; what came after S is a conflict then (Q3).
    pub async fn scan(
        &mut self,
        space: &RemoteSpace,
        group: &BlobName,
        scan: &Scan,
    ) -> Result<(ScanPage, Timestamp)> {
        let (client, info) = (space.client(), space.info());
        client.map().check_level(LEVEL_LISTING)?;
        let at = self.read(client, group, ByteRange::NOTHING, true).await?.check.at;
        let listed_at = info.config.is_multi_versioned.then_some(at);
        let page = client.scan(info.id, scan.clone(), listed_at).answer().await?;
        Ok((page, at))
    }
}

/// Commits a transaction, its large payloads ahead of it.
pub(super) fn commit(
    client: &Arc<Client>,
    blobs: Vec<BlobOperations>,
    reads: Vec<ReadCheck>,
    leases: Vec<Lease>,
) -> Ticket {
    if !remote_upload::is_large(client, &blobs) {
        return client.commit(blobs, reads, leases);
    }
    let (answer, ticket) = Ticket::waiting();
    let client = Arc::clone(client);
    let work = move || {
        let committed = block_on(remote_upload::commit(&client, blobs, reads, leases));
        // Who does not wait has let it go on by itself.
        let _ = answer.send(committed);
    };
    ::blocking::unblock(work).detach();
    ticket
}

/// Reads parts of many blobs at one moment (R6).
pub(super) async fn read_many(
    client: &Arc<Client>,
    wanted: &[BlobPart],
) -> Result<Vec<Option<Bytes>>> {
    let want = |part: &BlobPart| Want::bytes(part.name.clone(), part.range);
    let bytes: u128 = wanted.iter().map(|part| u128::from(part.range.len())).sum();
    if bytes <= u128::from(limits::READ_LEN_MAX) {
        let (_, seen) = client.read_many(wanted.iter().map(want).collect()).answer().await?;
        return Ok(seen.iter().map(|seen| found(seen).map(|found| found.bytes)).collect());
    }
    // More than the nodes answer together: the moment first, then one after the other.
    let stats = wanted.iter().map(|part| Want::stat(part.name.clone())).collect();
    let (at, _) = client.read_many(stats).answer().await?;
    let mut all = Vec::with_capacity(wanted.len());
    for part in wanted {
        let sight = client.read(want(part), Place::At(at)).answer().await?;
        all.push(found(&sight.seen).map(|found| found.bytes));
    }
    Ok(all)
}

/// One moment of these blobs (R6), if their nodes tell. Who asks goes on without it otherwise, and
/// hears there what is the matter.
pub(super) async fn moment(client: &Arc<Client>, blobs: &BTreeSet<BlobName>) -> Option<Moment> {
    if blobs.len() > limits::READ_MANY_MAX {
        return None;
    }
    let wants = blobs.iter().cloned().map(Want::stat).collect();
    let (at, _) = client.read_many(wants).answer().await.ok()?;
    Some(Moment::Remote { at, blobs: blobs.clone() })
}

/// What a read found.
fn found(seen: &Seen) -> Answer {
    if seen.is_absent() {
        return None;
    }
    let (size, version, bytes) = (seen.size.flatten(), seen.version, seen.bytes.clone());
    Some(Found { size, version, bytes })
}

/// What a read that asked for the size found of it.
fn stat(answer: Answer) -> Result<Option<Stat>> {
    let stat = answer.map(|found| found.stat().ok_or_else(unsized_));
    stat.transpose()
}

/// A node's answer that lacks S.
fn unplaced() -> Error {
    let text = "a node answered a first read without its timestamp; report this";
    Error::new(ErrorKind::Unavailable, text)
}

fn unstretched() -> Error {
    let text = "a node answered what no stretches look like; report this";
    Error::new(ErrorKind::Unavailable, text)
}

fn unsized_() -> Error {
    let text = "a node answered without the size that was asked for; report this";
    Error::new(ErrorKind::Unavailable, text)
}
