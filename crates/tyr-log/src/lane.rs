//! Reading one partition forward: which bytes are wanted, and what came of them.
//!
//! Head and frames of a segment are read at one moment. So what is behind the frames is known: if
//! the head says that the segment was open, there was nothing more in the partition at that
//! moment, and whatever comes has a later stamp; if it says that it was closed, the partition goes
//! on in the next one. A lane does no reading itself: many are read at one moment.

use std::collections::VecDeque;

use tyr::{ByteRange, Bytes, Key, Keyspace, ReadRequest, Result, Timestamp};

use crate::entry::Entry;
use crate::frame::{Found, Frame};
use crate::layout;
use crate::name::Name;
use crate::position::Position;
use crate::segment::{Closed, HEAD_LEN, Head, guard};

/// The most bytes of a partition that are asked for at once, but for a longer frame, unless it is
/// told otherwise.
const WINDOW_MAX: u64 = 1 << 20;

/// A reader's place in one partition.
#[derive(Debug)]
pub struct Lane {
    /// Where the next bytes are to be read; the index is that of the first entry wanted.
    at: Position,
    /// Frames that were read: where each is, and the next of its entries.
    pending: VecDeque<(Position, Frame)>,
    window: u64,
    window_max: u64,
    is_ended: bool,
    /// Whether there was no more when it was read last.
    is_at_end: bool,
}

/// What came of reading a lane at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// There was no more in the partition at that moment.
    End,
    /// There may be more.
    More,
    /// There is no such segment.
    NoSegment,
    /// What is there is no entry's begin.
    NoEntry,
}

impl Lane {
    /// At this position, where an entry begins or will; `window` bytes are asked for at first.
    pub fn new(at: Position, window: u64) -> Self {
        Self {
            at,
            pending: VecDeque::new(),
            window: window.min(WINDOW_MAX),
            window_max: WINDOW_MAX,
            is_ended: false,
            is_at_end: false,
        }
    }

    /// The same, but asking for at most `window_max` bytes at once.
    pub fn with_window_max(mut self, window_max: u64) -> Self {
        self.window_max = window_max;
        self
    }

    /// Where the next entry is, or will be.
    pub fn position(&self) -> Position {
        self.pending.front().map_or(self.at, |(position, _)| *position)
    }

    /// Where nothing was read yet.
    pub fn unread(&self) -> Position {
        self.at
    }

    /// Whether nothing that was read is left, and more may come.
    pub fn is_wanting(&self) -> bool {
        self.pending.is_empty() && !self.is_ended
    }

    /// Whether the partition takes no more entries, and all were read.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether there was no more in the partition when it was read last.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// The stamp of the next entry that was read.
    pub fn next_stamp(&self) -> Option<Timestamp> {
        self.pending.front().map(|(_, frame)| frame.stamp)
    }

    /// The stamp of the last entry that was read and is left.
    pub fn last_stamp(&self) -> Option<Timestamp> {
        self.pending.back().map(|(_, frame)| frame.stamp)
    }

    /// What is to be read for it, at one moment.
    pub fn requests(&self, log: &Name, keyspace: &Keyspace) -> Result<[ReadRequest; 2]> {
        let key = layout::segment_key(log, self.at.partition, self.at.segment)?;
        let part = |key: Key, range| ReadRequest { keyspace: keyspace.clone(), key, range };
        let head = part(key.clone(), ByteRange { start: 0, end: HEAD_LEN });
        Ok([head, part(key, ByteRange::at(self.at.offset, self.window)?)])
    }

    /// Takes what was read for [`Lane::requests`].
    ///
    /// # Errors
    /// `Corrupt` when that is no segment; `Unavailable` for a later format.
    pub fn take(
        &mut self,
        log: &Name,
        head: Option<Bytes>,
        frames: Option<Bytes>,
    ) -> Result<Reached> {
        let reached = self.take_read(log, head, frames)?;
        self.is_at_end = reached == Reached::End;
        Ok(reached)
    }

    fn take_read(
        &mut self,
        log: &Name,
        head: Option<Bytes>,
        frames: Option<Bytes>,
    ) -> Result<Reached> {
        let (Some(head), Some(mut bytes)) = (head, frames) else { return Ok(Reached::NoSegment) };
        let Position { partition, segment, .. } = self.at;
        let head = Head::read(&head, log, partition, segment)?;
        let guard = guard(log, partition, segment);
        let is_all = (bytes.len() as u64) < self.window;
        let mut needed = None;
        while !bytes.is_empty() {
            match Frame::read(&bytes, guard)? {
                Found::Frame(frame) if self.at.index < frame.count() => {
                    let _ = bytes.split_to(frame.len() as usize);
                    let behind = self.at.offset + frame.len();
                    self.pending.push_back((self.at, frame));
                    self.at = Position { offset: behind, index: 0, ..self.at };
                }
                Found::Part(len) if !is_all => {
                    needed = Some(len as u64);
                    break;
                }
                Found::Frame(_) | Found::Part(_) | Found::Nothing => return Ok(Reached::NoEntry),
            }
        }
        self.window = needed.unwrap_or_default().max(match is_all {
            true => self.window,
            false => (2 * self.window).min(self.window_max),
        });
        if !is_all {
            return Ok(Reached::More);
        }
        match head.closed {
            // An index without its entry is no place where one will be.
            _ if self.at.index > 0 => Ok(Reached::NoEntry),
            Closed::No => Ok(Reached::End),
            Closed::Sealed => {
                self.is_ended = true;
                Ok(Reached::End)
            }
            Closed::Rolled => {
                self.at = Position { segment: segment + 1, offset: HEAD_LEN, ..self.at };
                Ok(Reached::More)
            }
        }
    }

    /// The next entry that was read.
    pub fn pop(&mut self) -> Option<Entry> {
        let (position, frame) = self.pending.front_mut()?;
        let (at, stamp, data) = (*position, frame.stamp, frame.entry(position.index));
        position.index += 1;
        if position.index == frame.count() {
            self.pending.pop_front();
        }
        Some(Entry { position: at, stamp, number: None, data })
    }
}
