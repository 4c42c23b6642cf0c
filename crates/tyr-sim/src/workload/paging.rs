//! What a client has still to list in a snapshot, and what a page shows of each blob.
//!
//! A page tells of every blob up to where it ends: that it was there, with these bytes, or that it
//! was not. So it is taken down as that many reads at the snapshot's moment, which the checkers
//! hold against the history as they do all others.

use std::collections::VecDeque;

use tyr_protocol::Abort;
use tyr_protocol::session::{Call, Want};
use tyr_types::{BlobName, ByteRange, Scan, ScanPage, Timestamp};

use crate::checker::{Found, Listed, Seen};

/// The listings that a client still has to make.
#[derive(Debug, Default)]
pub struct Paging {
    scans: VecDeque<Scan>,
    among: Vec<BlobName>,
    /// The moment, and from when on what it shows was asked for.
    asked: Option<(Timestamp, u64)>,
}

impl Paging {
    /// These, of a keyspace that may have these blobs.
    pub fn new(scans: Vec<Scan>, among: Vec<BlobName>) -> Self {
        Self { scans: scans.into(), among, asked: None }
    }

    /// Whether nothing is to be listed any more.
    pub fn is_over(&self) -> bool {
        self.scans.is_empty()
    }

    /// Asks for the next page; what was acknowledged before `start_us` must be in it.
    pub fn call(&mut self, at: Option<Timestamp>, start_us: u64) -> Call {
        let at = at.expect("the first read of a snapshot told its moment");
        self.asked = Some((at, start_us));
        let scan = Box::new(self.scans.front().expect("it is not over").clone());
        let keyspace = self.among.first().expect("there may be some").keyspace;
        Call::Scan { keyspace, scan, at: Some(at) }
    }

    /// A page came: what it shows of each blob.
    pub fn listed(&mut self, page: ScanPage, pages: &mut Vec<Listed>, now_us: u64) -> Vec<Seen> {
        let scan = self.scans.pop_front().expect("who asked waits for a page");
        let (at, start_us) = self.asked.expect("it was asked for");
        let keys = scan.keys();
        let is_told = |key: &[u8]| {
            keys.contains(key) && page.resume.as_ref().is_none_or(|resume| *key < **resume)
        };
        let seen = |blob: &BlobName| {
            let entry = page.entries.iter().find(|entry| entry.key == blob.key);
            let found = entry.map_or(Found::Absent, |entry| Found::Bytes {
                bytes: entry.bytes.clone(),
                size: entry.stat.map(|stat| stat.size),
            });
            let range = scan.get_range().unwrap_or(ByteRange::NOTHING);
            // Of a blob that is there a page of keys says nothing more.
            let is_attributes = !scan.is_keys_only();
            let want = Want { blob: blob.clone(), range, is_attributes };
            Seen { want, start_us, end_us: Some(now_us), at: Some(at), found }
        };
        let told = self.among.iter().filter(|blob| is_told(blob.key.as_bytes()));
        // Of the blobs of a group nothing is told one by one.
        let told = told.filter(|blob| scan.group_of(blob.key.as_bytes()).is_none());
        let seen = told.map(seen).collect();
        if let Some(rest) = scan.resumed(&page) {
            self.scans.push_front(rest);
        }
        pages.push(Listed { scan, page });
        seen
    }

    /// A page was refused, or it never came to one.
    pub fn refused(&mut self, abort: &Abort, now_us: u64) -> Option<Seen> {
        let (at, start_us) = self.asked.take()?;
        let blob = self.among.last()?.clone();
        self.scans.clear();
        let found = Found::Refused(abort.clone());
        Some(Seen { want: Want::stat(blob), start_us, end_us: Some(now_us), at: Some(at), found })
    }
}
