//! A store: a folder that was opened, or a cluster that was connected to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tyr::{
    BlobCopy, ByteRange, Bytes, ConnectOptions, Error, ErrorKind, OperationId, ReadRequest, Tyr,
};

use crate::answer::Answer;
use crate::call::Call;
use crate::failure::{Failure, kind_of};
use crate::front::{Front, wait_for};
use crate::handle::HANDLES;
use crate::keyspace::{Keyspace, config_of};
use crate::op;
use crate::packed::{self, Packing, Unpacking, unknown};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;

/// A store that is open, shared by all that was got of it.
#[derive(Debug)]
pub struct Store {
    tyr: Tyr,
    place: String,
    is_closed: AtomicBool,
}

/// An error that leaves open what became of a call: it is asked for with it.
#[derive(Debug)]
pub struct Cause {
    error: Error,
    operations: Vec<OperationId>,
}

impl Cause {
    /// The error of a call that has these operations.
    pub fn new(error: Error, operations: Vec<OperationId>) -> Self {
        Self { error, operations }
    }
}

/// Times come in milliseconds.
fn time(value: &str) -> Result<Duration, Failure> {
    number(value).map(Duration::from_millis)
}

fn number(value: &str) -> Result<u64, Failure> {
    value.parse().map_err(|_| Failure::invalid(format!("{value} is no number of 0 or more")))
}

/// Opens a folder.
pub fn open(call: Call<'_>) -> Result<Option<Answer>, Failure> {
    let (mut options, mut path) = (Tyr::options(), String::new());
    Unpacking(&call.data).words(|name, value| {
        let before = std::mem::take(&mut options);
        options = match name {
            "path" => {
                value.clone_into(&mut path);
                before
            }
            "cache_bytes" => before.cache_bytes(number(value)?),
            "read_only" => before.is_read_only(true),
            "must_exist" => before.must_exist(true),
            "snapshot_timeout_ms" => before.snapshot_timeout(time(value)?),
            other => return Err(unknown("store", other)),
        };
        Ok(())
    })?;
    let place = path.clone();
    call.front.run(async move { Ok(Store::opened(options.open(path).await?, place)) })
}

/// Connects to a cluster.
pub fn connect(call: Call<'_>) -> Result<Option<Answer>, Failure> {
    let (mut options, mut words) = (Tyr::connect_options(), ConnectWords::default());
    Unpacking(&call.data).words(|name, value| {
        let own = || Some(value.to_owned());
        match name {
            "address" => value.clone_into(&mut words.address),
            "user" => words.user = own(),
            "key" => words.key = own(),
            "key_file" => words.key_file = own(),
            "tls_certificate" => words.certificate = own(),
            "tls_key" => words.certificate_key = own(),
            "timeout_ms" => options = options.clone().timeout(time(value)?),
            "connect_timeout_ms" => options = options.clone().connect_timeout(time(value)?),
            "tls_ca" => options = options.clone().tls_ca(value),
            "tls_domain" => options = options.clone().tls_domain(value),
            other => return Err(unknown("connection", other)),
        }
        Ok(())
    })?;
    let (options, address) = words.complete(options)?;
    // What follows the addresses may name files with keys: it is not shown.
    let place = address.split('?').next().unwrap_or_default().to_owned();
    call.front.run(async move { Ok(Store::opened(options.connect(address).await?, place)) })
}

/// What of a connection belongs together.
#[derive(Debug, Default)]
struct ConnectWords {
    address: String,
    user: Option<String>,
    key: Option<String>,
    key_file: Option<String>,
    certificate: Option<String>,
    certificate_key: Option<String>,
}

impl ConnectWords {
    fn complete(self, options: ConnectOptions) -> Result<(ConnectOptions, String), Failure> {
        let options = match (self.user, self.key, self.key_file) {
            (None, None, None) => options,
            (Some(user), Some(key), None) => options.user(user, key),
            (Some(user), None, Some(file)) => options.user_with_key_file(user, file),
            _ => return Err(Failure::invalid("a user has a key or a file with one: give one")),
        };
        let options = match (self.certificate, self.certificate_key) {
            (None, None) => options,
            (Some(certificate), Some(key)) => options.tls_certificate(certificate, key),
            _ => return Err(Failure::invalid("a certificate and its key go together: give both")),
        };
        Ok((options, self.address))
    }
}

impl Store {
    fn opened(tyr: Tyr, place: String) -> Answer {
        Answer::number(HANDLES.add(Self { tyr, place, is_closed: AtomicBool::new(false) }))
    }

