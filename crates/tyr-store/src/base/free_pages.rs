//! Pages that nothing shows any more: they are written again, and what is more than folds need of
//! them is given back.
//!
//! A batch notes the pages that it lets go of, in lists, each an entry of the index. Until the
//! index is synced a loss of power may take the batch back, and the pages be shown again. From then
//! on they are *free*: a later batch may have its pages there. It takes the list away, or what it
//! needs of it, so a loss of power that takes that batch brings the list back with it.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use parking_lot::Mutex;
use tyr_types::{Error, Result};

use super::fold::put_page_files;
use super::{Base, key, record};
use crate::index::{Index, IndexBatch, Table};
use crate::pages::{PAGE_LEN, PageRun, PageSpan};

/// What must be free for small pieces to go to pages: as much as a fold brings. Below that they go
/// to the index, for which space is kept.
const PAGE_ROOM_MIN: u64 = 128 << 20;

/// Stretches of pages in a list at most: one of which a batch needs a part is written again.
const LIST_SPANS_MAX: usize = 256;

/// Stretches that are given back in one step: some milliseconds.
const GIVEN_SPANS_MAX: usize = 64;

/// A checkpoint takes folds to need this part less than before, if they did not need as much.
const NEED_SHRINKS_BY: u64 = 8;

/// The key of a list in the index, in the order of the batches.
type ListKey = Vec<u8>;

/// How many pages there are in lists.
type Lists = BTreeMap<ListKey, u32>;

/// The lists of pages that nothing shows.
#[derive(Default)]
pub(super) struct FreePages(Mutex<State>);

#[derive(Default)]
struct State {
    /// Of batches that a loss of power may still take back.
    dead: Lists,
    /// Of others, but for those that are in somebody's hands.
    free: Lists,
    /// Those that the batch under way has taken, the last one in part.
    taken: Vec<(ListKey, u32)>,
    /// What is left of the last one.
    rest: VecDeque<PageSpan>,
    /// What was taken and lies in files that were lost.
    lost: Vec<PageSpan>,
    /// Pages written since the last checkpoint.
    written: u64,
    /// Pages that folds are taken to need until the next one.
    needed: u64,
}

impl FreePages {
    /// What the index has; nothing of it is free before the index is synced.
    pub fn load(index: &dyn Index) -> Result<Self> {
        let mut dead = Lists::new();
        let mut visit = |key: &[u8], value: &Bytes| {
            dead.insert(key.to_vec(), count(&decode(key, value)?));
            Ok(true)
        };
        let end = key::behind(key::DEAD_PAGES);
        index.scan(Table::Meta, key::DEAD_PAGES, end.as_deref(), &mut visit)?;
        Ok(Self(Mutex::new(State { dead, ..State::default() })))
    }

    /// The index is synced, with all that was committed.
    pub fn settle(&self) {
        let State { dead, free, .. } = &mut *self.0.lock();
        free.append(dead);
    }

    /// There is a checkpoint: what was written since the last one is what folds need.
    pub fn note_checkpoint(&self) {
        let mut state = self.0.lock();
        let less = state.needed - state.needed.div_ceil(NEED_SHRINKS_BY);
        state.needed = std::mem::take(&mut state.written).max(less);
    }

    /// Gives back what a batch has taken that did not come to be.
    pub fn rewind(&self) {
        let State { free, taken, rest, lost, .. } = &mut *self.0.lock();
        free.extend(taken.drain(..));
        rest.clear();
        lost.clear();
    }

    /// Puts what the batch under way has taken into it; answers the pages among them that are in
    /// lost files.
    pub fn put_taken(&self, batch: &mut IndexBatch) -> Vec<PageSpan> {
        let State { taken, rest, lost, .. } = &mut *self.0.lock();
        debug_assert!(!taken.is_empty() || rest.is_empty(), "what is left is a list's");
        for (place, (key, _)) in taken.iter().enumerate() {
            match place + 1 == taken.len() && !rest.is_empty() {
                true => batch.put(Table::Meta, key.clone(), encode(rest.make_contiguous())),
                false => batch.remove(Table::Meta, key.clone()),
            }
        }
        std::mem::take(lost)
    }

    /// The batch is committed, with these new lists.
    pub fn commit(&self, new: Lists) {
        let State { dead, free, taken, rest, .. } = &mut *self.0.lock();
        if let Some((key, _)) = taken.pop()
            && !rest.is_empty()
        {
            free.insert(key, count(rest.make_contiguous()));
        }
        taken.clear();
        rest.clear();
        dead.extend(new);
    }

    /// Takes the newest list out that has more than what folds need: its key, how many pages it
    /// has, and how many of them are too many.
    fn take_spare(&self, is_short: impl FnOnce() -> bool) -> Option<(ListKey, u32, u32)> {
        let mut state = self.0.lock();
        let all: u64 = state.free.values().map(|count| u64::from(*count)).sum();
        if all == 0 {
            return None;
        }
        let needed = if is_short() { 0 } else { state.needed };
        let spare = all.checked_sub(needed).filter(|spare| *spare > 0)?;
        let (key, count) = state.free.pop_last()?;
        Some((key, count, spare.min(count.into()) as u32))
    }

    /// How many pages are free or will be, and how many folds are taken to need.
    #[cfg(test)]
    pub fn counts(&self) -> (u64, u64) {
        let state = self.0.lock();
        let lists = state.dead.values().chain(state.free.values());
        (lists.map(|count| u64::from(*count)).sum(), state.needed)
    }

    fn put_back(&self, key: ListKey, count: u32) {
        if count > 0 {
            self.0.lock().free.insert(key, count);
        }
    }
}

