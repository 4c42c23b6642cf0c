//! The store: each method of the trait as a transaction or a snapshot.

use std::fmt;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::path::{DELIMITER, Path};
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    RenameTargetMode, UpdateVersion,
};
use tyr::{BlobCopy, ErrorKind, Keyspace, Scan, ScanEntry, Transaction, Tyr};

use crate::failure::{generic, not_implemented, precondition, told};
use crate::place::Place;
use crate::read::{self, Object};
use crate::upload::Upload;

/// A keyspace, or what is below a prefix of it, as an [`ObjectStore`]. Clones are of one store.
#[derive(Clone)]
pub struct TyrObjectStore {
    tyr: Tyr,
    keyspace: Keyspace,
    prefix: Path,
}

impl fmt::Display for TyrObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TyrObjectStore({}/{})", self.keyspace.name(), self.prefix)
    }
}

impl fmt::Debug for TyrObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TyrObjectStore {
    /// The blobs of `keyspace`, which is one of `tyr`.
    pub fn new(tyr: Tyr, keyspace: Keyspace) -> Self {
        Self { tyr, keyspace, prefix: Path::default() }
    }

    /// The same, but all paths are below `prefix`.
    #[must_use]
    pub fn with_prefix(self, prefix: Path) -> Self {
        Self { prefix, ..self }
    }

    /// Opens what a URL names: see [`Place`]. The keyspace has to be there.
    ///
    /// # Errors
    /// `Generic` for a URL that is none of Týr's, and for what opening or connecting fails with;
    /// `NotFound` where there is no such keyspace.
    pub async fn open(url: &str) -> object_store::Result<Self> {
        let (tyr, keyspace, prefix) = match Place::parse(url)? {
            Place::Cluster { address, keyspace, prefix } => {
                (Tyr::connect(&address).await, keyspace, prefix)
            }
            Place::Folder { folder, keyspace } => {
                let options = Tyr::options().must_exist(true);
                (options.open(folder).await, keyspace, Path::default())
            }
        };
        let tyr = tyr.map_err(generic)?;
        let found = tyr.keyspace(&keyspace).await;
        let keyspace = found.map_err(|error| told(error, &Path::from(keyspace.as_str())))?;
        Ok(Self::new(tyr, keyspace).with_prefix(prefix))
    }

    fn key(&self, location: &Path) -> String {
        below(&self.prefix, location.as_ref())
    }

    /// What all keys below `folder` begin with.
    fn folder(&self, folder: Option<&Path>) -> String {
        let mut key = self.key(folder.unwrap_or(&Path::default()));
        if !key.is_empty() {
            key.push_str(DELIMITER);
        }
        key
    }

    /// The path of a key, or of a group, below the prefix.
    fn location(&self, key: &[u8]) -> object_store::Result<Path> {
        let key = str::from_utf8(key).map_err(|_| {
            generic(format!("the key {:?} is no UTF-8, and so no path", key.escape_ascii()))
        })?;
        let inner = key.strip_prefix(self.prefix.as_ref()).unwrap_or(key);
        Ok(Path::parse(inner)?)
    }

    fn listed(&self, entry: ScanEntry) -> object_store::Result<ObjectMeta> {
        let location = self.location(entry.key.as_bytes())?;
        let stat = entry.stat.ok_or_else(|| generic("a listing came without sizes"))?;
        Ok(read::meta(location, stat))
    }

    async fn object(&self, location: &Path) -> object_store::Result<Object> {
        let snapshot = self.tyr.snapshot().await.map_err(|error| told(error, location))?;
        let (keyspace, key) = (self.keyspace.clone(), self.key(location));
        Ok(Object { snapshot, keyspace, key, location: location.clone() })
    }

    /// All that a scan finds, as of one moment.
    fn scan(&self, scan: Scan) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let store = self.clone();
        let pages = async move {
            let snapshot = store.tyr.snapshot().await.map_err(generic)?;
            let pages = snapshot.scan_pages(&store.keyspace, &scan).map_err(generic);
            let listed = move |page: tyr::ScanPage| {
                let listed = page.entries.into_iter().map(|entry| store.listed(entry));
                stream::iter(listed.collect::<Vec<_>>())
            };
            Ok::<_, object_store::Error>(pages.map_ok(listed).try_flatten())
        };
        stream::once(pages).try_flatten().boxed()
    }

    /// Adds to a transaction that the object has the version which the caller knows; `false` when
    /// it has another, or is not there.
    async fn expect(
        &self,
        transaction: &mut Transaction,
        key: &str,
        known: &UpdateVersion,
    ) -> tyr::Result<bool> {
        let stat = match transaction.stat(&self.keyspace, key).await {
            Ok(stat) => stat,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let version = stat.version.to_string();
        let is_known = |told: &Option<String>| told.as_ref().is_none_or(|it| *it == version);
        if !is_known(&known.e_tag) || !is_known(&known.version) {
            return Ok(false);
        }
        transaction.expect_version(&self.keyspace, key, stat.version)?;
        Ok(true)
    }

    /// Copies in one transaction, and deletes the source in it if it moves.
    async fn transfer(
        &self,
        (from, to): (&Path, &Path),
        is_create: bool,
        is_move: bool,
    ) -> object_store::Result<()> {
        let (from_key, to_key) = (self.key(from), self.key(to));
        if from_key == to_key {
            self.keyspace.stat(&from_key).await.map_err(|error| told(error, from))?;
            if is_create {
                let (path, source) = (to.to_string(), "it is the source itself".into());
                return Err(object_store::Error::AlreadyExists { path, source });
            }
            return Ok(());
        }
        let copy = BlobCopy::new(&self.keyspace, &from_key, &self.keyspace, &to_key);
        let copy = copy.map_err(|error| told(error, to))?;
        let transfer = Transfer {
            copy,
            keyspace: self.keyspace.clone(),
            created: is_create.then_some(to_key),
            deleted: is_move.then_some(from_key),
        };
        let done = self.tyr.transact(body(move |it| transfer.clone().run(it).boxed()));
        done.await.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => told(error, to),
            _ => told(error, from),
        })
    }
}

