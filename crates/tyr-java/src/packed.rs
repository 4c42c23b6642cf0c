//! What takes more than a key and two numbers, as bytes: written and read by both halves.
//!
//! Numbers are big-endian, as Java's buffers have them; bytes and texts have their length before
//! them, in 4 bytes.

use tyr::{Error, Number, NumberType, OperationId, Relation, Scan, ScanPage, TransformKind};

use crate::answer::{bits_of, version_numbers};
use crate::failure::Failure;

/// Reads what Java has packed.
#[derive(Debug)]
pub struct Unpacking<'a>(pub &'a [u8]);

fn torn() -> Failure {
    Failure::Bug("what Java has packed ends too early".to_owned())
}

impl<'a> Unpacking<'a> {
    /// Whether nothing is left.
    pub fn is_end(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(torn)?;
        self.0 = rest;
        Ok(*first)
    }

    /// A number of 8 bytes.
    pub fn number(&mut self) -> Result<i64, Failure> {
        self.array().map(i64::from_be_bytes)
    }

    /// An offset or a length.
    pub fn count(&mut self) -> Result<u64, Failure> {
        self.number().and_then(count)
    }

    /// Bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Failure> {
        let len = self.array().map(u32::from_be_bytes)? as usize;
        let (first, rest) = self.0.split_at_checked(len).ok_or_else(torn)?;
        self.0 = rest;
        Ok(first)
    }

    /// A text.
    pub fn text(&mut self) -> Result<&'a str, Failure> {
        text(self.bytes()?)
    }

    /// The words of a call: name and value, until nothing is left.
    pub fn words(
        mut self,
        mut take: impl FnMut(&str, &str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        while !self.is_end() {
            let name = self.text()?;
            take(name, self.text()?)?;
        }
        Ok(())
    }
}

/// An offset or a length: Java has looked that it is not negative.
pub fn count(given: i64) -> Result<u64, Failure> {
    u64::try_from(given)
        .map_err(|_| Failure::invalid(format!("an offset or a length is 0 to 2^63-1, not {given}")))
}

/// Bytes as a text.
pub fn text(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|_| Failure::invalid("this text is not UTF-8"))
}

fn number(of: NumberType, bits: i64) -> Number {
    let float = f64::from_bits(bits as u64);
    match of {
        NumberType::I8 => Number::I8(bits as i8),
        NumberType::I16 => Number::I16(bits as i16),
        NumberType::I32 => Number::I32(bits as i32),
        NumberType::I64 => Number::I64(bits),
        NumberType::U8 => Number::U8(bits as u8),
        NumberType::U16 => Number::U16(bits as u16),
        NumberType::U32 => Number::U32(bits as u32),
        NumberType::U64 => Number::U64(bits as u64),
        NumberType::F32 => Number::F32(float as f32),
        NumberType::F64 => Number::F64(float),
    }
}

/// What is to be done, or compared, by its place among all, and with which number.
fn numbered<T: Copy>(all: &[T], packed: &[u8]) -> Result<(T, Number), Failure> {
    let mut packed = Unpacking(packed);
    let [kind, of] = packed.array()?;
    let kind = all.get(usize::from(kind)).ok_or_else(torn)?;
    let of = NumberType::ALL.get(usize::from(of)).ok_or_else(torn)?;
    Ok((*kind, number(*of, packed.number()?)))
}

/// A transform.
pub fn transform(packed: &[u8]) -> Result<tyr::Transform, Failure> {
    let (kind, operand) = numbered(&TransformKind::ALL, packed)?;
    Ok(tyr::Transform::new(kind, operand)?)
}

/// How a number is to stand to which other.
pub fn relation(packed: &[u8]) -> Result<(Relation, Number), Failure> {
    numbered(&Relation::ALL, packed)
}

