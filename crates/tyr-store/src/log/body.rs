//! The body of a record: a transaction's writes, as few bytes as is simple.
//!
//! Numbers are varints (seven bits a byte, low bits first), payloads and keys are raw bytes after
//! their length, and a transform is one byte for what it does and to which type. What was read,
//! compared and expected is left out: a transaction in the log is decided.
//!
//! Decoding is total: any bytes give a transaction or an error, and allocate no more than the
//! bytes themselves justify.

use std::sync::Arc;

use tyr_types::{
    BlobName, BlobOperations, ByteRange, Bytes, Error, ExtentRef, Key, KeyspaceId, Number,
    NumberType, Operation, Payload, Result, Stamped, Transaction, TransactionId, Transform,
    TransformKind, limits,
};

const CREATE: u8 = 0;
const WRITE: u8 = 1;
const WRITE_EXTENTS: u8 = 2;
const APPEND: u8 = 3;
const APPEND_EXTENTS: u8 = 4;
const TRUNCATE: u8 = 5;
const DELETE: u8 = 6;
const REPLACE: u8 = 7;
const REPLACE_EXTENTS: u8 = 8;
/// With stamps follow the places of those.
const WRITE_STAMPED: u8 = 9;
const APPEND_STAMPED: u8 = 10;
const REPLACE_STAMPED: u8 = 11;
const CLEAR: u8 = 12;
/// Transforms follow: 10 times the kind plus the type.
const APPLY: u8 = 0x80;

const _: () = {
    assert!(TransformKind::ALL.len() * NumberType::ALL.len() <= (u8::MAX - APPLY) as usize);
    assert!(NumberType::ALL.len() == 10, "a transform's code is 10 times its kind, and the type");
    assert!(CLEAR < APPLY, "the codes of transforms lie behind all others");
};

/// Whether the log keeps anything of these operations.
fn has_writes(blob: &BlobOperations) -> bool {
    blob.operations.iter().any(Operation::is_write)
}

/// Appends the body of `transaction` to `out`: of its blobs those in keyspaces that `is_logged`
/// names, of their operations those that write. Answers what it saw; writes nothing when nothing
/// is left.
pub fn encode(
    transaction: &Transaction,
    is_logged: impl Fn(KeyspaceId) -> bool,
    out: &mut Vec<u8>,
) -> Seen {
    let mut seen = Seen::default();
    let logged = || {
        let blobs = transaction.blobs.iter();
        blobs.filter(|blob| is_logged(blob.blob.keyspace) && has_writes(blob))
    };
    seen.blobs = logged().count();
    if seen.blobs == 0 {
        return seen;
    }
    out.extend_from_slice(&transaction.id.0.to_le_bytes());
    varint(out, seen.blobs as u64);
    for blob in logged() {
        varint(out, u64::from(blob.blob.keyspace.0));
        bytes(out, blob.blob.key.as_bytes());
        let count = blob.operations.iter().filter(|operation| operation.is_write()).count();
        varint(out, count as u64);
        seen.operations += count;
        for operation in &blob.operations {
            seen.has_growth |= operation.is_write() && !operation.makes_room();
            encode_operation(operation, out, &mut seen);
        }
    }
    seen
}

/// What [`encode`] met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Blobs that are in the body.
    pub blobs: usize,
    /// Operations that are in the body.
    pub operations: usize,
    /// Whether any payload lies in extents.
    pub has_extents: bool,
    /// Whether any operation does more than cut or remove.
    pub has_growth: bool,
}

