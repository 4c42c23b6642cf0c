//! Commands that change bytes in place: `apply`, `cas`.

use clap::Args;
use serde_json::json;
use tyr::{Number, Transform};

use crate::commands::blob::BlobArguments;
use crate::data::{parse_bytes, parse_size, with_key};
use crate::failure::Outcome;
use crate::script::{parse_kind, parse_number};
use crate::session::{Access, Session};

/// `tyr apply`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints the new value. Numbers are little-endian; one that was never written is zero. Integers \
wrap, division by zero is refused. The blob is made if it is missing.

Examples:
  tyr apply counters visits 0 add u64 1
  tyr apply counters hottest 8 max f64 36.6")]
pub struct ApplyArguments {
    #[command(flatten)]
    blob: BlobArguments,
    /// Where the number lies in the blob
    #[arg(value_parser = parse_size)]
    offset: u64,
    /// add, sub, mul, div, min, max, and, or, xor, swap
    kind: String,
    /// i8 to i64, u8 to u64, f32, f64
    #[arg(value_name = "TYPE")]
    number_type: String,
    /// The operand
    #[arg(allow_hyphen_values = true)]
    value: String,
}

/// Does arithmetic in place.
pub fn apply(session: &mut Session, arguments: &ApplyArguments) -> Outcome {
    let operand = parse_number(&arguments.number_type, &arguments.value)?;
    let transform = Transform::new(parse_kind(&arguments.kind)?, operand)?;
    let key = arguments.blob.key()?;
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let value = keyspace.apply(&key, arguments.offset, transform)?;
    let fields = json!({
        "keyspace": keyspace.name(),
        "offset": arguments.offset,
        "type": value.number_type().name(),
        "value": number_json(value),
    });
    session.output.record(&with_key(&key, fields), &value.to_string())
}

/// The number in JSON; what JSON has no number for (NaN, infinities) as text.
pub fn number_json(number: Number) -> serde_json::Value {
    match number {
        Number::I8(x) => json!(x),
        Number::I16(x) => json!(x),
        Number::I32(x) => json!(x),
        Number::I64(x) => json!(x),
        Number::U8(x) => json!(x),
        Number::U16(x) => json!(x),
        Number::U32(x) => json!(x),
        Number::U64(x) => json!(x),
        Number::F32(x) if x.is_finite() => json!(x),
        Number::F64(x) if x.is_finite() => json!(x),
        Number::F32(_) | Number::F64(_) => json!(number.to_string()),
    }
}

/// `tyr cas`
#[derive(Args, Debug)]
#[command(after_help = "\
Fails with Conflict (exit code 5) when other bytes are there. DATA is text, hex:00ff or \
base64:AP8=.

Example:
  tyr cas locks build 0 free held")]
pub struct SwapArguments {
    #[command(flatten)]
    blob: BlobArguments,
    /// Where the first byte is
    #[arg(value_parser = parse_size)]
    offset: u64,
    /// What must be there
    #[arg(value_name = "EXPECTED")]
    expected: String,
    /// What replaces it
    #[arg(value_name = "NEW")]
    new: String,
}

/// Replaces bytes if they are what is expected.
pub fn compare_and_swap(session: &mut Session, arguments: &SwapArguments) -> Outcome {
    let expected = parse_bytes(&arguments.expected)?;
    let new = parse_bytes(&arguments.new)?;
    let key = arguments.blob.key()?;
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    keyspace.compare_and_swap(&key, arguments.offset, expected, new)?;
    let fields = json!({"keyspace": keyspace.name(), "offset": arguments.offset});
    session.output.record(&with_key(&key, fields), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_become_text() {
        assert_eq!(number_json(Number::U64(u64::MAX)).to_string(), "18446744073709551615");
        assert_eq!(number_json(Number::I64(i64::MIN)).to_string(), "-9223372036854775808");
        assert_eq!(number_json(Number::F64(0.5)).to_string(), "0.5");
        assert_eq!(number_json(Number::F32(f32::NAN)).to_string(), "\"NaN\"");
    }
}
