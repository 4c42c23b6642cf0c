//! A page of records sorted by key: a leaf, whose records have values, or an inner page, whose
//! records lead to other pages.
//!
//! ```text
//!    0  kind       u8, 1 leaf, 2 inner
//!    1  zeros      3
//!    4  first      u32, of an inner page: the page of what is before its first key
//!    8  zeros      8
//!   16  slots      u16 each, sorted by key: where the record begins; the first zero ends them
//!       free
//!       records    key length u16, value length u32, key, value
//! 4096
//! ```
//!
//! There is no count and no mark of where the free bytes are, since each would be one more thing
//! that every insert writes. **An insert writes** its record, below the lowest one, and its slot
//! with those behind it, which move up by two bytes: key, value, 6 bytes, and 2 for each key of the
//! page that is not below it. Keys that come in their order write one slot. A removal writes the
//! slots behind its own; the bytes of its record stay until the page is written anew whole.

use tyr_types::{Bytes, Error, Result};

use super::region::Region;

/// Bytes of a page.
pub const PAGE_LEN: usize = 4096;

/// Bytes of a page before its slots.
pub const PAGE_HEAD_LEN: usize = 16;

/// Bytes of a record before its key.
pub const RECORD_HEAD_LEN: usize = 6;

/// The longest record, so that at least four of them fit a page with their slots: what a split
/// makes two pages of then fits them, whatever the lengths.
pub const RECORD_LEN_MAX: usize = (PAGE_LEN - PAGE_HEAD_LEN - SLOT_LEN) / 4 - SLOT_LEN;

const SLOT_LEN: usize = 2;

/// Set in the value's length where the value lies in pages of its own.
const ELSEWHERE: u32 = 1 << 31;

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Records with values.
    Leaf,
    /// Records that lead to other pages.
    Inner,
    /// A part of a value that is too long for a leaf.
    Part,
    /// Nothing: it is taken when the next one is needed.
    Free,
}

impl PageKind {
    /// Its code, the first byte of the page.
    pub fn code(self) -> u8 {
        match self {
            Self::Leaf => 1,
            Self::Inner => 2,
            Self::Part => 3,
            Self::Free => 4,
        }
    }

    /// The kind of this code.
    pub fn of(code: u8) -> Option<Self> {
        [Self::Leaf, Self::Inner, Self::Part, Self::Free].into_iter().find(|it| it.code() == code)
    }
}

/// A record's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Here.
    Here(Bytes),
    /// In pages of its own, of which this is the first.
    Elsewhere {
        /// The first page.
        page: u32,
        /// Bytes of the value.
        len: u32,
    },
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The key.
    pub key: Bytes,
    /// The value; in an inner page the number of the page it leads to.
    pub value: Value,
}

impl Record {
    /// One of an inner page: what begins at `key` is in `page` and below it.
    pub fn leading(key: Bytes, page: u32) -> Self {
        Self { key, value: Value::Here(Bytes::copy_from_slice(&page.to_le_bytes())) }
    }

    /// Bytes of it in a page, without its slot.
    pub fn len(&self) -> usize {
        let value = match &self.value {
            Value::Here(value) => value.len(),
            Value::Elsewhere { .. } => size_of::<u32>(),
        };
        RECORD_HEAD_LEN + self.key.len() + value
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.key.len() as u16).to_le_bytes());
        match &self.value {
            Value::Here(value) => {
                out.extend_from_slice(&(value.len() as u32).to_le_bytes());
                out.extend_from_slice(&self.key);
                out.extend_from_slice(value);
            }
            Value::Elsewhere { page, len } => {
                out.extend_from_slice(&(len | ELSEWHERE).to_le_bytes());
                out.extend_from_slice(&self.key);
                out.extend_from_slice(&page.to_le_bytes());
            }
        }
    }
}

/// A leaf or an inner page, as it was read and found to be whole.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its number: it lies at 4096 times that.
    pub number: u32,
    /// Whether it is an inner page.
    pub is_inner: bool,
    /// Of an inner page: where what is before the first key is.
    pub first: u32,
    bytes: Bytes,
    slots: Vec<u16>,
    /// The first byte of the lowest record.
    lowest: usize,
}