/// What is to be listed.
pub fn scan(packed: &[u8]) -> Result<Scan, Failure> {
    let (mut packed, mut scan) = (Unpacking(packed), Scan::new());
    while !packed.is_end() {
        let name = packed.text()?;
        let value = packed.bytes()?;
        let number = || text(value)?.parse().map_err(|_| torn());
        scan = match name {
            "prefix" => scan.prefix(value),
            "from" => scan.from(value),
            "to" => scan.to(value),
            "after" => scan.after(value),
            "delimiter" => scan.delimiter(value),
            "limit" => scan.limit(usize::try_from(number()?).unwrap_or(usize::MAX)),
            "first_bytes" => scan.first_bytes(number()?),
            "keys_only" => scan.keys_only(),
            other => return Err(unknown("listing", other)),
        };
    }
    Ok(scan)
}

/// A word that nobody knows: the halves are of different releases.
pub fn unknown(what: &str, word: &str) -> Failure {
    Failure::Tyr(Error::invalid(format!(
        "a {what} has no word \"{word}\": the jar and its native library are of different releases"
    )))
}

/// Writes what Java unpacks.
#[derive(Debug, Default)]
pub struct Packing(pub Vec<u8>);

impl Packing {
    /// A number of 8 bytes.
    pub fn number(&mut self, number: i64) {
        self.0.extend(number.to_be_bytes());
    }

    /// Bytes, or none.
    pub fn optional(&mut self, bytes: Option<&[u8]>) {
        let len = bytes.map_or(-1, |bytes| bytes.len() as i32);
        self.0.extend(len.to_be_bytes());
        self.0.extend(bytes.unwrap_or_default());
    }

    /// Bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.optional(Some(bytes));
    }
}

/// A page of a listing.
pub fn page(page: &ScanPage) -> Vec<u8> {
    let mut packing = Packing::default();
    packing.optional(page.resume.as_deref());
    packing.number(page.groups.len() as i64);
    for group in &page.groups {
        packing.bytes(group);
    }
    packing.number(page.entries.len() as i64);
    for entry in &page.entries {
        packing.bytes(entry.key.as_bytes());
        packing.0.push(u8::from(entry.stat.is_some()));
        if let Some(stat) = entry.stat {
            packing.number(stat.size as i64);
            version_numbers(stat.version).into_iter().for_each(|it| packing.number(it));
        }
        packing.bytes(&entry.bytes);
    }
    packing.0
}

/// What a committed transaction answers, for these of its operations in order.
pub fn committed(committed: &tyr::Committed, operations: &[OperationId]) -> Vec<u8> {
    let mut packing = Packing::default();
    version_numbers(committed.version()).into_iter().for_each(|it| packing.number(it));
    for id in operations {
        let (kind, bits) = if let Some(offset) = committed.offset(*id) {
            (1, offset as i64)
        } else if let Some(value) = committed.value(*id) {
            (if value.number_type().is_float() { 3 } else { 2 }, bits_of(value))
        } else if let Some(existed) = committed.existed(*id) {
            (4, i64::from(existed))
        } else {
            (0, 0)
        };
        packing.0.push(kind);
        packing.number(bits);
    }
    packing.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_torn_is_told_and_read_no_further() {
        let mut packing = Packing::default();
        packing.number(7);
        packing.bytes(b"seven");
        let whole = packing.0;
        let read = |bytes: &[u8]| {
            let mut packed = Unpacking(bytes);
            let number = packed.number()?;
            Ok::<_, Failure>((number, packed.bytes()?.to_vec(), packed.is_end()))
        };
        assert_eq!(read(&whole).unwrap(), (7, b"seven".to_vec(), true));
        for len in 0..whole.len() {
            assert!(matches!(read(&whole[..len]), Err(Failure::Bug(_))), "{len}");
        }
        assert!(transform(&[99, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(relation(&[0, 99, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        let mut words = Packing::default();
        words.bytes(b"colour");
        words.bytes(b"red");
        assert!(scan(&words.0).unwrap_err().text().contains("no word \"colour\""));
    }

    #[test]
    fn a_number_of_every_type_is_what_it_was_after_a_trip_to_java() {
        for of in NumberType::ALL {
            for bits in [0_i64, 1, 100] {
                let bits = if of.is_float() { (bits as f64).to_bits() as i64 } else { bits };
                let there = number(of, bits);
                assert_eq!((there.number_type(), bits_of(there)), (of, bits));
            }
        }
    }
}
