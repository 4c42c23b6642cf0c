//! What can be written to bytes and read back, and how the plain things are.
//!
//! One value has one encoding, and decoding takes no other: so what was decoded encodes to the
//! same bytes, which the fuzzer checks. Structs are their fields in order, enums a tag and the
//! fields of the variant; the two macros here say both directions in one line, and name every
//! field and variant, so that a new one does not compile before it has a place on the wire.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::{Array, SmallVec};
use tyr_types::Bytes;

use super::input::{Input, Malformed};
use super::output::Output;

/// A value with one encoding.
pub(crate) trait Encoded: Sized {
    /// No encoding is shorter, in bytes; at least 1. A count that announces more of them than fit
    /// into what is left is refused before anything is reserved for them.
    const LEN_MIN: usize;

    /// Adds the value to what goes out.
    fn encode<'a>(&'a self, output: &mut Output<'a>);

    /// The value that comes next.
    ///
    /// # Errors
    /// When the bytes are not one, with the place.
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed>;
}

/// A struct is its fields in the order named here; none takes less than the length given. Fields
/// that a later level brought come after the others, with what they are where they are missing.
macro_rules! encoded_struct {
    ($name:path, $len_min:literal, { $($field:ident),* $(,)? }
        $(+ $level:literal { $($new:ident: $missing:expr),* $(,)? })?
    ) => {
        impl $crate::wire::encoded::Encoded for $name {
            const LEN_MIN: usize = $len_min;

            #[inline]
            fn encode<'a>(&'a self, output: &mut $crate::wire::output::Output<'a>) {
                let before = output.len();
                let Self { $($field,)* $($($new,)*)? } = self;
                $($crate::wire::encoded::Encoded::encode($field, output);)*
                debug_assert!(output.len() - before >= $len_min, stringify!($name));
                $(
                    output.needs($level);
                    $($crate::wire::encoded::Encoded::encode($new, output);)*
                )?
            }

            #[inline]
            fn decode(
                input: &mut $crate::wire::input::Input<'_>,
            ) -> Result<Self, $crate::wire::input::Malformed> {
                Ok(Self {
                    $($field: $crate::wire::encoded::Encoded::decode(input)?,)*
                    $($($new: match input.has($level) {
                        true => $crate::wire::encoded::Encoded::decode(input)?,
                        false => $missing,
                    },)*)?
                })
            }
        }
    };
}
pub(crate) use encoded_struct;

/// An enum is one byte that tells the variant, and then its fields in the order named here. A
/// variant that a later level brought has the level beside its tag; fields that one brought come
/// after the others, with what they are where they are missing.
macro_rules! encoded_enum {
    ($name:path, $what:literal, {
        $($tag:literal $(@ $from:literal)? => $variant:ident
            $(( $($item:ident),* ))?
            $({ $($field:ident),* $(,)? }
                $(+ $level:literal { $($new:ident: $missing:expr),* $(,)? })?
            )?
        ),* $(,)?
    }) => {
        impl $crate::wire::encoded::Encoded for $name {
            const LEN_MIN: usize = 1;

            #[inline]
            fn encode<'a>(&'a self, output: &mut $crate::wire::output::Output<'a>) {
                match self {
                    $(Self::$variant
                        $(( $($item),* ))?
                        $({ $($field,)* $($($new,)*)? })?
                    => {
                        output.byte($tag);
                        $(output.needs($from);)?
                        $($($crate::wire::encoded::Encoded::encode($item, output);)*)?
                        $(
                            $($crate::wire::encoded::Encoded::encode($field, output);)*
                            $(
                                output.needs($level);
                                $($crate::wire::encoded::Encoded::encode($new, output);)*
                            )?
                        )?
                    })*
                }
            }

            #[inline]
            fn decode(
                input: &mut $crate::wire::input::Input<'_>,
            ) -> Result<Self, $crate::wire::input::Malformed> {
                Ok(match input.byte()? {
                    $($tag => {
                        $(input.needs($from)?;)?
                        Self::$variant
                        $(( $({
                            let $item = $crate::wire::encoded::Encoded::decode(input)?;
                            $item
                        }),* ))?
                        $({
                            $($field: $crate::wire::encoded::Encoded::decode(input)?,)*
                            $($($new: match input.has($level) {
                                true => $crate::wire::encoded::Encoded::decode(input)?,
                                false => $missing,
                            },)*)?
                        })?
                    })*
                    _ => return Err(input.unknown_last(concat!("an unknown ", $what))),
                })
            }
        }
    };
}
pub(crate) use encoded_enum;

