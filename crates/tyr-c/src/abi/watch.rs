//! Watches: who watches is told when keys change.

use std::time::Duration;

use tyr::{Keyspace, WatchEvent};

use super::blob::key_of;
use super::error::tyr_error;
use super::listing::{keys, tyr_page};
use super::memory::{put, tyr_slice, wanted};
use super::number::tyr_timestamp;
use super::store::tyr_keyspace;
use super::{call, free, hand_out, of};
use crate::object::{Page, Watch};

/// A watch of a key, or of all with a prefix. Any thread may use it. Free it.
pub struct tyr_watch {
    _private: (),
}

/// What a watch tells: some changes as one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_watch_event {
    /// Keys that have changed, up to 64: a page to free. NULL where nothing came in time.
    pub keys: *mut tyr_page,
    /// The version of the last change among them.
    pub version: tyr_timestamp,
    /// 1: something may have changed that was not told, as at the beginning and after an
    /// interruption: look at what is there.
    pub is_anew: i32,
    /// 1: more keys have changed than these.
    pub is_more: i32,
}

/// Watches a key. The first event comes at once, and says to look.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_watch_key(
    keyspace: *mut tyr_keyspace,
    key: tyr_slice,
    watch: *mut *mut tyr_watch,
) -> *mut tyr_error {
    call(|| {
        wanted(watch, "watch")?;
        let begun = of::<Keyspace, _>(keyspace)?.as_blocking().watch(key_of(key)?)?;
        put(watch, hand_out(Watch(begun))?);
        Ok(())
    })
}

/// Watches all keys that begin with `prefix`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_watch_prefix(
    keyspace: *mut tyr_keyspace,
    prefix: tyr_slice,
    watch: *mut *mut tyr_watch,
) -> *mut tyr_error {
    call(|| {
        wanted(watch, "watch")?;
        let keyspace = of::<Keyspace, _>(keyspace)?;
        let begun = keyspace.as_blocking().watch_prefix(prefix.bytes("prefix")?)?;
        put(watch, hand_out(Watch(begun))?);
        Ok(())
    })
}

/// Waits for an event, for `timeout_us` microseconds at most: a negative time has no end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_watch_next(
    watch: *mut tyr_watch,
    timeout_us: i64,
    event: *mut tyr_watch_event,
) -> *mut tyr_error {
    call(|| {
        wanted(event, "event")?;
        let watch = of::<Watch, _>(watch)?;
        let told = match u64::try_from(timeout_us) {
            Ok(wait) => watch.0.changed_within(Duration::from_micros(wait))?,
            Err(_) => Some(watch.0.changed()?),
        };
        put(event, event_of(told)?);
        Ok(())
    })
}

fn event_of(told: Option<WatchEvent>) -> Result<tyr_watch_event, crate::failure::Failure> {
    let is_told = told.is_some();
    let told = told.unwrap_or_default();
    let page = || hand_out(Page(keys(told.changes.keys.iter().cloned())));
    Ok(tyr_watch_event {
        keys: if is_told { page()? } else { std::ptr::null_mut() },
        version: told.changes.at.into(),
        is_anew: told.is_anew.into(),
        is_more: told.changes.is_more.into(),
    })
}

/// Ends a watch; NULL is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tyr_watch_free(watch: *mut tyr_watch) -> *mut tyr_error {
    free::<Watch, _>(watch)
}
