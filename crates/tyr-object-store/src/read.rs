//! One object at one moment: a snapshot, and what it has of the object.

use std::ops::Range;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta};
use tyr::{ByteRange, Keyspace, Snapshot, Stat};

use crate::failure::{generic, told};

/// What `object_store` calls the description of an object.
pub(crate) fn meta(location: Path, stat: Stat) -> ObjectMeta {
    // The clock of a store stays below the year 2255.
    let micros = i64::try_from(stat.version.clock).unwrap_or(i64::MAX);
    let last_modified = DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default();
    let e_tag = Some(stat.version.to_string());
    // A version is what could be read when there is a newer one.
    ObjectMeta { location, last_modified, size: stat.size, e_tag, version: None }
}

/// An object as a snapshot has it.
pub(crate) struct Object {
    pub snapshot: Snapshot,
    pub keyspace: Keyspace,
    pub key: String,
    pub location: Path,
}

impl Object {
    pub async fn get(self, options: GetOptions) -> object_store::Result<GetResult> {
        let Self { snapshot, keyspace, key, location } = self;
        let stat = snapshot.stat(&keyspace, &key).await.map_err(|it| told(it, &location))?;
        let meta = meta(location.clone(), stat);
        options.check_preconditions(&meta)?;
        if options.version.is_some() && options.version != meta.e_tag {
            let (path, source) = (location.to_string(), "its version is another by now".into());
            return Err(object_store::Error::NotFound { path, source });
        }
        let range = match &options.range {
            Some(range) => range.as_range(stat.size).map_err(generic)?,
            None => 0..stat.size,
        };
        let body: BoxStream<'static, object_store::Result<Bytes>> = if options.head {
            stream::empty().boxed()
        } else {
            let bytes = ByteRange { start: range.start, end: range.end };
            let reader = snapshot.reader(&keyspace, &key, bytes).await;
            let reader = reader.map_err(|it| told(it, &location))?;
            // The snapshot goes with the stream, so that nothing of it is collected meanwhile.
            let held = snapshot;
            reader
                .map_err(move |error| {
                    let _ = &held;
                    told(error, &location)
                })
                .boxed()
        };
        let payload = GetResultPayload::Stream(body);
        let (attributes, extensions) = Default::default();
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    /// Several ranges of this one moment.
    pub async fn ranges(self, ranges: &[Range<u64>]) -> object_store::Result<Vec<Bytes>> {
        let Self { snapshot, keyspace, key, location } = self;
        let stat = snapshot.stat(&keyspace, &key).await.map_err(|it| told(it, &location))?;
        let mut found = Vec::with_capacity(ranges.len());
        for range in ranges {
            let range = GetRange::Bounded(range.clone()).as_range(stat.size).map_err(generic)?;
            let bytes = ByteRange { start: range.start, end: range.end };
            let reader = snapshot.reader(&keyspace, &key, bytes).await;
            let reader = reader.map_err(|it| told(it, &location))?;
            let stream = reader.map_err(|it| told(it, &location));
            found.push(object_store::collect_bytes(stream, Some(bytes.len())).await?);
        }
        Ok(found)
    }
}