impl Page {
    /// Reads and checks the page of this number.
    ///
    /// # Errors
    /// `Corrupt`, naming the page, when its bytes are none of a leaf or an inner page.
    pub fn read(region: &mut dyn Region, number: u32) -> Result<Self> {
        let bytes = region.read(offset_of(number), PAGE_LEN)?;
        let damage = |what: &str| damage(number, what);
        if bytes.len() != PAGE_LEN {
            return Err(damage("it is behind the end of the map"));
        }
        let is_inner = match PageKind::of(bytes[0]) {
            Some(PageKind::Leaf) => false,
            Some(PageKind::Inner) => true,
            Some(PageKind::Part | PageKind::Free) | None => {
                return Err(damage("it is no page of records"));
            }
        };
        let mut page = Self {
            number,
            is_inner,
            first: u32_at(&bytes, 4),
            bytes,
            slots: Vec::new(),
            lowest: 0,
        };
        let mut before: &[u8] = &[];
        let mut lowest = PAGE_LEN;
        for at in (PAGE_HEAD_LEN..PAGE_LEN).step_by(SLOT_LEN) {
            let slot = u16::from_le_bytes([page.bytes[at], page.bytes[at + 1]]);
            if slot == 0 {
                break;
            }
            let record = page.range(slot).ok_or_else(|| damage("a slot leads to no record"))?;
            let key = &page.bytes[record.key.clone()];
            if !page.slots.is_empty() && key <= before {
                return Err(damage("its keys are in no order"));
            }
            lowest = lowest.min(usize::from(slot));
            before = &page.bytes[record.key];
            page.slots.push(slot);
        }
        if page.slots_end() > lowest {
            return Err(damage("its slots reach into its records"));
        }
        page.lowest = lowest;
        Ok(page)
    }

    /// How many records.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// A record, from 0.
    pub fn record(&self, index: usize) -> Record {
        let place = self.place(index);
        let key = self.bytes.slice(place.key);
        let value = if place.is_elsewhere {
            let page = u32_at(&self.bytes, place.value.start);
            Value::Elsewhere { page, len: place.value_len }
        } else {
            Value::Here(self.bytes.slice(place.value))
        };
        Record { key, value }
    }

