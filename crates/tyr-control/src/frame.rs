//! Frames of the control plane: a length, a checksum, and a value in `postcard`.
//!
//! ```text
//!   | length of the body | crc32c of it | body |          4 + 4 bytes, little-endian
//! ```

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use tyr_metadata::limits::{LIST_BYTES_MAX, PATH_LEN_MAX, TRANSACTION_BYTES_MAX};

/// Bytes of a body: the largest transaction or listing, and a batch of Raft's log that goes beyond
/// its bound by such a one.
pub const FRAME_LEN_MAX: usize = 12 << 20;

/// Frames of which the body is read piece by piece, so that a length that lies takes no memory.
const PIECE_LEN: usize = 64 << 10;

const _: () = assert!(FRAME_LEN_MAX > TRANSACTION_BYTES_MAX + (4 << 20) + (1 << 20));
const _: () = assert!(FRAME_LEN_MAX > 2 * (LIST_BYTES_MAX + PATH_LEN_MAX));

/// A value as a frame.
///
/// # Errors
/// `InvalidInput` when it is longer than a frame may be.
pub fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = postcard::to_extend(value, vec![0; 8])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let len = frame.len() - 8;
    if len > FRAME_LEN_MAX {
        let text = format!("a message of {len} bytes is longer than a frame, {FRAME_LEN_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let checksum = crc32c::crc32c(&frame[8..]);
    frame[..4].copy_from_slice(&(len as u32).to_le_bytes());
    frame[4..8].copy_from_slice(&checksum.to_le_bytes());
    Ok(frame)
}

/// Sends a value.
///
/// # Errors
/// As [`encode`], and what the stream says.
pub async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    value: &impl Serialize,
) -> io::Result<()> {
    stream.write_all(&encode(value)?).await?;
    stream.flush().await
}

/// The next value.
///
/// # Errors
/// `UnexpectedEof` when the stream ends, `InvalidData` when what comes is no such value.
pub async fn receive<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    len_max: usize,
) -> io::Result<T> {
    let wrong = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let len = stream.read_u32_le().await? as usize;
    let checksum = stream.read_u32_le().await?;
    if len > len_max {
        return Err(wrong(format!("a message of {len} bytes, at most {len_max} are taken")));
    }
    let mut body = Vec::new();
    while body.len() < len {
        let start = body.len();
        body.resize(len.min(start + PIECE_LEN), 0);
        stream.read_exact(&mut body[start..]).await?;
    }
    if crc32c::crc32c(&body) != checksum {
        return Err(wrong("the checksum of a message is wrong".to_owned()));
    }
    postcard::from_bytes(&body).map_err(|error| wrong(format!("no such message: {error}")))
}