    /// Refuses to go on after it was closed.
    ///
    /// # Errors
    /// `State`.
    pub fn check(&self) -> Result<(), Failure> {
        if !self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Failure::State(format!("the store {} is closed: open it again", self.place)))
    }

    /// What it was opened with.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Has a call of it done.
    pub fn call(self: &Arc<Self>, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        if call.op == op::CLOSE {
            return self.close(call.front);
        }
        self.check()?;
        let (tyr, store) = (self.tyr.clone(), Arc::clone(self));
        match call.op {
            op::SYNC => call.front.run(async move { Ok(nothing(tyr.sync().await?)) }),
            op::BEGIN => {
                let transaction = Transaction::new(&store, tyr.begin());
                Ok(Some(Answer::number(HANDLES.add(transaction))))
            }
            op::COPY => self.copy(call),
            op::READ_MANY => self.read_many(call),
            op::OUTCOME => {
                let cause = HANDLES.get::<Cause>(call.a)?;
                call.front.run(async move {
                    let committed = tyr.outcome(&cause.error).await?;
                    Ok(Answer::Packed(packed::committed(&committed, &cause.operations)))
                })
            }
            _ => self.call_named(call),
        }
    }

    /// Calls about keyspaces and snapshots, by name.
    fn call_named(self: &Arc<Self>, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        let name = packed::text(&call.data)?.to_owned();
        let (tyr, store) = (self.tyr.clone(), Arc::clone(self));
        let front = call.front;
        match call.op {
            op::KEYSPACE => {
                front.run(async move { Ok(Keyspace::found(&store, tyr.keyspace(&name).await?)) })
            }
            op::KEYSPACE_OR_CREATE => {
                let config = config_of(&call.more)?;
                front.run(async move {
                    Ok(Keyspace::found(&store, tyr.keyspace_or_create(&name, config).await?))
                })
            }
            op::CREATE_KEYSPACE => {
                let config = config_of(&call.more)?;
                front.run(async move {
                    Ok(Keyspace::found(&store, tyr.create_keyspace(&name, config).await?))
                })
            }
            op::DROP_KEYSPACE => {
                front.run(async move { Ok(nothing(tyr.drop_keyspace(&name).await?)) })
            }
            op::KEYSPACES => front.run(async move {
                let all = tyr.keyspaces().await?;
                Ok(names(all.iter().map(|it| it.name.as_str())))
            }),
            op::SNAPSHOT => {
                front.run(async move { Ok(Snapshot::taken(&store, tyr.snapshot().await?)) })
            }
            op::KEEP => front.run(async move { Ok(nothing(tyr.keep(&name).await.map(drop)?)) }),
            op::KEPT => front.run(async move {
                let all = tyr.kept().await?;
                Ok(names(all.iter().map(|it| it.name.as_str())))
            }),
            op::KEPT_SNAPSHOT => front.run(async move {
                let kept = tyr.kept_snapshot(&name).await?;
                Ok(Snapshot::taken(&store, kept))
            }),
            op::DROP_KEPT => front.run(async move { Ok(nothing(tyr.drop_kept(&name).await?)) }),
            other => Err(unknown("store", &other.to_string())),
        }
    }

    fn close(&self, front: Front<'_>) -> Result<Option<Answer>, Failure> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(Some(Answer::Nothing));
        }
        let tyr = self.tyr.clone();
        front.run(async move { Ok(nothing(tyr.close().await?)) })
    }

    /// What of which blob is to be copied to where.
    pub fn copy_of(self: &Arc<Self>, call: &Call<'_>) -> Result<BlobCopy, Failure> {
        let (source, into) = (HANDLES.get::<Keyspace>(call.a)?, HANDLES.get::<Keyspace>(call.b)?);
        let into_key = tyr::Key::new(&call.data)?;
        Ok(BlobCopy::new(source.of(self)?, call.key()?, into.of(self)?, into_key)?)
    }

    fn copy(self: &Arc<Self>, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        let (copy, tyr) = (self.copy_of(&call)?, self.tyr.clone());
        call.front.run(async move { Ok(Answer::number(tyr.copy(&copy).await?)) })
    }

    fn read_many(self: &Arc<Self>, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        let (mut packed, mut wanted) = (Unpacking(&call.data), Vec::new());
        while !packed.is_end() {
            let keyspace = HANDLES.get::<Keyspace>(packed.number()?)?.of(self)?.clone();
            let key = tyr::Key::new(packed.bytes()?)?;
            let range = ByteRange::at(packed.count()?, packed.count()?)?;
            wanted.push(ReadRequest { keyspace, key, range });
        }
        let tyr = self.tyr.clone();
        call.front.run(async move {
            let mut packing = Packing::default();
            for bytes in tyr.read_many(&wanted).await? {
                packing.optional(bytes.as_deref());
            }
            Ok(Answer::Packed(packing.0))
        })
    }

    /// Runs an attempt in a transaction and commits it; again when it met a conflict. The attempt
    /// is given a handle for as long as it runs, and answers the number of what it failed with, or
    /// a negative number. Answers what the operations of the last one have answered.
    ///
    /// # Errors
    /// What the last one failed with, or its commit.
    pub fn transact(
        self: &Arc<Self>,
        mut attempt: impl FnMut(i64) -> i32,
        is_interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Answer, Failure> {
        self.check()?;
        let mut operations = Vec::new();
        let body = async |transaction: &mut tyr::Transaction| {
            operations.clear();
            let lent =
                Arc::new(Transaction::lent(self, std::mem::replace(transaction, self.tyr.begin())));
            let handle = HANDLES.add_shared(Arc::clone(&lent));
            let failed = attempt(handle);
            HANDLES.free(handle);
            match (lent.take_back(), failed) {
                (Some((back, gathered)), i32::MIN..0) => {
                    *transaction = back;
                    operations = gathered;
                    Ok(())
                }
                (None, i32::MIN..0) => Err(Error::invalid(
                    "another thread was using the transaction when the function returned: wait \
                     for it there",
                )),
                // What is no error of ours is of no kind that is tried again.
                (_, number) => {
                    let kind = kind_of(number).unwrap_or(ErrorKind::Unavailable);
                    Err(Error::new(kind, "the function has thrown an exception"))
                }
            }
        };
        let ended = wait_for(self.tyr.transact_committed(body), is_interrupted)?;
        match ended {
            Ok(((), committed)) => Ok(Answer::Packed(packed::committed(&committed, &operations))),
            Err(error) => Err(Failure::Commit(error, operations)),
        }
    }
}

/// Nothing, as an answer.
pub fn nothing((): ()) -> Answer {
    Answer::Nothing
}

/// Bytes of a blob, as an answer.
pub fn bytes(bytes: Bytes) -> Answer {
    Answer::Bytes(bytes)
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> Answer {
    let mut packing = Packing::default();
    all.for_each(|name| packing.bytes(name.as_bytes()));
    Answer::Packed(packing.0)
}
