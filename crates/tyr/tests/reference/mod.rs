//! What a store should do, done in the simplest way: a map of blobs, each a map of pages.
//!
//! It knows nothing of logs, folds, extents or versions. A snapshot is a copy.

pub mod change;

use std::collections::BTreeMap;
use std::sync::Arc;

use tyr::{ErrorKind, KeyspaceConfig};

pub use change::{Answer, Change};

const PAGE: u64 = 4096;

/// One blob: its size, and the pages that were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob {
    pub size: u64,
    pages: BTreeMap<u64, Arc<[u8]>>,
}

impl Blob {
    /// Bytes `offset..offset + len`, cut to the size.
    pub fn read(&self, offset: u64, len: u64) -> Vec<u8> {
        let end = offset.saturating_add(len).min(self.size);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        if bytes.is_empty() {
            return bytes;
        }
        for (number, page) in self.pages.range(offset / PAGE..=(end - 1) / PAGE) {
            let base = number * PAGE;
            let (from, to) = (base.max(offset), (base + PAGE).min(end));
            bytes[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&page[(from - base) as usize..(to - base) as usize]);
        }
        bytes
    }

    /// Puts bytes at `offset`.
    pub fn write(&mut self, offset: u64, mut bytes: &[u8]) {
        self.size = self.size.max(offset + bytes.len() as u64);
        let mut at = offset;
        while !bytes.is_empty() {
            let inside = (at % PAGE) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(PAGE as usize - inside));
            let page = self.pages.entry(at / PAGE).or_insert_with(|| [0; PAGE as usize].into());
            let mut copy = page.to_vec();
            copy[inside..inside + now.len()].copy_from_slice(now);
            *page = copy.into();
            at += now.len() as u64;
            bytes = later;
        }
    }

    /// Cuts, or extends with zeros.
    pub fn truncate(&mut self, len: u64) {
        if len < self.size {
            let kept = len.div_ceil(PAGE);
            self.pages.split_off(&kept);
            let gone = (kept * PAGE - len) as usize;
            if gone > 0 && self.pages.contains_key(&(len / PAGE)) {
                self.write(len, &vec![0; gone]);
            }
        }
        self.size = len;
    }

    /// Makes a hole, as far as the blob goes.
    pub fn clear(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len).min(self.size);
        let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
        self.pages.retain(|number, _| *number < first || last <= *number);
        for edge in [(offset, end.min(first * PAGE)), (offset.max(last * PAGE), end)] {
            let (from, to) = edge;
            if from < to && self.pages.contains_key(&(from / PAGE)) {
                self.write(from, &vec![0; (to - from) as usize]);
            }
        }
    }

    /// Where something was written: stretches of whole pages.
    pub fn written(&self) -> Vec<(u64, u64)> {
        let mut stretches: Vec<(u64, u64)> = Vec::new();
        for number in self.pages.keys() {
            match stretches.last_mut() {
                Some((start, len)) if *start + *len == number * PAGE => *len += PAGE,
                _ => stretches.push((number * PAGE, PAGE)),
            }
        }
        stretches
    }
}

/// A keyspace: its configuration and its blobs.
#[derive(Clone, Debug, Default)]
pub struct Space {
    pub config: KeyspaceConfig,
    pub blobs: BTreeMap<Vec<u8>, Arc<Blob>>,
    /// Tells a keyspace from one of the same name before it.
    pub generation: u64,
}

/// A whole store.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub spaces: BTreeMap<String, Space>,
}

impl Model {
    /// The blob of this name, if there is one.
    pub fn blob(&self, space: &str, key: &[u8]) -> Option<&Blob> {
        self.spaces.get(space)?.blobs.get(key).map(|blob| &**blob)
    }

    /// Keys and sizes as a scan lists them.
    pub fn scan(
        &self,
        space: &str,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Vec<(Vec<u8>, u64)> {
        let blobs = self.spaces[space].blobs.iter();
        let listed = blobs.filter(|(key, _)| {
            key.starts_with(prefix) && after.is_none_or(|after| key.as_slice() > after)
        });
        listed.take(limit).map(|(key, blob)| (key.clone(), blob.size)).collect()
    }

    /// Does one change on its own.
    pub fn change(
        &mut self,
        space: &str,
        key: &[u8],
        change: &Change,
    ) -> Result<Answer, ErrorKind> {
        let blob = self.blob(space, key);
        change.refusal(blob, blob).map_or(Ok(()), Err)?;
        Ok(self.force(space, key, change))
    }

    /// Does one change without asking for its conditions.
    pub fn force(&mut self, space: &str, key: &[u8], change: &Change) -> Answer {
        let blobs = &mut self.spaces.get_mut(space).expect("the keyspace is there").blobs;
        change.play(blobs, key)
    }

    /// Makes a blob what it is in `other`.
    pub fn put_back(&mut self, space: &str, key: &[u8], other: &Self) {
        let blobs = &mut self.spaces.get_mut(space).expect("the keyspace is there").blobs;
        match other.spaces.get(space).and_then(|space| space.blobs.get(key)) {
            Some(blob) => blobs.insert(key.to_vec(), Arc::clone(blob)),
            None => blobs.remove(key),
        };
    }
}