    /// All records.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = Record> + '_ {
        (0..self.len()).map(|index| self.record(index))
    }

    /// The key of a record, from 0.
    pub fn key(&self, index: usize) -> &[u8] {
        &self.bytes[self.place(index).key]
    }

    /// Where `key` is among the records, or where it would be.
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.slots.binary_search_by(|slot| {
            let place = self.range(*slot).expect("every slot was checked when the page was read");
            self.bytes[place.key].cmp(key)
        })
    }

    /// Of an inner page: which of its children, from 0, has `key`.
    pub fn child_index(&self, key: &[u8]) -> usize {
        self.find(key).map_or_else(|index| index, |index| index + 1)
    }

    /// Of an inner page: the number of a child, from 0.
    pub fn child(&self, index: usize) -> u32 {
        match index.checked_sub(1) {
            None => self.first,
            Some(index) => u32_at(&self.bytes, self.place(index).value.start),
        }
    }

    /// Whether a record of `len` bytes can be put in without writing the page anew.
    pub fn has_room(&self, len: usize) -> bool {
        self.slots_end() + 2 * SLOT_LEN + len <= self.lowest
    }

    /// Whether this change of one record leaves a page that is not too full.
    pub fn fits(&self, without: Option<usize>, len: usize) -> bool {
        let left = (0..self.len()).filter(|index| Some(*index) != without);
        let used: usize = left.map(|index| SLOT_LEN + self.place(index).len()).sum();
        PAGE_HEAD_LEN + used + SLOT_LEN + len + SLOT_LEN <= PAGE_LEN
    }

    /// Puts `record` in as number `index`, or in the place of that one.
    ///
    /// # Errors
    /// Those of the region. There must be room.
    pub fn put(
        &self,
        region: &mut dyn Region,
        index: usize,
        replaces: bool,
        record: &Record,
    ) -> Result<()> {
        assert!(self.has_room(record.len()), "who puts a record in has seen that there is room");
        let mut bytes = Vec::with_capacity(record.len());
        record.store(&mut bytes);
        let begin = self.lowest - bytes.len();
        region.write(offset_of(self.number) + begin as u64, &bytes)?;
        let mut slots = self.slots.clone();
        if replaces {
            slots[index] = begin as u16;
            self.write_slots(region, &slots, index, index + 1)
        } else {
            slots.insert(index, begin as u16);
            // What lies behind the last slot may be left of a record that was taken out.
            slots.push(0);
            self.write_slots(region, &slots, index, slots.len())
        }
    }

    /// Writes a value of the same length over that of a record.
    ///
    /// # Errors
    /// Those of the region.
    pub fn overwrite(&self, region: &mut dyn Region, index: usize, value: &[u8]) -> Result<()> {
        let place = self.place(index);
        assert_eq!(place.value.len(), value.len(), "only values of the same length");
        region.write(offset_of(self.number) + place.value.start as u64, value)
    }

    /// Takes a record out.
    ///
    /// # Errors
    /// Those of the region.
    pub fn take(&self, region: &mut dyn Region, index: usize) -> Result<()> {
        let mut slots = self.slots.clone();
        slots.remove(index);
        slots.push(0);
        self.write_slots(region, &slots, index, slots.len())
    }

    /// Makes `first` what is before an inner page's first key.
    ///
    /// # Errors
    /// Those of the region.
    pub fn write_first(&self, region: &mut dyn Region, first: u32) -> Result<()> {
        region.write(offset_of(self.number) + 4, &first.to_le_bytes())
    }

    /// Writes a page with these records, whole.
    ///
    /// # Errors
    /// Those of the region. The records must fit.
    pub fn write(
        region: &mut dyn Region,
        number: u32,
        first: Option<u32>,
        records: &[Record],
    ) -> Result<()> {
        let mut bytes = vec![0; PAGE_LEN];
        let kind = if first.is_some() { PageKind::Inner } else { PageKind::Leaf };
        bytes[0] = kind.code();
        bytes[4..8].copy_from_slice(&first.unwrap_or_default().to_le_bytes());
        let mut end = PAGE_LEN;
        let mut stored = Vec::new();
        for (index, record) in records.iter().enumerate() {
            stored.clear();
            record.store(&mut stored);
            let slot = PAGE_HEAD_LEN + SLOT_LEN * index;
            assert!(slot + 2 * SLOT_LEN + stored.len() <= end, "records of a page fit it");
            bytes[end - stored.len()..end].copy_from_slice(&stored);
            end -= stored.len();
            bytes[slot..slot + SLOT_LEN].copy_from_slice(&(end as u16).to_le_bytes());
        }
        region.write(offset_of(number), &bytes)
    }

    fn write_slots(
        &self,
        region: &mut dyn Region,
        slots: &[u16],
        from: usize,
        to: usize,
    ) -> Result<()> {
        let bytes: Vec<u8> = slots[from..to].iter().flat_map(|slot| slot.to_le_bytes()).collect();
        region.write(offset_of(self.number) + (PAGE_HEAD_LEN + SLOT_LEN * from) as u64, &bytes)
    }

    fn slots_end(&self) -> usize {
        PAGE_HEAD_LEN + SLOT_LEN * self.slots.len()
    }

    fn place(&self, index: usize) -> Place {
        self.range(self.slots[index]).expect("every slot was checked when the page was read")
    }

    /// Where the record at `slot` has what; `None` where that is not in the page.
    fn range(&self, slot: u16) -> Option<Place> {
        let slot = usize::from(slot);
        if slot < PAGE_HEAD_LEN || slot + RECORD_HEAD_LEN > PAGE_LEN {
            return None;
        }
        let key_len = usize::from(u16::from_le_bytes([self.bytes[slot], self.bytes[slot + 1]]));
        let coded = u32_at(&self.bytes, slot + 2);
        let (is_elsewhere, value_len) = (coded & ELSEWHERE != 0, coded & !ELSEWHERE);
        let stored = if is_elsewhere { size_of::<u32>() } else { value_len as usize };
        let is_good = !self.is_inner || (!is_elsewhere && stored == size_of::<u32>());
        let key = slot + RECORD_HEAD_LEN;
        let value = key + key_len;
        (is_good && stored <= PAGE_LEN && value + stored <= PAGE_LEN).then_some(Place {
            key: key..value,
            value: value..value + stored,
            is_elsewhere,
            value_len,
        })
    }
}

/// Where in its page a record has what.
struct Place {
    key: std::ops::Range<usize>,
    value: std::ops::Range<usize>,
    is_elsewhere: bool,
    value_len: u32,
}

impl Place {
    fn len(&self) -> usize {
        RECORD_HEAD_LEN + self.key.len() + self.value.len()
    }
}

/// Where a page begins.
pub fn offset_of(number: u32) -> u64 {
    u64::from(number) * PAGE_LEN as u64
}

/// `Corrupt`: what is wrong with a page.
pub fn damage(number: u32, what: &str) -> Error {
    Error::corrupt(format!(
        "page {number} of the map (4096 bytes at offset {} of its blob): {what}; clear the map, or \
         write the blob anew from a copy",
        offset_of(number)
    ))
}

/// The little-endian u32 at a place.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
