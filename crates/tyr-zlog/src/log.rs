//! A log, opened.

use std::sync::Arc;

use blocking::unblock;
use tyr::{Bytes, Error, ErrorKind, Keyspace, Result, Scan, Tyr};
use tyr_object::{Classes, Failure};

use crate::capability::Capability;
use crate::class::{self, Fields};
use crate::client::{Client, create_view, no_log, object_call};
use crate::layout;
use crate::name::Name;
use crate::options::{KEYSPACE_DEFAULT, Methods, Opening, Options, Sequencing};
use crate::recovery::Counter;
use crate::seat::RoundTrip;
use crate::sequencer::Sequencer;
use crate::view::View;

/// A log. Cheap to clone; clones share everything, the sequencer among them.
///
/// Dropping the last clone is like the death of the program: if it had the sequencer, whoever needs
/// it next recovers the log first. [`Log::close`] spares them that.
#[derive(Clone, Debug)]
pub struct Log {
    pub(crate) client: Arc<Client>,
    pub(crate) sequencer: Arc<dyn Sequencer>,
    pub(crate) opening: Arc<Opening>,
    /// The same keyspace and classes as those of `client`, for async code.
    keyspace: Keyspace,
    classes: Classes,
}

impl Log {
    /// Makes a log in its keyspace, which is made if it is missing; installs the classes of logs
    /// where others are called, and enables them there.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name; `InvalidArgument` for options out of range;
    /// `PermissionDenied` for who may not install classes.
    pub async fn create(store: &Tyr, name: &str, options: &Options) -> Result<Self> {
        options.validate()?;
        let name = Name::new(name)?;
        let space = &options.keyspace;
        let keyspace = match store.keyspace(space).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                store.keyspace_or_create(space, options.keyspace_config.clone()).await?
            }
            found => found?,
        };
        let installed = Classes::of(store);
        for (class, script) in
            [(class::OBJECT_CLASS, class::OBJECT_SCRIPT), (class::VIEW_CLASS, class::VIEW_SCRIPT)]
        {
            installed.ensure(None, script.as_bytes()).await?;
            installed.enable(class, space).await?;
        }
        let view = View::first(options.width.into(), options.slots.into());
        let made = {
            let (store, keyspace) = (store.blocking(), keyspace.as_blocking().clone());
            let (classes, name) = (installed.as_blocking().clone(), name.clone());
            unblock(move || make(&store, &keyspace, &classes, &name, &view)).await
        };
        match made {
            Ok(()) => Self::open_in(store, space, name.as_str()).await,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a log {name} in keyspace {space} already: open it"),
            )),
            Err(error) => Err(error),
        }
    }

    /// Opens a log of the keyspace `zlogs`.
    ///
    /// # Errors
    /// `NotFound` when there is no such log.
    pub async fn open(store: &Tyr, name: &str) -> Result<Self> {
        Self::open_in(store, KEYSPACE_DEFAULT, name).await
    }

    /// Opens a log of a keyspace.
    ///
    /// # Errors
    /// `NotFound` when there is no such log, or keyspace.
    pub async fn open_in(store: &Tyr, keyspace: &str, name: &str) -> Result<Self> {
        Self::open_as(store, keyspace, name, Opening::default()).await
    }

    /// The same with a say in how this handle behaves.
    ///
    /// # Errors
    /// As [`Log::open_in`]; `InvalidArgument` from what needs the sequencer, for a lease out of
    /// range.
    pub async fn open_as(
        store: &Tyr,
        keyspace: &str,
        name: &str,
        opening: Opening,
    ) -> Result<Self> {
        let name = Name::new(name)?;
        let keyspace = match store.keyspace(keyspace).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(no_log(&name, keyspace).with_source(error));
            }
            found => found?,
        };
        let classes = Classes::of(store);
        if opening.methods == Methods::Native {
            for class in class::native() {
                classes.register(class)?;
            }
        }
        let client = {
            let (store, space) = (store.blocking(), keyspace.as_blocking().clone());
            let called = classes.as_blocking().clone();
            unblock(move || Client::open(store, space, called, name)).await?
        };
        let client = Arc::new(client);
        let sequencer: Arc<dyn Sequencer> = match opening.sequencing {
            Sequencing::Held => Arc::new(Capability::new(Arc::clone(&client), &opening)),
            Sequencing::Asked => Arc::new(RoundTrip::new(&client, &keyspace, &opening)?),
        };
        Ok(Self { client, sequencer, opening: Arc::new(opening), keyspace, classes })
    }

    /// The names of the logs of a keyspace, in order.
    ///
    /// # Errors
    /// `NotFound` when there is no such keyspace; whatever the store answers.
    pub async fn list_in(store: &Tyr, keyspace: &str) -> Result<Vec<String>> {
        let keyspace = store.keyspace(keyspace).await?;
        let mut names = Vec::new();
        // Storage objects have the delimiter in their keys, and are passed by.
        let mut next = Some(Scan::new().delimiter("/").keys_only());
        while let Some(scan) = next {
            let page = keyspace.scan_page(&scan).await?;
            next = scan.resumed(&page);
            let found = page.entries.iter().filter_map(|entry| {
                let key = std::str::from_utf8(entry.key.as_bytes()).ok()?;
                key.strip_suffix(layout::HEAD_SUFFIX).map(str::to_owned)
            });
            names.extend(found);
        }
        Ok(names)
    }

    /// Gives the sequencer back, if this handle has it, and leaves its counter for the next.
    /// Appends of this handle and its clones fail from then on.
    ///
    /// # Errors
    /// Whatever the store answers; the log is as after the death of this program then.
    pub async fn close(self) -> Result<()> {
        self.sequencer.close().await
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.client.name.as_str()
    }

    /// The keyspace that holds it.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Calls a method of a storage object.
    pub(crate) async fn call(
        &self,
        key: &tyr::Key,
        method: &str,
        input: Fields,
    ) -> Result<Bytes, Failure> {
        self.classes.call(&self.keyspace, key, &object_call(method, input)).await
    }

    /// Looks for newer views.
    pub(crate) async fn refresh(&self) -> Result<Arc<View>> {
        let client = Arc::clone(&self.client);
        unblock(move || client.refresh()).await
    }
}

/// Makes a log with its first stripe, in one transaction.
fn make(
    store: &tyr::blocking::Tyr,
    keyspace: &tyr::blocking::Keyspace,
    classes: &tyr_object::blocking::Classes,
    name: &Name,
    view: &View,
) -> Result<()> {
    let head = layout::view_key(name)?;
    store.transact(|transaction| {
        classes.call_in(transaction, keyspace, &head, &create_view(view)?)?;
        for stripe in view.stripes_backwards() {
            for column in 0..stripe.width {
                let input = Fields::of([0, stripe.first + column, stripe.width, stripe.slots]);
                let key = layout::object_key(name, stripe.number, column)?;
                classes.call_in(transaction, keyspace, &key, &object_call("init", input))?;
            }
        }
        let counter = Counter { term: 0, next: 0 }.bytes(0);
        transaction.put(keyspace, layout::counter_key(name)?, counter).map(drop)
    })
}
