//! Stores and keyspaces.

use std::ffi::c_char;
use std::sync::Once;

use tyr::Keyspace;

use super::error::tyr_error;
use super::listing::{names, tyr_page};
use super::memory::{put, text, wanted};
use super::options::{read, tyr_connect_options, tyr_keyspace_config, tyr_open_options};
use super::{call, free, hand_out, of};
use crate::border::BORDER;
use crate::handle::HANDLES;
use crate::object::{Page, Store};

/// A store: a folder opened in this process, or a connection to a cluster. Any thread may use it.
pub struct tyr_store {
    _private: (),
}

/// A namespace of blobs. Any thread may use it. Free it.
pub struct tyr_keyspace {
    _private: (),
}

extern "C" fn in_child() {
    BORDER.note_fork();
}

/// Has children that are forked from now on told so: they get errors, and no wait without end.
pub(super) fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: what it calls in a child stores one word.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        assert_eq!(failed, 0, "a process registers few handlers");
    });
}

/// Opens the store in a folder, or makes one there. One process has it open at a time. `options`
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_open(
    folder: *const c_char,
    options: *const tyr_open_options,
    store: *mut *mut tyr_store,
) -> *mut tyr_error {
    call(|| {
        wanted(store, "store")?;
        let folder = text(folder, "folder")?;
        let options = tyr_open_options::options(read(options)?)?;
        watch_forks();
        put(store, hand_out(Store(options.open_blocking(folder)?))?);
        Ok(())
    })
}

/// Connects to a cluster: "tyr://host:port,other:port", behind which options may stand as in
/// "?user=ann&key_file=/etc/key". `options` may be NULL; what the address says counts first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_connect(
    address: *const c_char,
    options: *const tyr_connect_options,
    store: *mut *mut tyr_store,
) -> *mut tyr_error {
    call(|| {
        wanted(store, "store")?;
        let address = text(address, "address")?;
        let options = tyr_connect_options::options(read(options)?)?;
        watch_forks();
        put(store, hand_out(Store(options.connect_blocking(address)?))?);
        Ok(())
    })
}

/// Closes a store and frees it. What was acknowledged is on disk; what is under way ends with an
/// error, and so does every later call on keyspaces, snapshots and transactions of it, which are
/// still to be freed. NULL is nothing to close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_close(store: *mut tyr_store) -> *mut tyr_error {
    call(|| {
        if store.is_null() {
            return Ok(());
        }
        let store = HANDLES.take::<Store>(store.addr())?;
        Ok(store.0.clone().close()?)
    })
}

/// Waits until everything that was acknowledged before is on disk, also in keyspaces of
/// `TYR_BUFFERED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_sync(store: *mut tyr_store) -> *mut tyr_error {
    call(|| Ok(of::<Store, _>(store)?.0.sync()?))
}

/// Finds a keyspace.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_keyspace_find(
    store: *mut tyr_store,
    name: *const c_char,
    keyspace: *mut *mut tyr_keyspace,
) -> *mut tyr_error {
    call(|| {
        wanted(keyspace, "keyspace")?;
        let found = of::<Store, _>(store)?.0.keyspace(text(name, "name")?)?;
        put(keyspace, hand_out(found.into_async())?);
        Ok(())
    })
}

/// Makes a keyspace. `config` may be NULL. It stays as it is created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_keyspace_create(
    store: *mut tyr_store,
    name: *const c_char,
    config: *const tyr_keyspace_config,
    keyspace: *mut *mut tyr_keyspace,
) -> *mut tyr_error {
    call(|| {
        wanted(keyspace, "keyspace")?;
        let config = tyr_keyspace_config::config(read(config)?)?;
        let made = of::<Store, _>(store)?.0.create_keyspace(text(name, "name")?, config)?;
        put(keyspace, hand_out(made.into_async())?);
        Ok(())
    })
}

/// Finds a keyspace, or makes it; `TYR_ALREADY_EXISTS` if it has another configuration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_keyspace_find_or_create(
    store: *mut tyr_store,
    name: *const c_char,
    config: *const tyr_keyspace_config,
    keyspace: *mut *mut tyr_keyspace,
) -> *mut tyr_error {
    call(|| {
        wanted(keyspace, "keyspace")?;
        let config = tyr_keyspace_config::config(read(config)?)?;
        let found = of::<Store, _>(store)?.0.keyspace_or_create(text(name, "name")?, config)?;
        put(keyspace, hand_out(found.into_async())?);
        Ok(())
    })
}

/// Removes a keyspace and all its blobs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_keyspace_drop(
    store: *mut tyr_store,
    name: *const c_char,
) -> *mut tyr_error {
    call(|| Ok(of::<Store, _>(store)?.0.drop_keyspace(text(name, "name")?)?))
}

/// Lists the keyspaces: a page whose keys are their names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_keyspace_list(
    store: *mut tyr_store,
    page: *mut *mut tyr_page,
) -> *mut tyr_error {
    call(|| {
        wanted(page, "page")?;
        let all = of::<Store, _>(store)?.0.keyspaces()?;
        let all = all.iter().map(|info| (info.name.as_str(), None));
        put(page, hand_out(Page(names(all)?))?);
        Ok(())
    })
}

/// Frees a keyspace's handle; NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_keyspace_free(keyspace: *mut tyr_keyspace) -> *mut tyr_error {
    free::<Keyspace, _>(keyspace)
}
