//! The body of a request: whole, in time, unpacked, and never more than allowed.

use std::io::Read;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use flate2::read::MultiGzDecoder;

/// Time that a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a body was not taken: the status of the answer, and its text.
pub type Untaken = (StatusCode, String);

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// It is not.
    Identity,
    /// By gzip (RFC 1952), as InfluxDB's clients and Telegraf do.
    Gzip,
}

impl Encoding {
    /// What the header of a request says.
    pub fn of(headers: &HeaderMap) -> Result<Self, Untaken> {
        let Some(encoding) = headers.get(header::CONTENT_ENCODING) else {
            return Ok(Self::Identity);
        };
        let encoding = String::from_utf8_lossy(encoding.as_bytes()).trim().to_ascii_lowercase();
        match encoding.as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" => Ok(Self::Gzip),
            other => Err((
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!(
                    "the content encoding \"{}\" is not understood; send gzip or identity",
                    other.escape_debug()
                ),
            )),
        }
    }
}

/// The body as it was before it was packed; packed and unpacked it has at most `len_max` bytes.
pub async fn read(body: Body, encoding: Encoding, len_max: usize) -> Result<Bytes, Untaken> {
    let packed = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, len_max)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            return Err((
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("a body has at most {len_max} bytes and arrives whole; send smaller ones"),
            ));
        }
        Err(_) => {
            return Err((
                StatusCode::REQUEST_TIMEOUT,
                format!("a body arrives within {} seconds", BODY_TIMEOUT.as_secs()),
            ));
        }
    };
    match encoding {
        Encoding::Identity => Ok(packed),
        Encoding::Gzip => {
            // Milliseconds of work: not on a thread that others wait for.
            let unpacking = tokio::task::spawn_blocking(move || unpack(&packed, len_max));
            unpacking.await.expect("unpacking does not panic").map(Bytes::from)
        }
    }
}

fn unpack(packed: &[u8], len_max: usize) -> Result<Vec<u8>, Untaken> {
    let mut unpacked = Vec::new();
    // One byte more than allowed, to see that there is one: a few KiB may claim to be anything.
    let read = MultiGzDecoder::new(packed).take(len_max as u64 + 1).read_to_end(&mut unpacked);
    match read {
        Ok(len) if len <= len_max => Ok(unpacked),
        Ok(_) => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("a body has at most {len_max} bytes when unpacked; send smaller ones"),
        )),
        Err(error) => Err((
            StatusCode::BAD_REQUEST,
            format!("the body is not whole gzip, though its content encoding says so: {error}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_was_packed_is_unpacked_up_to_the_bound_and_not_a_byte_further() {
        let text = vec![b'a'; 100_000];
        assert_eq!(unpack(&packed(&text), text.len()).unwrap(), text);
        let (status, message) = unpack(&packed(&text), text.len() - 1).unwrap_err();
        assert_eq!(status, 413);
        assert!(message.contains("at most 99999 bytes when unpacked"), "{message}");
        // Two members after each other are one body (RFC 1952).
        let both = [packed(b"one\n"), packed(b"two\n")].concat();
        assert_eq!(unpack(&both, 100).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn what_is_no_gzip_or_cut_is_refused_with_the_reason() {
        let whole = packed(b"load one=1\n");
        for bad in [b"load one=1\n".as_slice(), &[], &whole[..whole.len() - 1]] {
            let (status, message) = unpack(bad, 1000).unwrap_err();
            assert_eq!(status, 400);
            assert!(message.contains("not whole gzip"), "{message}");
        }
    }

    #[test]
    fn encodings_have_their_names_in_any_case() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_ENCODING, value.parse().unwrap());
            Encoding::of(&headers)
        };
        assert_eq!(Encoding::of(&HeaderMap::new()), Ok(Encoding::Identity));
        assert_eq!(of("identity"), Ok(Encoding::Identity));
        assert_eq!(of("GZIP"), Ok(Encoding::Gzip));
        assert_eq!(of("br").unwrap_err().0, 415);
    }
}
