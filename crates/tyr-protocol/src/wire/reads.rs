//! The bytes of what a transaction hands in to be validated: reads (C1) and listings (Q3).

use tyr_types::{KeyRange, Listed, ReadCheck};

use super::encoded::Encoded;
use super::input::{Input, Malformed};
use super::output::Output;
use crate::level::LEVEL_LISTING;

/// What a read is of, as a byte: what came before there were listings is a truth value.
const READ_BYTES: u8 = 0;
const READ_ATTRIBUTES: u8 = 1;
const READ_LISTED: u8 = 2;
const READ_LISTED_KEYS: u8 = 3;

impl Encoded for ReadCheck {
    const LEN_MIN: usize = 18;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        let Self { blob, range, is_attributes, at, listed } = self;
        blob.encode(output);
        range.encode(output);
        let kind = match listed {
            None if *is_attributes => READ_ATTRIBUTES,
            None => READ_BYTES,
            Some(listed) if listed.is_keys_only => READ_LISTED_KEYS,
            Some(_) => READ_LISTED,
        };
        output.byte(kind);
        at.encode(output);
        if let Some(listed) = listed {
            let Listed { keys, is_keys_only: _ } = &**listed;
            debug_assert!(*is_attributes, "a listing is of what there is");
            output.needs(LEVEL_LISTING);
            keys.start.encode(output);
            keys.end.encode(output);
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let (blob, range) = (Encoded::decode(input)?, Encoded::decode(input)?);
        let kind = input.byte()?;
        match kind {
            READ_BYTES | READ_ATTRIBUTES => {}
            READ_LISTED | READ_LISTED_KEYS => input.needs(LEVEL_LISTING)?,
            _ => return Err(input.unknown_last("an unknown kind of read")),
        }
        let at = Encoded::decode(input)?;
        let listed = match kind < READ_LISTED {
            true => None,
            false => {
                let (start, end) = (Encoded::decode(input)?, Encoded::decode(input)?);
                let is_keys_only = kind == READ_LISTED_KEYS;
                Some(Box::new(Listed { keys: KeyRange { start, end }, is_keys_only }))
            }
        };
        Ok(Self { blob, range, is_attributes: kind != READ_BYTES, at, listed })
    }
}
