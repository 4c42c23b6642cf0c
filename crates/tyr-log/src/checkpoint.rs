//! Checkpoints: what there was of a log at moments, so that numbers and times are found.
//!
//! Each is a fact that a snapshot shows, and whoever goes on in another segment writes one down.
//! None is ever wrong; where one is missing, more is read.
//!
//! ```text
//! key    NAME\0at and the snapshot's stamp
//!  0  magic      "tyr-cut", and the format's version, 1
//!  8  number     u64, of entries before it in a strict log; all ones in others
//! 16  positions  for each partition: segment u64, offset u64, index u32
//! ```

use tyr::{Key, Result, Scan, Timestamp, limits};

use crate::bytes::{stamp_at, u64_at};
use crate::description::{MARK_LEN, mark_bytes, read_mark};
use crate::layout;
use crate::log::{Log, read_number};
use crate::position::{Cut, Position};

const MAGIC: [u8; 8] = *b"tyr-cut\x01";
const POSITIONS_AT: usize = 16;
const NO_NUMBER: u64 = u64::MAX;

/// Checkpoints of one page.
const PAGE: usize = 256;

/// What there was of a log at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The moment: what is before the cut has this stamp or an earlier one, all else later ones.
    pub at: Timestamp,
    /// What there was.
    pub cut: Cut,
}

impl Checkpoint {
    fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.cut.number().unwrap_or(NO_NUMBER).to_le_bytes());
        self.cut.positions().iter().for_each(|it| bytes.extend_from_slice(&mark_bytes(*it)));
        bytes
    }

    /// `None` for what is none, or of a later format: then others are taken.
    fn read(key: &Key, prefix_len: usize, bytes: &[u8], partitions: u16) -> Option<Self> {
        let is_one =
            bytes.len() == POSITIONS_AT + MARK_LEN * usize::from(partitions) && bytes[..8] == MAGIC;
        let at = stamp_at(key.as_bytes(), prefix_len).filter(|_| is_one)?;
        let number = Some(u64_at(bytes, 8)).filter(|number| *number != NO_NUMBER);
        let marks = bytes[POSITIONS_AT..].chunks(MARK_LEN).zip(0..);
        let positions: Vec<Position> = marks.map(|(bytes, n)| read_mark(bytes, n)).collect();
        Some(Self { at, cut: Cut::new(positions, number).ok()? })
    }
}

impl Log {
    /// The end of each partition at one moment, with the number of entries so far in a strict log.
    /// In a cluster that moment may be a little before what others were just told is appended.
    ///
    /// # Errors
    /// `NotFound` when the log was deleted; whatever the store answers.
    pub async fn tail(&self) -> Result<Cut> {
        self.now().await.map(|checkpoint| checkpoint.cut)
    }

    /// What there is of the log at this moment.
    pub(crate) async fn now(&self) -> Result<Checkpoint> {
        let shared = &*self.shared;
        let description = self.describe().await?;
        let snapshot = shared.store.snapshot().await?;
        let mut positions = Vec::with_capacity(description.rows.len());
        for (row, partition) in description.rows.iter().zip(0..) {
            let mut segment = row.last;
            // It may have gone on between the description and the snapshot.
            loop {
                let key = layout::segment_key(&shared.name, partition, segment + 1)?;
                match snapshot.stat(&shared.keyspace, &key).await {
                    Err(error) if error.kind() == tyr::ErrorKind::NotFound => break,
                    other => other.map(|_| segment += 1)?,
                }
            }
            let key = layout::segment_key(&shared.name, partition, segment)?;
            let offset = snapshot.stat(&shared.keyspace, &key).await?.size;
            positions.push(Position { partition, segment, offset, index: 0 });
        }
        let number = match &shared.number_key {
            Some(key) => Some(read_number(&snapshot.get(&shared.keyspace, key).await?)),
            None => None,
        };
        Ok(Checkpoint { at: snapshot.version(), cut: Cut::new(positions, number)? })
    }

    /// Writes down what there is.
    pub(crate) async fn checkpoint(&self) -> Result<()> {
        let shared = &*self.shared;
        let checkpoint = self.now().await?;
        let key = layout::checkpoint_key(&shared.name, &checkpoint.at.to_stamp())?;
        let mut transaction = shared.store.begin();
        // A log that was deleted meanwhile gets none.
        transaction.expect_present(&shared.keyspace, &shared.key)?;
        transaction.put(&shared.keyspace, key, checkpoint.write())?;
        transaction.commit().await.map(drop)
    }

    /// The checkpoints in the order of their moments, as long as `take` says so.
    pub(crate) async fn each_checkpoint(
        &self,
        mut take: impl FnMut(&Key, Option<Checkpoint>) -> bool,
    ) -> Result<()> {
        let shared = &*self.shared;
        let prefix = layout::checkpoint_prefix(&shared.name);
        let len = (POSITIONS_AT + MARK_LEN * usize::from(self.partitions())) as u64;
        debug_assert!(len < limits::SCAN_RANGE_LEN_MAX);
        let mut next = Some(Scan::new().prefix(&prefix).first_bytes(len).limit(PAGE));
        while let Some(scan) = next {
            let page = shared.keyspace.scan_page(&scan).await?;
            next = scan.resumed(&page);
            for entry in &page.entries {
                let found =
                    Checkpoint::read(&entry.key, prefix.len(), &entry.bytes, self.partitions());
                if !take(&entry.key, found) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
