//! Where entries lie: a position is an address in one partition, a cut has one for each.
//!
//! An address is never an order over partitions: that is the stamp's affair.

use std::fmt;
use std::str::FromStr;

use tyr::{Error, Result};

/// Where an entry lies, or would. In one partition positions are in the order of entries.
///
/// As text `PARTITION:SEGMENT:OFFSET`, with `+INDEX` for an entry of a batch that is not the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The partition, from 0.
    pub partition: u16,
    /// The segment in its row, from 0.
    pub segment: u64,
    /// Bytes from the segment's begin to the frame.
    pub offset: u64,
    /// The entry in the frame, from 0.
    pub index: u32,
}

/// One position in each partition: everything before it, and nothing behind. Of a log with one
/// partition a position is a cut.
///
/// As text its positions with commas between them, and `#NUMBER` if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    positions: Vec<Position>,
    number: Option<u64>,
}

impl Cut {
    /// Of one position in each partition, in the order of partitions; with how many entries there
    /// are before it in a strict log, if that is known.
    ///
    /// # Errors
    /// `InvalidArgument` when there are none, or they are not in the order of partitions.
    pub fn new(positions: Vec<Position>, number: Option<u64>) -> Result<Self> {
        let is_each = positions.iter().zip(0..).all(|(position, n)| position.partition == n);
        if positions.is_empty() || !is_each {
            return Err(Error::invalid(
                "a cut has one position for each partition, beginning with 0, in their order",
            ));
        }
        Ok(Self { positions, number })
    }

    /// The positions, in the order of partitions.
    pub fn positions(&self) -> &[Position] {
        &self.positions
    }

    /// Of a strict log: the number of the first entry behind it, if that is known.
    pub fn number(&self) -> Option<u64> {
        self.number
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { partition, segment, offset, index } = self;
        write!(f, "{partition}:{segment}:{offset}")?;
        if *index > 0 { write!(f, "+{index}") } else { Ok(()) }
    }
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (place, index) = match text.split_once('+') {
                Some((place, index)) => (place, index.parse().ok()?),
                None => (text, 0),
            };
            let mut parts = place.split(':');
            let partition = parts.next()?.parse().ok()?;
            let segment = parts.next()?.parse().ok()?;
            let offset = parts.next()?.parse().ok()?;
            parts.next().is_none().then_some(Self { partition, segment, offset, index })
        };
        parse().ok_or_else(|| {
            Error::invalid(format!(
                "\"{}\" is no position: give PARTITION:SEGMENT:OFFSET as `read` and `append` tell \
                 it, like 0:3:4096, and +INDEX for an entry within a batch",
                text.escape_debug()
            ))
        })
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, n) in self.positions.iter().zip(0..) {
            write!(f, "{}{position}", if n == 0 { "" } else { "," })?;
        }
        self.number.map_or(Ok(()), |number| write!(f, "#{number}"))
    }
}

impl FromStr for Cut {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (positions, number) = match text.split_once('#') {
            Some((positions, number)) => {
                let number = number.parse().map_err(|_| {
                    Error::invalid(format!(
                        "\"{}\" is no number of an entry",
                        number.escape_debug()
                    ))
                })?;
                (positions, Some(number))
            }
            None => (text, None),
        };
        Self::new(positions.split(',').map(str::parse).collect::<Result<_>>()?, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_cuts_read_back_as_they_are_written() {
        for text in ["0:3:4096", "7:18446744073709551615:64+12"] {
            assert_eq!(text.parse::<Position>().unwrap().to_string(), text);
        }
        for text in ["0:3:4096", "0:0:64,1:2:64+3", "0:0:64,1:2:64#0", "0:1:64#99"] {
            assert_eq!(text.parse::<Cut>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_position_is_refused_with_how_one_looks() {
        for bad in ["", "1", "1:2", "1:2:3:4", "1:2:3+", "a:2:3", "65536:0:0", "-1:2:3"] {
            let error = bad.parse::<Position>().unwrap_err();
            assert!(error.message().contains("PARTITION:SEGMENT:OFFSET"), "{error}");
        }
        for bad in ["", "1:0:64", "0:0:64,0:0:64", "0:0:64#x"] {
            assert!(bad.parse::<Cut>().is_err(), "{bad}");
        }
    }

    #[test]
    fn in_a_partition_they_are_in_the_order_of_entries() {
        let ascending = ["0:0:64", "0:0:64+1", "0:0:200", "0:1:64", "0:10:64"];
        let positions: Vec<Position> = ascending.iter().map(|it| it.parse().unwrap()).collect();
        assert!(positions.is_sorted());
    }
}