fn encode_operation(operation: &Operation, out: &mut Vec<u8>, seen: &mut Seen) {
    match operation {
        Operation::Create => out.push(CREATE),
        Operation::Write { offset, payload } => {
            out.push(form(payload, [WRITE, WRITE_EXTENTS, WRITE_STAMPED], seen));
            varint(out, *offset);
            encode_payload(payload, out);
        }
        // Where it was expected was a condition; that it held is known.
        Operation::Append { payload, expected: _ } => {
            out.push(form(payload, [APPEND, APPEND_EXTENTS, APPEND_STAMPED], seen));
            encode_payload(payload, out);
        }
        Operation::Truncate { len } => {
            out.push(TRUNCATE);
            varint(out, *len);
        }
        Operation::Clear { range } => {
            out.push(CLEAR);
            varint(out, range.start);
            varint(out, range.len());
        }
        Operation::Delete => out.push(DELETE),
        Operation::Apply { offset, transform } => {
            let operand = transform.operand();
            let code = transform.kind() as u8 * 10 + operand.number_type() as u8;
            out.push(APPLY + code);
            varint(out, *offset);
            let mut number = [0; 8];
            let width = operand.store(&mut number);
            debug_assert_eq!(width, operand.number_type().width(), "as many bytes are read back");
            out.extend_from_slice(&number[..width]);
        }
        Operation::Compare { .. } | Operation::Expect { .. } => {}
        Operation::Replace { payload } => {
            out.push(form(payload, [REPLACE, REPLACE_EXTENTS, REPLACE_STAMPED], seen));
            encode_payload(payload, out);
        }
    }
}

/// Which of the codes of an operation is that of its payload: by value, by reference, with stamps.
fn form(payload: &Payload, codes: [u8; 3], seen: &mut Seen) -> u8 {
    let [inline, extents, stamped] = codes;
    match payload {
        Payload::Inline(_) => inline,
        Payload::Extents(_) => {
            seen.has_extents = true;
            extents
        }
        Payload::Stamped(_) => stamped,
        Payload::Uploaded(_) => unreachable!("an embedded store writes its payloads itself"),
    }
}

