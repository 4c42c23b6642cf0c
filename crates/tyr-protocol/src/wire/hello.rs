//! The first bytes of every connection, in both directions: who speaks, and which version.
//!
//! ```text
//!   0          8         10       12         16
//!   | TYR-WIRE | version | length | checksum | address | incarnation | token
//! ```
//!
//! The first 12 bytes stay as they are in all versions to come, so that each can tell the others
//! apart. What follows is version 1's.

use std::fmt;

use bytes::{Buf, BytesMut};
use tyr_types::{Bytes, Error, Result};

use super::encoded::encoded_struct;
use super::input::Input;
use super::output::{Outgoing, Output};
use crate::message::Address;

/// The version of the wire format that this program speaks.
pub const VERSION: u16 = 1;

const MAGIC: [u8; 8] = *b"TYR-WIRE";
const PREFIX_LEN: usize = 16;

/// Bytes of a hello's token at most: a password or a signed ticket, not a document.
pub const TOKEN_LEN_MAX: usize = 1024;

/// Bytes after the prefix at most: address, incarnation and the token's length are numbers.
const CONTENT_LEN_MAX: usize = TOKEN_LEN_MAX + 1 + 10 + 10 + 2;

/// What a peer says first.
#[derive(Clone, PartialEq, Eq)]
pub struct Hello {
    /// Who it is.
    pub sender: Address,
    /// Its incarnation, when it is a node; else 0.
    pub incarnation: u64,
    /// What shows that it may say so; up to [`TOKEN_LEN_MAX`] bytes, without authentication none.
    pub token: Bytes,
}

/// Without the token, which is a secret.
impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sender, incarnation, token } = self;
        write!(f, "Hello({sender:?}, incarnation {incarnation}, {} bytes of token)", token.len())
    }
}

encoded_struct!(Hello, 3, { sender, incarnation, token });

impl Hello {
    /// Its bytes, in this program's [`VERSION`].
    ///
    /// # Errors
    /// `InvalidArgument` when the token is too long.
    pub fn to_bytes(&self) -> Result<Bytes> {
        if self.token.len() > TOKEN_LEN_MAX {
            return Err(Error::invalid(format!(
                "a token has at most {TOKEN_LEN_MAX} bytes, this one has {}",
                self.token.len()
            )));
        }
        let mut content = Outgoing::new();
        Output::put(self, &mut content);
        let len = content.remaining() as u16;
        let mut bytes = BytesMut::with_capacity(PREFIX_LEN + content.remaining());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
        let content = content.take_bytes();
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes), &content);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&content);
        Ok(bytes.freeze())
    }

    /// Takes the hello off the beginning of a stream; `None` until more of it is in.
    ///
    /// # Errors
    /// `InvalidArgument` when the peer speaks another version; `Corrupt` when it does not speak
    /// this protocol at all, or its hello was damaged. Close the connection.
    pub fn take(stream: &mut BytesMut) -> Result<Option<Self>> {
        let seen = stream.len().min(MAGIC.len());
        if stream[..seen] != MAGIC[..seen] {
            return Err(Error::corrupt(
                "the peer does not speak Týr's wire protocol: a connection begins with TYR-WIRE",
            ));
        }
        let Some(prefix) = stream.first_chunk::<PREFIX_LEN>() else { return Ok(None) };
        let version = u16::from_le_bytes([prefix[8], prefix[9]]);
        if version != VERSION {
            return Err(Error::invalid(format!(
                "the peer speaks version {version} of the wire format, this program version \
                 {VERSION}; upgrade the older of the two"
            )));
        }
        let len = usize::from(u16::from_le_bytes([prefix[10], prefix[11]]));
        if len > CONTENT_LEN_MAX {
            return Err(Error::corrupt(format!(
                "not a hello: it says that {len} bytes follow, at most {CONTENT_LEN_MAX} may"
            )));
        }
        let checksum = u32::from_le_bytes([prefix[12], prefix[13], prefix[14], prefix[15]]);
        let whole = PREFIX_LEN + len;
        if stream.len() < whole {
            return Ok(None);
        }
        let actual = crc32c::crc32c(&stream[..PREFIX_LEN - 4]);
        if crc32c::crc32c_append(actual, &stream[PREFIX_LEN..whole]) != checksum {
            return Err(Error::corrupt("not a hello: its bytes do not have its checksum"));
        }
        let bytes = stream.split_to(whole).freeze();
        let hello: Self = Input::new(&bytes, PREFIX_LEN)
            .all()
            .map_err(|malformed| malformed.error("a hello", whole))?;
        match hello.token.len() <= TOKEN_LEN_MAX {
            true => Ok(Some(hello)),
            false => Err(Error::corrupt("not a hello: its token is too long")),
        }
    }
}