impl Encoded for u64 {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(*self);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.varint()
    }
}

impl Encoded for u32 {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(u64::from(*self));
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let value = input.varint()?;
        Self::try_from(value).map_err(|_| input.malformed("the number before takes over 32 bits"))
    }
}

impl Encoded for u16 {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(u64::from(*self));
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let value = input.varint()?;
        Self::try_from(value).map_err(|_| input.malformed("the number before takes over 16 bits"))
    }
}

impl Encoded for u8 {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.byte(*self);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        input.byte()
    }
}

impl Encoded for bool {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.byte(u8::from(*self));
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        match input.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(input.malformed_last("a truth value that is neither 0 nor 1")),
        }
    }
}

impl Encoded for String {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(self.len() as u64);
        output.raw(self.as_bytes());
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let len = input.count(1)?;
        let bytes = input.take(len)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(input.malformed("the text before is not UTF-8")),
        }
    }
}

impl Encoded for Bytes {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(self.len() as u64);
        output.payload(self);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let len = input.count(1)?;
        input.payload(len)
    }
}

impl<T: Encoded> Encoded for Arc<T> {
    const LEN_MIN: usize = T::LEN_MIN;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        T::encode(self, output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        T::decode(input).map(Self::new)
    }
}

impl<T: Encoded> Encoded for Option<T> {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        match self {
            None => output.byte(0),
            Some(value) => {
                output.byte(1);
                value.encode(output);
            }
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        match input.byte()? {
            0 => Ok(None),
            1 => T::decode(input).map(Some),
            _ => Err(input.malformed_last("neither something nor nothing: not 0 or 1")),
        }
    }
}

impl<T: Encoded> Encoded for Vec<T> {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        encode_list(self, output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        const { assert!(T::LEN_MIN > 0, "a count of what takes nothing has no bound") };
        let count = input.count(T::LEN_MIN)?;
        let mut list = Self::with_capacity(count);
        for _ in 0..count {
            list.push(T::decode(input)?);
        }
        Ok(list)
    }
}

impl<A: Array<Item: Encoded>> Encoded for SmallVec<A> {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        encode_list(self, output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        const { assert!(A::Item::LEN_MIN > 0, "a count of what takes nothing has no bound") };
        let count = input.count(A::Item::LEN_MIN)?;
        let mut list = Self::with_capacity(count);
        for _ in 0..count {
            list.push(Encoded::decode(input)?);
        }
        Ok(list)
    }
}

/// Adds a list: how many, and each.
pub(crate) fn encode_list<'a, T: Encoded>(list: &'a [T], output: &mut Output<'a>) {
    output.varint(list.len() as u64);
    for item in list {
        let before = output.len();
        item.encode(output);
        // A list of shorter ones would be refused where it is read, for what it announces.
        debug_assert!(output.len() - before >= T::LEN_MIN, "no item is shorter than it says");
    }
}

impl<K: Encoded + Ord, V: Encoded> Encoded for BTreeMap<K, V> {
    const LEN_MIN: usize = 1;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        output.varint(self.len() as u64);
        for (key, value) in self {
            key.encode(output);
            value.encode(output);
        }
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        const { assert!(K::LEN_MIN + V::LEN_MIN > 0, "a count of nothing has no bound") };
        let count = input.count(K::LEN_MIN + V::LEN_MIN)?;
        let mut map = Self::new();
        for _ in 0..count {
            let key = K::decode(input)?;
            if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(input.malformed("the key before is not above the one before it"));
            }
            let value = V::decode(input)?;
            map.insert(key, value);
        }
        Ok(map)
    }
}

impl<A: Encoded, B: Encoded> Encoded for (A, B) {
    const LEN_MIN: usize = A::LEN_MIN + B::LEN_MIN;

    #[inline]
    fn encode<'a>(&'a self, output: &mut Output<'a>) {
        self.0.encode(output);
        self.1.encode(output);
    }

    #[inline]
    fn decode(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok((A::decode(input)?, B::decode(input)?))
    }
}
