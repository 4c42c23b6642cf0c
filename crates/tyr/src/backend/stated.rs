//! Bytes of a blob together with its size and version, as they are now.

use tyr_runtime::waiting::block_on;
use tyr_types::{BlobName, ByteRange, Bytes, Error, ErrorKind, Result, Stat};

use super::read_versions::stated;
use super::{Answer, Found, Space};

/// What a read with size and version answers; `None`: no such blob.
pub(crate) type Stated = Option<(Stat, Bytes)>;

impl Space {
    /// The newest bytes of a range, with the blob's size and version at that moment.
    pub fn read_stated(&self, name: &BlobName, range: ByteRange) -> Result<Stated> {
        let answer = match self {
            Self::Embedded(space) if range.is_empty() => space.stat(name).map(stated),
            Self::Embedded(space) => space.read(name, range),
            Self::Remote(space) => block_on(space.read(name, plain(range), true)),
        };
        answer.and_then(with_stat).map_err(|error| self.named(error))
    }

    pub async fn fetch_stated(&self, name: &BlobName, range: ByteRange) -> Result<Stated> {
        let answer = match self {
            Self::Embedded(space) if range.is_empty() => space.fetch_stat(name).await.map(stated),
            Self::Embedded(space) => space.fetch(name, range).await,
            Self::Remote(space) => space.read(name, plain(range), true).await,
        };
        answer.and_then(with_stat).map_err(|error| self.named(error))
    }
}

/// Nothing is nothing, wherever it is.
fn plain(range: ByteRange) -> ByteRange {
    if range.is_empty() { ByteRange::NOTHING } else { range }
}

fn with_stat(answer: Answer) -> Result<Stated> {
    let Some(found) = answer else { return Ok(None) };
    let stat = found.stat().ok_or_else(|| {
        let text = "a read that asked for a blob's size was answered without; report this";
        Error::new(ErrorKind::Unavailable, text)
    })?;
    let Found { bytes, .. } = found;
    Ok(Some((stat, bytes)))
}
