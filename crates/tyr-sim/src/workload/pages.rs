//! Pairs of blobs that come, change and go together, and listings of them in pages: ranges of keys,
//! first bytes, groups.
//!
//! Both blobs of a pair hold one number, in as many cells; they lie in different groups. What a
//! page shows of each blob is checked as a read at its moment ([`super::paging`]). Beyond that,
//! within a snapshot both blobs of a pair are of one version, and the groups that it lists are
//! those of the blobs that it lists.

use std::collections::{BTreeMap, BTreeSet};

use tyr_protocol::session::Want;
use tyr_types::{BlobName, BlobOperations, ByteRange, Key, Operation, Scan, Stat};

use super::{CELL, Space, Unique, Work, Workload, cells, on};
use crate::checker::{Entry, Replayed};
use crate::random::Random;

/// Groups of left blobs, and as many of right ones.
const GROUPS: usize = 3;

/// Cells of a blob at most; more than a page asks for of each.
const CELLS_MAX: u64 = 40;

/// What groups end with.
const DELIMITER: u8 = b'/';

/// The workload.
#[derive(Clone, Debug)]
pub struct Pages {
    space: Space,
    pairs: usize,
    pause_us: u64,
    /// Of a hundred listings so many are of what is kept.
    kept: u64,
    unique: Unique,
}

impl Pages {
    /// So many pairs, listed by snapshots that pause so long before each page.
    pub fn new(space: Space, pairs: usize, pause_us: u64) -> Self {
        Self { space, pairs: pairs.max(1), pause_us, kept: 0, unique: Unique::new(b'p') }
    }

    /// The same, with so many listings of a hundred that are of what is kept.
    #[must_use]
    pub fn with_kept(self, kept: u64) -> Self {
        Self { kept, ..self }
    }

    fn pair(&self, number: usize) -> [BlobName; 2] {
        ["left", "right"].map(|side| {
            let group = number % GROUPS;
            self.space.blob(&format!("page/{side}{group}"), number)
        })
    }

    fn put(&mut self, number: usize, random: &mut Random) -> Vec<BlobOperations> {
        let payload = cells(self.unique.draw(), random.between(1, CELLS_MAX));
        let replace = |blob| on(blob, [Operation::Replace { payload: payload.clone() }]);
        self.pair(number).iter().map(replace).collect()
    }

    fn delete(&self, number: usize) -> Vec<BlobOperations> {
        self.pair(number).iter().map(|blob| on(blob, [Operation::Delete])).collect()
    }

    /// The blobs that lie in the keyspace of this one, in key order.
    fn among(&self, first: &BlobName) -> Vec<BlobName> {
        let all = (0..self.pairs).flat_map(|number| self.pair(number));
        let here: BTreeSet<BlobName> = all.filter(|it| it.keyspace == first.keyspace).collect();
        here.into_iter().collect()
    }

    fn list(&self, random: &mut Random) -> Work {
        let [first, _] = self.pair(random.below(self.pairs as u64) as usize);
        let among = self.among(&first);
        let mut some = || among[random.below(among.len() as u64) as usize].key.clone();
        let (one, other) = (some(), some());
        let (from, to) = (one.clone().min(other.clone()), one.max(other));
        let limit = random.between(1, 9) as usize;
        let start = random.below(3) * CELL;
        let range = ByteRange { start, end: start + random.between(1, 6) * CELL };
        let all = Scan::new().prefix("page/").range(range).limit(limit);
        let scans = match random.below(4) {
            0 => vec![all.from(&from).to(&to)],
            1 => vec![all.after(&from), Scan::new().prefix("page/left").limit(limit)],
            _ => vec![all, Scan::new().prefix("page/").delimiter([DELIMITER]).limit(limit)],
        };
        let first = Want::bytes(first, ByteRange { start: 0, end: CELL });
        let list = Work::List { first, scans, among, pause_us: self.pause_us };
        match self.kept > 0 && random.below(100) < self.kept {
            true => Work::AtKept(Box::new(list)),
            false => list,
        }
    }

    /// What is wrong with the pages of one snapshot.
    fn wrong(&self, entry: &Entry) -> Option<String> {
        let mut stats: BTreeMap<&Key, Stat> = BTreeMap::new();
        let (mut groups, mut is_whole) = (BTreeSet::new(), false);
        for listed in &entry.pages {
            let page = &listed.page;
            if !page.entries.is_sorted_by(|one, next| one.key < next.key) {
                return Some("lists out of order".to_owned());
            }
            for found in &page.entries {
                let stat = found.stat?;
                if stats.insert(&found.key, stat).is_some_and(|before| before != stat) {
                    return Some(format!("lists two versions of \"{}\"", found.key));
                }
            }
            if listed.scan.get_delimiter().is_some() {
                is_whole = page.is_end();
                groups.extend(page.groups.iter().map(|group| group.to_vec()));
            }
        }
        let stat = |blob: &BlobName| stats.get(&blob.key);
        for [left, right] in (0..self.pairs).map(|number| self.pair(number)) {
            if let (Some(one), Some(other)) = (stat(&left), stat(&right))
                && one != other
            {
                return Some(format!("tears \"{}\" from its pair", left.key));
            }
        }
        // Then the blobs were all listed before.
        if is_whole {
            let ours = |key: &Key| {
                let key = key.as_bytes();
                let at = key.iter().rposition(|byte| *byte == DELIMITER)?;
                Some(key[..=at].to_vec())
            };
            let expected: BTreeSet<Vec<u8>> = stats.keys().filter_map(|key| ours(key)).collect();
            if groups != expected {
                let (groups, blobs) = (groups.len(), expected.len());
                return Some(format!("lists {groups} groups, and blobs of {blobs}"));
            }
        }
        None
    }
}

impl Workload for Pages {
    fn name(&self) -> &'static str {
        "pages"
    }

    fn set_up(&mut self) -> Vec<Vec<BlobOperations>> {
        let mut random = Random::of(0, "pages", 0);
        (0..self.pairs).map(|number| self.put(number, &mut random)).collect()
    }

    fn next(&mut self, _client: u16, random: &mut Random) -> Work {
        let pair = random.below(self.pairs as u64) as usize;
        match random.below(100) {
            0..45 => Work::Commit(self.put(pair, random)),
            45..60 => Work::Commit(self.delete(pair)),
            _ => self.list(random),
        }
    }

    fn check(&self, deeds: &[&Entry], _end: &Replayed<'_>) -> Result<(), String> {
        let wrong = |entry: &&Entry| Some((entry.name(), self.wrong(entry)?));
        match deeds.iter().find_map(wrong) {
            Some((name, what)) => Err(format!("{name} {what}")),
            None => Ok(()),
        }
    }
}
