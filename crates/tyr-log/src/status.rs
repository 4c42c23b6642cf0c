//! What there is of a log, for people and programs that look after it; and how it is deleted.

use tyr::{Error, ErrorKind, Result, Scan, Timestamp, limits};

use crate::description::Description;
use crate::layout;
use crate::log::Log;
use crate::options::Retention;
use crate::position::Position;

/// Blobs that are deleted in one transaction.
const STEP: usize = 256;

/// What there is of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// When it was made.
    pub created: Timestamp,
    /// Whether it takes no more entries.
    pub is_sealed: bool,
    /// Whether all partitions have one strict order and numbers.
    pub is_strict: bool,
    /// Bytes after which a partition goes on in another segment.
    pub segment_bytes: u64,
    /// What may go by itself.
    pub retention: Retention,
    /// Of a strict log: the numbers of the first entry that was not trimmed, and of the next one.
    pub numbers: Option<(u64, u64)>,
    /// Each partition.
    pub partitions: Vec<PartitionStatus>,
}

/// What there is of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// Where its first entry is, or will be.
    pub begin: Position,
    /// Where its next entry will be.
    pub end: Position,
    /// Segments that are there.
    pub segments: u64,
    /// Bytes of them, what was trimmed within the first one not counted.
    pub bytes: u64,
}

impl Log {
    /// What there is of the log: each partition as of now.
    ///
    /// # Errors
    /// `NotFound` when it was deleted; whatever the store answers.
    pub async fn status(&self) -> Result<Status> {
        let description = self.describe().await?;
        let tail = self.tail().await?;
        let mut partitions = Vec::with_capacity(description.rows.len());
        for (row, end) in description.rows.iter().zip(tail.positions()) {
            let sizes = self.sizes(end.partition).await?;
            let bytes: u64 = sizes.iter().map(|(_, size)| size).sum();
            let is_there = sizes.iter().any(|(segment, _)| *segment == row.mark.segment);
            let hole = if is_there { row.mark.offset - crate::segment::HEAD_LEN } else { 0 };
            partitions.push(PartitionStatus {
                begin: row.mark,
                end: *end,
                segments: sizes.len() as u64,
                bytes: bytes.saturating_sub(hole),
            });
        }
        let Description { created, is_sealed, is_strict, segment_bytes, retention, .. } =
            description;
        let numbers = tail.number().map(|number| (description.marked_number, number));
        Ok(Status { created, is_sealed, is_strict, segment_bytes, retention, numbers, partitions })
    }

    /// The segments of a partition that are there, with their sizes, in order.
    pub(crate) async fn sizes(&self, partition: u16) -> Result<Vec<(u64, u64)>> {
        let shared = &*self.shared;
        let first = layout::segment_key(&shared.name, partition, 0)?;
        let prefix = &first.as_bytes()[..first.as_bytes().len() - 20];
        let mut next = Some(Scan::new().prefix(prefix).limit(limits::SCAN_LIMIT_MAX));
        let mut sizes = Vec::new();
        while let Some(scan) = next {
            let page = shared.keyspace.scan_page(&scan).await?;
            next = scan.resumed(&page);
            let found = page.entries.iter().filter_map(|entry| {
                let number = std::str::from_utf8(&entry.key.as_bytes()[prefix.len()..]).ok()?;
                Some((number.parse().ok()?, entry.stat.as_ref()?.size))
            });
            sizes.extend(found);
        }
        Ok(sizes)
    }

    /// Deletes the log: entries, groups and all. Its description goes first, so that nobody takes
    /// half of a log for one; if it is interrupted, space stays taken until a log of this name is
    /// deleted again.
    ///
    /// # Errors
    /// `NotFound` when there is nothing of it; whatever the store answers.
    pub async fn delete(store: &tyr::Tyr, keyspace: &str, name: &str) -> Result<()> {
        let name = crate::name::Name::new("log", name)?;
        let keyspace = store.keyspace(keyspace).await?;
        let mut count = 0;
        // Its own blobs, the description among them, then those of partitions.
        for prefix in [format!("{name}\0"), format!("{name}/")] {
            loop {
                let scan = Scan::new().prefix(&prefix).keys_only().limit(STEP);
                let page = keyspace.scan_page(&scan).await?;
                if page.entries.is_empty() {
                    break;
                }
                let mut transaction = store.begin();
                transaction.delete(&keyspace, layout::log_key(&name)?)?;
                for entry in &page.entries {
                    transaction.delete(&keyspace, &entry.key)?;
                    count += 1;
                }
                transaction.commit().await?;
            }
        }
        match count {
            0 => Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no log {name} in keyspace {}", keyspace.name()),
            )),
            _ => Ok(()),
        }
    }
}
