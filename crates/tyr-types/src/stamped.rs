//! Bytes with places that the commit timestamp fills.

use bytes::{Bytes, BytesMut};

use crate::error::{Error, Result};
use crate::limits;
use crate::timestamp::Timestamp;

/// Bytes of a write, append or put, of which some places are filled with the timestamp of the
/// transaction when it commits (C10), as [`Timestamp::to_stamp`] has it: 16 bytes that sort as the
/// timestamps do. It is the version that [`Stat`](crate::Stat) and reads tell. Logs merge by it.
///
/// Until then they are zeros: a transaction that reads what it wrote itself sees zeros there.
///
/// ```
/// use tyr_types::{Stamped, Timestamp};
///
/// let entry = Stamped::new([&[0; 16][..], b"text"].concat(), [0])?;
/// let at = Timestamp { clock: 7, ..Timestamp::ZERO };
/// let stored = entry.filled(at);
/// assert_eq!(Timestamp::from_stamp(stored[..16].try_into().unwrap()), Some(at));
/// assert_eq!(&stored[16..], b"text");
/// # Ok::<(), tyr_types::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// With zeros at the places.
    bytes: Bytes,
    /// Where stamps begin: ascending, at least a stamp apart, the last a stamp before the end.
    places: Box<[u32]>,
}

impl Stamped {
    /// `bytes` with stamps at `places`: where each begins, in bytes from the start of `bytes`, in
    /// any order. What `bytes` has there does not count.
    ///
    /// # Errors
    /// `InvalidArgument` unless there are 1 to [`limits::STAMPS_MAX`] places that do not overlap
    /// and whose [`limits::STAMP_LEN`] bytes each are within `bytes`; and where `bytes` are more
    /// than a transaction carries by value ([`limits::TRANSACTION_INLINE_MAX`]).
    pub fn new(bytes: impl Into<Bytes>, places: impl IntoIterator<Item = usize>) -> Result<Self> {
        let bytes = bytes.into();
        check_len(bytes.len())?;
        let mut sorted: Vec<usize> = places.into_iter().take(limits::STAMPS_MAX + 1).collect();
        sorted.sort_unstable();
        check_places(&sorted, bytes.len())?;
        let mut zeroed = BytesMut::from(bytes);
        for place in &sorted {
            zeroed[*place..*place + limits::STAMP_LEN].fill(0);
        }
        let places = sorted.iter().map(|place| *place as u32).collect();
        Ok(Self { bytes: zeroed.freeze(), places })
    }

    /// What another process had of one, which has zeros at its places.
    ///
    /// # Errors
    /// As [`Stamped::new`]; `InvalidArgument` where places do not ascend, or have no zeros.
    pub fn from_parts(bytes: Bytes, places: &[u32]) -> Result<Self> {
        check_len(bytes.len())?;
        let wide: Vec<usize> = places.iter().map(|place| *place as usize).collect();
        check_places(&wide, bytes.len())?;
        let stamps = wide.iter().map(|place| &bytes[*place..*place + limits::STAMP_LEN]);
        if stamps.flatten().any(|byte| *byte != 0) {
            return Err(Error::invalid("the place of a stamp is not zero before it is filled"));
        }
        Ok(Self { bytes, places: places.into() })
    }

    /// The bytes, with zeros at the places of stamps.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where stamps begin, ascending.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// The bytes as they are stored of a transaction that committed at `at`.
    pub fn filled(&self, at: Timestamp) -> Bytes {
        let mut filled = BytesMut::from(&self.bytes[..]);
        for place in &self.places {
            let place = *place as usize;
            filled[place..place + limits::STAMP_LEN].copy_from_slice(&at.to_stamp());
        }
        filled.freeze()
    }
}

/// What a user gives to be written: bytes, or [`Stamped`] ones. Made of either by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// As they are.
    Bytes(Bytes),
    /// With places that the commit timestamp fills.
    Stamped(Stamped),
}

impl<T: Into<Bytes>> From<T> for Data {
    fn from(bytes: T) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<Stamped> for Data {
    fn from(stamped: Stamped) -> Self {
        Self::Stamped(stamped)
    }
}

impl Data {
    /// How many bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Stamped(stamped) => stamped.bytes().len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn check_len(len: usize) -> Result<()> {
    if len > limits::TRANSACTION_INLINE_MAX {
        return Err(Error::invalid(format!(
            "bytes with stamps are at most {} (16 MiB), these are {len}; write what has no stamps \
             in operations of its own",
            limits::TRANSACTION_INLINE_MAX
        )));
    }
    Ok(())
}

/// Checks places in ascending order.
fn check_places(places: &[usize], len: usize) -> Result<()> {
    let (stamp, max) = (limits::STAMP_LEN, limits::STAMPS_MAX);
    if places.is_empty() || places.len() > max {
        let count = if places.is_empty() { "none" } else { "more" };
        return Err(Error::invalid(format!("bytes have 1 to {max} stamps, these have {count}")));
    }
    if let Some(pair) = places.windows(2).find(|pair| pair[1] < pair[0].saturating_add(stamp)) {
        return Err(Error::invalid(format!(
            "stamps are {stamp} bytes each and do not overlap, these begin at {} and {}",
            pair[0], pair[1]
        )));
    }
    match places.last() {
        Some(last) if last.checked_add(stamp).is_none_or(|end| end > len) => {
            Err(Error::invalid(format!(
                "a stamp is {stamp} bytes within the payload, this one begins at {last} of {len}"
            )))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::Epoch;

    const AT: Timestamp = Timestamp { epoch: Epoch(2), clock: 3, node: 4 };

    #[test]
    fn stamps_are_filled_with_when_it_committed_and_nothing_else_changes() {
        let stamped = Stamped::new(vec![7; 40], [23, 1]).unwrap();
        assert_eq!(stamped.places(), [1, 23]);
        let filled = stamped.filled(AT);
        let stamp = [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, 0, 0];
        let expected = [&[7][..], &stamp, &[7; 6], &stamp, &[7]].concat();
        assert_eq!(filled, expected);
        assert_eq!(Stamped::from_parts(stamped.bytes().clone(), &[1, 23]).unwrap(), stamped);
    }

    #[test]
    fn places_out_of_range_are_refused_with_what_is_wrong() {
        let refused = |len, places: &[usize]| {
            let error = Stamped::new(vec![0; len], places.iter().copied()).unwrap_err();
            error.message().to_owned()
        };
        assert!(refused(16, &[]).contains("these have none"));
        assert!(refused(4_096, &[0; 17]).contains("1 to 16 stamps, these have more"));
        assert!(refused(64, &[0, 15]).contains("these begin at 0 and 15"));
        assert!(refused(16, &[1]).contains("begins at 1 of 16"));
        assert!(refused(16, &[usize::MAX]).contains("of 16"));
        assert!(refused(limits::TRANSACTION_INLINE_MAX + 1, &[0]).contains("at most"));
        for (bytes, places) in [(vec![1; 16], &[0][..]), (vec![0; 40], &[20, 0])] {
            Stamped::from_parts(Bytes::from(bytes), places).unwrap_err();
        }
    }
}