impl Base {
    /// Takes bytes of a blob in, from the first on, at most a run of them; answers where they are.
    /// They go to free pages, or else to the end of a page file.
    pub(super) fn write_pages_of(&self, bytes: &[u8]) -> Result<PageRun> {
        let wanted = bytes.len().div_ceil(PAGE_LEN) as u32;
        let place = self.take_free_pages(wanted)?;
        let len = place.map_or(bytes.len(), |place| bytes.len().min(place.len()));
        let run = self.pages.write(&bytes[..len], place)?;
        self.free_pages.0.lock().written += u64::from(run.count());
        Ok(run)
    }

    /// Whether there is so little room that small pieces go to the index, and no page is kept to
    /// be written again: what makes room must never need some.
    pub(super) fn is_short_of_room(&self) -> bool {
        self.disk.room().is_ok_and(|room| room < PAGE_ROOM_MIN)
    }

    /// Up to so many free pages, which lie side by side.
    fn take_free_pages(&self, wanted: u32) -> Result<Option<PageSpan>> {
        let mut state = self.free_pages.0.lock();
        while state.rest.is_empty() {
            let Some((key, count)) = state.free.pop_first() else { return Ok(None) };
            let value = self.index.get(Table::Meta, &key)?;
            let spans = decode(&key, value.as_deref().unwrap_or_default());
            state.taken.push((key, count));
            let there = self.pages.numbers()?;
            let is_there = |span: &PageSpan| there.binary_search(&span.file).is_ok();
            let (rest, lost): (Vec<_>, Vec<_>) = spans?.into_iter().partition(is_there);
            state.rest = rest.into();
            state.lost.extend(lost);
        }
        let first = state.rest.front_mut().expect("something is left");
        let place = PageSpan { count: wanted.min(first.count), ..*first };
        first.first += place.count;
        first.count -= place.count;
        if first.count == 0 {
            state.rest.pop_front();
        }
        Ok(Some(place))
    }

    /// Gives back some of the free pages that are more than folds need, if there are such; answers
    /// whether there may be more. Nobody else gives anything back meanwhile.
    pub(super) fn give_pages_back(&self) -> Result<bool> {
        // It is asked for all the time, and nearly always there is nothing.
        let spare = self.free_pages.take_spare(|| self.is_short_of_room());
        let Some((key, count, spare)) = spare else { return Ok(false) };
        let given = self.give_of_list(&key, spare);
        self.free_pages.put_back(key, count - given.as_ref().map_or(0, |given| *given));
        given.and_then(|_| self.remove_spent_files())?;
        Ok(true)
    }

    /// Gives back so many pages of a list, or some stretches; answers how many pages it was.
    fn give_of_list(&self, key: &[u8], spare: u32) -> Result<u32> {
        let value = self.index.get(Table::Meta, key)?;
        let mut rest = decode(key, value.as_deref().unwrap_or_default())?;
        let (mut given, mut left) = (Vec::new(), spare);
        while left > 0 && given.len() < GIVEN_SPANS_MAX {
            let Some(last) = rest.last_mut() else { break };
            let count = last.count.min(left);
            last.count -= count;
            left -= count;
            given.push(PageSpan { first: last.first + last.count, count, ..*last });
            if last.count == 0 {
                rest.pop();
            }
        }
        self.pages.punch(&given)?;
        let _alone = self.changing.lock();
        let mut batch = IndexBatch::new();
        match rest.is_empty() {
            true => batch.remove(Table::Meta, key.to_vec()),
            false => batch.put(Table::Meta, key.to_vec(), encode(&rest)),
        }
        let files = self.pages.without(&given)?;
        put_page_files(&mut batch, &files);
        self.index.commit(batch)?;
        self.pages.settle(files);
        Ok(spare - left)
    }

    /// Removes page files that have no page left.
    fn remove_spent_files(&self) -> Result<()> {
        let _alone = self.changing.lock();
        let spent = self.pages.remove_spent()?;
        if spent.is_empty() {
            return Ok(());
        }
        let mut batch = IndexBatch::new();
        spent.iter().for_each(|number| batch.remove(Table::Meta, key::page_file(*number)));
        self.index.commit(batch)?;
        self.pages.forget(&spent);
        Ok(())
    }
}

/// Puts pages that a batch lets go of into it, by place; answers its lists.
pub(super) fn put_dead_pages(
    batch: &mut IndexBatch,
    number: u64,
    mut pages: Vec<PageSpan>,
) -> Lists {
    pages.sort_unstable();
    let touch = |left: &PageSpan, right: &PageSpan| {
        (left.file, left.first + left.count) == (right.file, right.first)
    };
    let joined = pages.chunk_by(touch).map(|run| PageSpan { count: count(run), ..run[0] });
    let joined: Vec<PageSpan> = joined.collect();
    let mut lists = Lists::new();
    for (part, spans) in (0..).zip(joined.chunks(LIST_SPANS_MAX)) {
        let key = key::dead_pages(number, part);
        batch.put(Table::Meta, key.clone(), encode(spans));
        lists.insert(key, count(spans));
    }
    lists
}

fn count(spans: &[PageSpan]) -> u32 {
    spans.iter().map(|span| span.count).sum()
}

fn encode(spans: &[PageSpan]) -> Vec<u8> {
    record::encode_dead_pages(spans)
}

fn decode(key: &[u8], value: &[u8]) -> Result<Vec<PageSpan>> {
    record::decode_dead_pages(value).filter(|spans| !spans.is_empty()).ok_or_else(|| {
        let key = key.escape_ascii();
        Error::corrupt(format!("index table meta, key \"{key}\": no pages"))
    })
}