fn encode_payload(payload: &Payload, out: &mut Vec<u8>) {
    match payload {
        Payload::Inline(content) => bytes(out, content),
        Payload::Extents(extents) => {
            varint(out, extents.len() as u64);
            for extent in extents {
                varint(out, u64::from(extent.file));
                varint(out, extent.position);
                varint(out, u64::from(extent.len));
                varint(out, u64::from(extent.compressed_len));
            }
        }
        Payload::Uploaded(_) => unreachable!("an embedded store writes its payloads itself"),
        Payload::Stamped(stamped) => {
            bytes(out, stamped.bytes());
            varint(out, stamped.places().len() as u64);
            stamped.places().iter().for_each(|place| varint(out, u64::from(*place)));
        }
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn bytes(out: &mut Vec<u8>, content: &[u8]) {
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// The transaction in a body; its reads are empty.
///
/// # Errors
/// `Corrupt` when the bytes are none that [`encode`] makes; `Unavailable` when a later release made
/// them. The caller adds file and place.
pub fn decode(body: &[u8]) -> Result<Transaction> {
    let mut reader = Reader { rest: body };
    let transaction = reader.transaction()?;
    if !reader.rest.is_empty() {
        return Err(malformed("bytes after its end"));
    }
    Ok(transaction)
}

/// Something whole that this program does not know.
fn unknown(what: &str, code: u8, known: u8) -> Error {
    Error::later_release("a transaction", format_args!("{what} {code}"), known)
}

fn malformed(what: &str) -> Error {
    Error::corrupt(format!("not a transaction: {what}"))
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or_else(|| malformed("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            // The tenth byte has room for one bit.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(malformed("a number is longer than 64 bits"))
    }

    fn u32(&mut self) -> Result<u32> {
        u32::try_from(self.varint()?).map_err(|_| malformed("a number is longer than 32 bits"))
    }

    /// How many of something follow, each of which takes at least one byte.
    fn count(&mut self) -> Result<usize> {
        let count = self.varint()?;
        if count > self.rest.len() as u64 {
            return Err(malformed("it announces more than it has"));
        }
        Ok(count as usize)
    }

    fn transaction(&mut self) -> Result<Transaction> {
        let id = self.take(16)?.try_into().expect("16 bytes are 16 bytes");
        let count = self.count()?;
        let mut left = limits::TRANSACTION_OPERATIONS_MAX;
        if count > left {
            return Err(malformed("too many blobs"));
        }
        let mut blobs = Vec::with_capacity(count);
        for _ in 0..count {
            blobs.push(self.blob(&mut left)?);
        }
        let id = TransactionId(u128::from_le_bytes(id));
        Ok(Transaction { id, blobs, reads: Vec::new() })
    }

    fn blob(&mut self, operations_left: &mut usize) -> Result<BlobOperations> {
        let keyspace = KeyspaceId(self.u32()?);
        let len = self.count()?;
        let key = Key::new(self.take(len)?).map_err(|_| malformed("a key's length is wrong"))?;
        let count = self.count()?;
        if count == 0 {
            return Err(malformed("a blob without operations"));
        }
        *operations_left =
            operations_left.checked_sub(count).ok_or_else(|| malformed("too many operations"))?;
        let mut operations = Vec::with_capacity(count);
        for _ in 0..count {
            operations.push(self.operation()?);
        }
        Ok(BlobOperations { blob: BlobName { keyspace, key }, operations })
    }

    fn operation(&mut self) -> Result<Operation> {
        let operation = match self.byte()? {
            CREATE => Operation::Create,
            WRITE => Operation::Write { offset: self.varint()?, payload: self.inline()? },
            WRITE_EXTENTS => Operation::Write { offset: self.varint()?, payload: self.extents()? },
            APPEND => Operation::Append { payload: self.inline()?, expected: None },
            APPEND_EXTENTS => Operation::Append { payload: self.extents()?, expected: None },
            TRUNCATE => Operation::Truncate { len: self.varint()? },
            DELETE => Operation::Delete,
            REPLACE => Operation::Replace { payload: self.inline()? },
            REPLACE_EXTENTS => Operation::Replace { payload: self.extents()? },
            code @ APPLY.. => self.apply(code - APPLY)?,
            WRITE_STAMPED => Operation::Write { offset: self.varint()?, payload: self.stamped()? },
            APPEND_STAMPED => Operation::Append { payload: self.stamped()?, expected: None },
            REPLACE_STAMPED => Operation::Replace { payload: self.stamped()? },
            CLEAR => {
                let (start, len) = (self.varint()?, self.varint()?);
                let range = ByteRange::at(start, len);
                Operation::Clear { range: range.map_err(|_| malformed("an impossible range"))? }
            }
            code => return Err(unknown("operation", code, CLEAR)),
        };
        operation.validate().map_err(|_| malformed("an impossible offset"))?;
        Ok(operation)
    }

    fn apply(&mut self, code: u8) -> Result<Operation> {
        let code = usize::from(code);
        let (Some(kind), number_type) =
            (TransformKind::ALL.get(code / 10), NumberType::ALL[code % 10])
        else {
            let kinds = TransformKind::ALL.len() as u8;
            return Err(unknown("transform", (code / 10) as u8, kinds - 1));
        };
        let offset = self.varint()?;
        let operand = Number::load(number_type, self.take(number_type.width())?);
        let transform = Transform::new(*kind, operand)
            .map_err(|_| malformed("a transform that is never accepted"))?;
        Ok(Operation::Apply { offset, transform })
    }

    /// A copy of its own: a slice of the record would keep the whole record in memory.
    fn bytes(&mut self) -> Result<Bytes> {
        let len = self.count()?;
        Ok(Bytes::copy_from_slice(self.take(len)?))
    }

    fn inline(&mut self) -> Result<Payload> {
        Ok(Payload::Inline(self.bytes()?))
    }

    fn stamped(&mut self) -> Result<Payload> {
        let bytes = self.bytes()?;
        let count = self.count()?;
        let places: Vec<u32> = (0..count).map(|_| self.u32()).collect::<Result<_>>()?;
        let stamped = Stamped::from_parts(bytes, &places);
        let stamped = stamped.map_err(|_| malformed("stamps where none can be"))?;
        Ok(Payload::Stamped(Arc::new(stamped)))
    }

    fn extents(&mut self) -> Result<Payload> {
        let count = self.count()?;
        // Four numbers each, a byte or more a number.
        if count > self.rest.len() / 4 {
            return Err(malformed("it announces more extents than it has"));
        }
        let mut extents = Vec::with_capacity(count);
        for _ in 0..count {
            let extent = ExtentRef {
                file: self.u32()?,
                position: self.varint()?,
                len: self.u32()?,
                compressed_len: self.u32()?,
            };
            extents.push(extent);
        }
        Ok(Payload::Extents(extents))
    }
}

#[cfg(test)]
mod tests;
