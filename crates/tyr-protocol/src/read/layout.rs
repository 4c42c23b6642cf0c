//! How the stretches of a chunk travel: in the bytes of the answer to a read of [`Kind::Layout`].
//!
//! For each, how many bytes lie before it that are not written, and how many are: numbers of seven
//! bits a byte, low bits first, the high bit set on all bytes but the last.
//!
//! [`Kind::Layout`]: super::Kind::Layout

use tyr_types::{ByteRange, Bytes, limits};

/// What is told of stretches of `range`, which are in order.
pub fn encode(range: ByteRange, written: &[ByteRange]) -> Bytes {
    debug_assert!(written.len() <= limits::STRETCHES_MAX, "more are refused");
    let (mut bytes, mut end) = (Vec::new(), range.start);
    for stretch in written {
        debug_assert!(end <= stretch.start && stretch.end <= range.end, "{stretch:?} of {range:?}");
        put(&mut bytes, stretch.start - end);
        put(&mut bytes, stretch.len());
        end = stretch.end;
    }
    bytes.into()
}

/// The stretches of `range` that were told; `None` when these bytes tell none. Total.
pub fn decode(range: ByteRange, bytes: &[u8]) -> Option<Vec<ByteRange>> {
    let (mut written, mut end, mut rest) = (Vec::new(), range.start, bytes);
    while !rest.is_empty() {
        let start = end.checked_add(take(&mut rest)?)?;
        end = start.checked_add(take(&mut rest)?)?;
        if start == end || end > range.end || written.len() == limits::STRETCHES_MAX {
            return None;
        }
        written.push(ByteRange { start, end });
    }
    Some(written)
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        let bits = u64::from(byte & 0x7F);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange { start, end }
    }

    #[test]
    fn what_is_told_comes_back_and_no_bytes_tell_what_cannot_be() {
        let whole = range(1_000, 1 << 40);
        let written = [range(1_000, 1_001), range(5_000, 70_000), range(70_000, 1 << 40)];
        let bytes = encode(whole, &written);
        assert_eq!(decode(whole, &bytes).unwrap(), written);
        assert_eq!(decode(whole, &[]).unwrap(), []);
        for end in 1..bytes.len() {
            let cut = decode(whole, &bytes[..end]);
            assert!(cut.is_none_or(|cut| cut.len() < written.len()));
        }
        assert_eq!(decode(range(1_000, 60_000), &bytes), None, "beyond the end");
        assert_eq!(decode(whole, &[0, 0]), None, "of no byte");
        assert_eq!(decode(range(0, u64::MAX), &[0xFF; 30]), None);
        let many = [0, 1].repeat(limits::STRETCHES_MAX + 1);
        assert_eq!(decode(whole, &many), None);
    }
}
