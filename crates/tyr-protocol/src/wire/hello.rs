//! The first bytes of every connection, in both directions: who speaks, to whom, which version; or
//! why nobody is going to.
//!
//! ```text
//!   0          8         10       12         16
//!   | TYR-WIRE | version | length | checksum | 0 level | cluster | sender | receiver | incarnation
//!                                            |         | token
//!                                            | 1 kind of error | text
//! ```
//!
//! The version is that of hello and frames, and is to stay. What is said in frames grows by feature
//! levels; each side tells the highest that it speaks, and gets nothing that is of a higher one.
//! The first 12 bytes stay as they are in all versions to come, so that each can tell the others
//! apart.

use std::fmt;

use bytes::{Buf, BytesMut};
use tyr_types::{Bytes, Error, ErrorKind, Result};

use super::encoded::{Encoded, encoded_enum, encoded_struct};
use super::input::{Input, Malformed};
use super::output::{Outgoing, Output};
use crate::level::{LEVEL_KNOWN, LEVEL_MIN};
use crate::message::Address;

/// The version of the wire format that this program speaks: of hello and frame, not of what is in
/// them.
pub const VERSION: u16 = 2;

/// The bytes that every connection of this protocol begins with, in both directions.
pub const MAGIC: [u8; 8] = *b"TYR-WIRE";

const PREFIX_LEN: usize = 16;

/// Bytes of a hello's token at most: a password or a signed ticket, not a document.
pub const TOKEN_LEN_MAX: usize = 1024;

/// Bytes of the text of a refusal at most: two or three sentences.
pub const REFUSAL_LEN_MAX: usize = 512;

/// Bytes after the prefix at most: tag, level, cluster, sender and receiver, whose numbers take up
/// to 10 bytes as the incarnation does, and the token's length.
const CONTENT_LEN_MAX: usize = 1 + 1 + 17 + 11 + 12 + 10 + 2 + TOKEN_LEN_MAX;

const _: () = {
    assert!(1 + 1 + 2 + REFUSAL_LEN_MAX <= CONTENT_LEN_MAX);
    assert!(CONTENT_LEN_MAX <= u16::MAX as usize, "a hello's length has 16 bits");
    assert!(PREFIX_LEN == MAGIC.len() + 2 + 2 + 4, "magic, version, length, checksum");
    assert!(LEVEL_MIN <= LEVEL_KNOWN, "it speaks with programs of its own release");
};

/// What a peer says first.
#[derive(Clone, PartialEq, Eq)]
pub struct Hello {
    /// The highest feature level that it speaks.
    pub level: u8,
    /// The cluster that it belongs to, if it knows. Two of different clusters do not speak.
    pub cluster: Option<u128>,
    /// Who it is.
    pub sender: Address,
    /// Whom it means to speak to, if it knows: an address may have passed to somebody else.
    pub receiver: Option<Address>,
    /// Its incarnation, when it is a node; of a client how many connections it has tried to make,
    /// or 0 where it does not count.
    pub incarnation: u64,
    /// What shows that it may say so; up to [`TOKEN_LEN_MAX`] bytes, without authentication none.
    pub token: Bytes,
}

/// Without the token, which is a secret.
impl fmt::Debug for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, cluster, sender, receiver, incarnation, token } = self;
        write!(f, "Hello({sender:?}, incarnation {incarnation}, level {level}, ")?;
        write!(f, "to {receiver:?}, ")?;
        write!(f, "cluster {cluster:x?}, {} bytes of token)", token.len())
    }
}

/// What a connection begins with.
enum Greeting {
    Hello(Hello),
    Refused(ErrorKind, String),
}

encoded_struct!(Hello, 6, { level, cluster, sender, receiver, incarnation, token });
encoded_enum!(Greeting, "greeting", { 0 => Hello(hello), 1 => Refused(kind, text) });

impl Encoded for u128 {
    const LEN_MIN: usize = 16;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.raw(&self.to_le_bytes());
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.array().map(Self::from_le_bytes)
    }
}

impl Greeting {
    fn to_bytes(&self) -> Bytes {
        let mut content = Outgoing::new();
        Output::put(self, &mut content);
        assert!(content.remaining() <= CONTENT_LEN_MAX, "the peer would take it for damaged");
        let len = content.remaining() as u16;
        let mut bytes = BytesMut::with_capacity(PREFIX_LEN + content.remaining());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&len.to_le_bytes());
        let content = content.take_bytes();
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes), &content);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        debug_assert_eq!(bytes.len(), PREFIX_LEN, "its content begins where the peer looks");
        bytes.extend_from_slice(&content);
        bytes.freeze()
    }
}

/// What to send instead of a hello to a peer that is not spoken to: [`Hello::take`] gives it to
/// the peer as an error of the same kind, with the same text. Send it and close the connection.
pub fn refusal_bytes(error: &Error) -> Bytes {
    let mut text = error.to_string();
    let end = (0..=REFUSAL_LEN_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    debug_assert!(text.len() <= REFUSAL_LEN_MAX, "what is said fits a hello");
    Greeting::Refused(error.kind(), text).to_bytes()
}

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
        Ok(Greeting::Hello(self.clone()).to_bytes())
    }

    /// Takes the hello off the beginning of a stream; `None` until more of it is in.
    ///
    /// # Errors
    /// `InvalidArgument` when the peer speaks another version; `Corrupt` when it does not speak
    /// this protocol at all, or its hello was damaged; what the peer says when it refuses to speak
    /// ([`refusal_bytes`]). Close the connection.
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
        let mut input = Input::new(&bytes, Some(&bytes), PREFIX_LEN, LEVEL_KNOWN);
        let greeting =
            Greeting::decode(&mut input).map_err(|malformed| malformed.error("a hello", whole))?;
        match greeting {
            Greeting::Hello(hello) if hello.level < LEVEL_MIN => Err(Error::invalid(format!(
                "the peer speaks feature levels up to {} only, this program from {LEVEL_MIN} on; \
                 upgrade the peer",
                hello.level
            ))),
            // What a later level adds comes after what is known.
            Greeting::Hello(hello) if hello.level <= LEVEL_KNOWN && !input.is_at_end() => {
                Err(Error::corrupt("not a hello: it has more bytes after its end"))
            }
            Greeting::Hello(hello) if hello.token.len() > TOKEN_LEN_MAX => {
                Err(Error::corrupt("not a hello: its token is too long"))
            }
            Greeting::Hello(hello) => Ok(Some(hello)),
            Greeting::Refused(kind, text) => Err(Error::new(kind, text)),
        }
    }
}
