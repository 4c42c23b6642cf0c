//! The last entries: segments are read forward, from ever earlier ones on.

use std::collections::VecDeque;

use tyr::{Result, Timestamp};

use crate::entry::Entry;
use crate::log::Log;
use crate::position::{Cut, Position};
use crate::reader::Reader;
use crate::segment::HEAD_LEN;

/// Entries read at a time.
const STEP: usize = 1_024;

impl Log {
    /// The last `count` entries, or all that there are, in the order of [`Log::reader`], and where
    /// what follows is. They have no numbers.
    ///
    /// # Errors
    /// As [`Log::reader`].
    pub async fn last(&self, count: usize) -> Result<(Vec<Entry>, Cut)> {
        let mut back: u64 = 0;
        loop {
            let (oldest, tail) = (self.oldest().await?, self.tail().await?);
            let begin = |(mark, end): (&Position, &Position)| {
                let segment = end.segment.saturating_sub(back);
                (*mark).max(Position { segment, offset: HEAD_LEN, index: 0, ..*mark })
            };
            let lanes = oldest.positions().iter().zip(tail.positions());
            let from: Vec<Position> = lanes.map(begin).collect();
            let is_all = from == oldest.positions();
            let (entries, next) = self.last_from(count, Cut::new(from, None)?, &oldest).await?;
            if entries.len() >= count || is_all {
                return Ok((entries, next));
            }
            back = (4 * back).max(1);
        }
    }

    /// The last of what is behind a cut, without what entries before the cut may lie among.
    async fn last_from(&self, count: usize, from: Cut, oldest: &Cut) -> Result<(Vec<Entry>, Cut)> {
        let mut begins: Vec<Option<Timestamp>> = from
            .positions()
            .iter()
            .zip(oldest.positions())
            .map(|(at, mark)| (at == mark).then_some(Timestamp::ZERO))
            .collect();
        let mut reader = Reader::new(self, &from, 0);
        let mut entries = VecDeque::new();
        loop {
            let more = reader.next(STEP).await?;
            if more.is_empty() {
                break;
            }
            for entry in more {
                begins[usize::from(entry.position.partition)].get_or_insert(entry.stamp);
                if entries.len() == count {
                    entries.pop_front();
                }
                entries.extend((count > 0).then_some(entry));
            }
        }
        // Of a partition with nothing behind the cut all may be before it.
        let all_from = begins.iter().map(|begin| begin.unwrap_or(Timestamp::MAX)).max();
        let is_whole = |entry: &Entry| Some(entry.stamp) >= all_from;
        let entries = entries.into_iter().filter(is_whole).collect();
        Ok((entries, reader.cut()))
    }
}