/// A copy or a move, as the body of a transaction.
#[derive(Clone)]
struct Transfer {
    keyspace: Keyspace,
    copy: BlobCopy,
    /// The target, if it must not be there.
    created: Option<String>,
    /// The source, if it is to go.
    deleted: Option<String>,
}

impl Transfer {
    async fn run(self, transaction: &mut Transaction) -> tyr::Result<()> {
        if let Some(key) = &self.created {
            transaction.create(&self.keyspace, key)?;
        }
        transaction.copy(&self.copy).await?;
        if let Some(key) = &self.deleted {
            transaction.delete(&self.keyspace, key)?;
        }
        Ok(())
    }
}

/// The closure itself. Its futures can go on in another thread, which cannot be shown of an async
/// closure's, as they borrow from it.
fn body<F>(run: F) -> F
where
    F: for<'a> FnMut(&'a mut Transaction) -> BoxFuture<'a, tyr::Result<()>>,
{
    run
}

/// A path below a folder, either of which may be empty.
fn below(folder: &Path, path: &str) -> String {
    match (folder.as_ref(), path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, path) => format!("{folder}{DELIMITER}{path}"),
    }
}

/// Refuses what an object cannot carry here.
fn check_carried(has_attributes: bool, has_tags: bool) -> object_store::Result<()> {
    if has_attributes {
        return Err(not_implemented("put with attributes"));
    }
    if has_tags {
        return Err(not_implemented("put with tags"));
    }
    Ok(())
}

#[async_trait]
impl ObjectStore for TyrObjectStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        check_carried(!options.attributes.is_empty(), !options.tags.encoded().is_empty())?;
        let key = self.key(location);
        let failed = |error| told(error, location);
        let mut transaction = self.tyr.begin();
        let is_update = match &options.mode {
            PutMode::Overwrite => false,
            PutMode::Create => {
                transaction.create(&self.keyspace, &key).map_err(failed)?;
                false
            }
            PutMode::Update(known) if known.e_tag.is_none() && known.version.is_none() => {
                return Err(generic("an update needs the e-tag or the version to replace"));
            }
            PutMode::Update(known) => {
                if !self.expect(&mut transaction, &key, known).await.map_err(failed)? {
                    let known = known.version.as_ref().or(known.e_tag.as_ref());
                    return Err(precondition(location, format!("it has not version {known:?}")));
                }
                true
            }
        };
        transaction.put(&self.keyspace, &key, Bytes::from(payload)).map_err(failed)?;
        let committed = transaction.commit().await.map_err(|error| match error.kind() {
            ErrorKind::Conflict if is_update => precondition(location, error.to_string()),
            _ => told(error, location),
        })?;
        let e_tag = Some(committed.version().to_string());
        Ok(PutResult { e_tag, version: None, extensions: Default::default() })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        check_carried(!options.attributes.is_empty(), !options.tags.encoded().is_empty())?;
        let upload = Upload::new(self.keyspace.clone(), self.key(location), location.clone());
        Ok(Box::new(upload))
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.object(location).await?.get(options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<Bytes>> {
        self.object(location).await?.ranges(ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        /// Deletions under way at once.
        const AT_ONCE_MAX: usize = 16;
        let store = self.clone();
        let delete = move |location: object_store::Result<Path>| {
            let store = store.clone();
            async move {
                let location = location?;
                let deleted = store.keyspace.delete(store.key(&location)).await;
                deleted.map(|_| location.clone()).map_err(|error| told(error, &location))
            }
        };
        locations.map(delete).buffered(AT_ONCE_MAX).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.scan(Scan::new().prefix(self.folder(prefix)))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let (scan, after) = (Scan::new().prefix(self.folder(prefix)), self.key(offset));
        self.scan(if after.is_empty() { scan } else { scan.after(after) })
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        let snapshot = self.tyr.snapshot().await.map_err(generic)?;
        let scan = Scan::new().prefix(self.folder(prefix)).delimiter(DELIMITER);
        let mut pages = Box::pin(snapshot.scan_pages(&self.keyspace, &scan));
        let (mut objects, mut common_prefixes) = (Vec::new(), Vec::new());
        while let Some(page) = pages.try_next().await.map_err(generic)? {
            for entry in page.entries {
                objects.push(self.listed(entry)?);
            }
            for group in page.groups {
                common_prefixes.push(self.location(&group)?);
            }
        }
        Ok(ListResult { common_prefixes, objects, extensions: Default::default() })
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        let is_create = match options.mode {
            CopyMode::Overwrite => false,
            CopyMode::Create => true,
        };
        self.transfer((from, to), is_create, false).await
    }

    async fn rename_opts(
        &self,
        from: &Path,
        to: &Path,
        options: RenameOptions,
    ) -> object_store::Result<()> {
        let is_create = match options.target_mode {
            RenameTargetMode::Overwrite => false,
            RenameTargetMode::Create => true,
        };
        self.transfer((from, to), is_create, true).await
    }
}
