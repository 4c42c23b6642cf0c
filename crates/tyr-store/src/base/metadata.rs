//! Service metadata: keys, values, and in which revisions they came to be and changed.
//!
//! What it means, and what may be done to it, is said elsewhere; here it is rows that are durable,
//! each change of them whole or not at all. A node of a cluster has none: the monitors keep it.

use bytes::Bytes;
use tyr_types::{Error, Result};

use super::{Base, key, record};
use crate::index::{IndexBatch, Table};

/// What a key of the service metadata holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRow {
    /// The revision in which it came to be.
    pub created: u64,
    /// The revision of its last change.
    pub changed: u64,
    /// The value.
    pub value: Bytes,
}

/// All service metadata of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataRows {
    /// The revision of the whole; 0 while nothing was ever written.
    pub revision: u64,
    /// Keys, in order, and what they hold.
    pub rows: Vec<(Vec<u8>, MetadataRow)>,
}

impl Base {
    /// Reads all of it.
    ///
    /// # Errors
    /// `Corrupt` when the index is damaged there; `Unavailable` when the disk refuses.
    pub fn metadata(&self) -> Result<MetadataRows> {
        let wrong = |key: &[u8]| {
            let key = key.escape_ascii();
            Error::corrupt(format!("index table meta, key \"{key}\": no service metadata"))
        };
        let revision = match self.index.get(Table::Meta, key::REVISION)? {
            None => 0,
            Some(value) => record::decode_revision(&value).ok_or_else(|| wrong(key::REVISION))?,
        };
        let mut rows = Vec::new();
        let mut visit = |key: &[u8], value: &Bytes| {
            let path = key.strip_prefix(key::METADATA).ok_or_else(|| wrong(key))?;
            let row = record::decode_metadata(value).ok_or_else(|| wrong(key))?;
            rows.push((path.to_vec(), row));
            Ok(true)
        };
        let end = key::behind(key::METADATA);
        self.index.scan(Table::Meta, key::METADATA, end.as_deref(), &mut visit)?;
        Ok(MetadataRows { revision, rows })
    }

    /// Writes what changes in one revision, durably: what each key holds then, `None` when it is
    /// gone; the last one of a key counts.
    ///
    /// # Errors
    /// `Unavailable` when the disk refuses: it is then not known what it has.
    pub fn put_metadata<'a>(
        &self,
        revision: u64,
        rows: impl IntoIterator<Item = (&'a [u8], Option<MetadataRow>)>,
    ) -> Result<()> {
        let _alone = self.changing.lock();
        let mut batch = IndexBatch::new();
        batch.put(Table::Meta, key::REVISION.to_vec(), record::encode_revision(revision));
        for (path, row) in rows {
            let key = [key::METADATA, path].concat();
            match row {
                Some(row) => {
                    assert!(row.created <= row.changed && row.changed <= revision, "{row:?}");
                    batch.put(Table::Meta, key, record::encode_metadata(&row));
                }
                None => batch.remove(Table::Meta, key),
            }
        }
        self.index.commit(batch)?;
        self.record(self.last_checkpoint())
    }
}
