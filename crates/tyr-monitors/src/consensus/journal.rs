//! A small segmented log of opaque records, for what Raft must not forget.
//!
//! Records are numbered without gaps and checksummed; each also says up to where the journal was
//! durable when it was written. So a torn tail, which nobody was told of, is told from damage: it
//! is cut off when no later record knew it durable, and reported otherwise. What is durable at the
//! very end is known by no later record; [`super::ballot`] notes how far the journal reached.
//!
//! ```text
//!   raft/00000001.journal   raft/00000002.journal ...
//!   | magic | version | first number | crc32c |            24 bytes, little-endian
//!   | length | crc32c | number | durable | payload |       24 bytes, then the payload; again
//! ```
//!
//! The checksum of a record covers everything of it but itself. A segment is closed at
//! [`SEGMENT_LEN`] bytes; old ones are removed as a whole. After an error nothing is written any
//! more: what the disk holds is then unknown until it is read again.
//!
//! This file must not know what a record means.

use std::io;
use std::sync::Arc;

use tyr_store::disk::{self, Disk, DiskFile, OpenMode};
use tyr_types::{Error, Result};

/// Where journal, ballot and snapshots lie.
pub const FOLDER: &str = "raft";
/// A segment is closed when it has this many bytes: a dozen of the largest entries, so that what is
/// not needed any more goes soon.
pub const SEGMENT_LEN: u64 = 16 << 20;
/// The longest payload: one transaction of the metadata with what is around it.
pub const PAYLOAD_LEN_MAX: usize = tyr_metadata::limits::TRANSACTION_BYTES_MAX + (1 << 20);

const MAGIC: &[u8; 8] = b"TYR-RFT\n";
const FORMAT_VERSION: u32 = 1;
const SEGMENT_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 24;

const _: () = assert!(SEGMENT_HEADER_LEN == MAGIC.len() + 4 + 8 + 4);
const _: () = assert!(RECORD_HEADER_LEN == 4 + 4 + 8 + 8);
const _: () =
    assert!(PAYLOAD_LEN_MAX <= u32::MAX as usize && SEGMENT_HEADER_LEN < SEGMENT_LEN as usize);

/// A record as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The segment that it lies in.
    pub segment: u64,
    /// What was written.
    pub payload: Vec<u8>,
}

/// The journal, open for writing.
pub struct Journal {
    disk: Arc<dyn Disk>,
    /// The segments there are, oldest first; the last one is written to.
    segments: Vec<u64>,
    file: Arc<dyn DiskFile>,
    /// Bytes of the last segment.
    len: u64,
    /// The number of the next record, counted from 1.
    next: u64,
    /// All records up to this number are durable.
    durable: u64,
    /// Why nothing is written any more.
    broken: Option<String>,
}

impl Journal {
    /// Opens the journal and reads all of it, or begins one.
    ///
    /// # Errors
    /// `Corrupt` when something durable is damaged or missing; `durable_min` is the number of a
    /// record that must be there. `Unavailable` when the disk fails.
    pub fn open(disk: Arc<dyn Disk>, durable_min: u64) -> Result<(Self, Vec<Record>)> {
        let folder = |error| disk::refusal(format!("{}/{FOLDER}", disk.describe()), error);
        disk.create_folder(FOLDER).and_then(|()| disk.sync_folder("")).map_err(folder)?;
        let names = disk.list(FOLDER).map_err(folder)?;
        let mut segments: Vec<u64> = names.iter().filter_map(|it| number_of(it)).collect();
        segments.sort_unstable();
        let mut records = Vec::new();
        let mut next = None;
        let mut last = None;
        for (place, number) in segments.iter().enumerate() {
            let is_last = place + 1 == segments.len();
            let segment = Segment { disk: &*disk, number: *number, is_last };
            if let Some(read) = segment.read(next, &mut records)? {
                next = Some(read.next);
                last = Some((*number, read));
            }
        }
        segments.retain(|number| last.as_ref().is_some_and(|(last, _)| number <= last));
        let next = next.unwrap_or(1);
        if next <= durable_min {
            return Err(Error::corrupt(format!(
                "{}/{FOLDER}: record {durable_min} was durable, the journal ends before record \
                 {next}; take this monitor out and let it join anew",
                disk.describe()
            )));
        }
        let (file, len) = match last {
            Some((_, read)) => (read.file, read.len),
            None => {
                segments.push(1);
                create(&*disk, 1, next)?
            }
        };
        let durable = next - 1;
        assert!(durable >= durable_min, "what was durable is there");
        assert!(!segments.is_empty() && segments.is_sorted(), "a journal has segments, in order");
        Ok((Self { disk, segments, file, len, next, durable, broken: None }, records))
    }

    /// The number of the last durable record; 0 when there is none.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// The segment that is written to.
    pub fn segment(&self) -> u64 {
        *self.segments.last().expect("a journal has a segment")
    }

    /// Writes these records; durable when it returns.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails or is full; then and from then on nothing is written.
    pub fn append(&mut self, payloads: &[Vec<u8>]) -> Result<()> {
        if let Some(why) = &self.broken {
            return Err(Error::unavailable(format!("the monitors' journal failed before: {why}")));
        }
        let written = self.write(payloads);
        if let Err(error) = &written {
            self.broken = Some(error.to_string());
        }
        written
    }

    fn write(&mut self, payloads: &[Vec<u8>]) -> Result<()> {
        assert_eq!(self.durable + 1, self.next, "all that was written is durable");
        let before = self.next;
        if self.len >= SEGMENT_LEN {
            let segment = self.segment() + 1;
            (self.file, self.len) = create(&*self.disk, segment, self.next)?;
            self.segments.push(segment);
            debug_assert_eq!(self.len, SEGMENT_HEADER_LEN as u64, "a segment begins empty");
        }
        debug_assert!(self.segments.is_sorted_by(|one, next| one < next), "segments are in order");
        debug_assert!(self.len >= SEGMENT_HEADER_LEN as u64, "records lie behind the header");
        let mut bytes = Vec::new();
        for payload in payloads {
            assert!(payload.len() <= PAYLOAD_LEN_MAX, "records are bounded by who writes them");
            let start = bytes.len();
            bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&self.next.to_le_bytes());
            bytes.extend_from_slice(&self.durable.to_le_bytes());
            bytes.extend_from_slice(payload);
            let checksum = checksum(&bytes[start..]);
            bytes[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
            debug_assert!(
                found_at(&bytes[start..]).is_some_and(|found| found.number == self.next),
                "record {} would not be read back",
                self.next
            );
            self.next += 1;
        }
        let refused = |error| disk::refusal(path(&*self.disk, self.segment()), error);
        self.file.write_at(&bytes, self.len).map_err(refused)?;
        self.file.sync().map_err(refused)?;
        self.len += bytes.len() as u64;
        self.durable = self.next - 1;
        debug_assert_eq!(self.next - before, payloads.len() as u64, "a number for each record");
        Ok(())
    }

    /// Removes the segments before this one; never the one that is written to.
    ///
    /// # Errors
    /// `Unavailable` when the disk fails; the journal goes on.
    pub fn remove_before(&mut self, segment: u64) -> Result<()> {
        let last = self.segment();
        while let Some(first) = self.segments.first().copied()
            && first < segment.min(last)
        {
            // Oldest first: whatever is left after a crash begins somewhere and has no gap.
            let refused = |error| disk::refusal(path(&*self.disk, first), error);
            self.disk.remove(&name(first)).map_err(refused)?;
            self.disk.sync_folder(FOLDER).map_err(refused)?;
            self.segments.remove(0);
        }
        assert_eq!(self.segment(), last, "the one that is written to stays");
        Ok(())
    }
}

/// One segment, while it is read.
struct Segment<'a> {
    disk: &'a dyn Disk,
    number: u64,
    is_last: bool,
}

/// A segment that was read.
struct Read {
    file: Arc<dyn DiskFile>,
    /// Its length, without what was torn.
    len: u64,
    /// The number of the record after its last.
    next: u64,
}

/// A record in the bytes of a segment.
struct Found<'a> {
    number: u64,
    payload: &'a [u8],
}

impl Segment<'_> {
    /// Reads all records, which begin with number `next` if that is known. `None` when the segment
    /// was made and never came to hold a record; then it is removed.
    fn read(&self, next: Option<u64>, records: &mut Vec<Record>) -> Result<Option<Read>> {
        let path = path(self.disk, self.number);
        let refused = |error| disk::refusal(&path, error);
        let file = self.disk.open(&name(self.number), OpenMode::Existing).map_err(refused)?;
        let mut bytes = vec![0; file.len().map_err(refused)? as usize];
        let count = file.read_at(&mut bytes, 0).map_err(refused)?;
        bytes.truncate(count);
        if let Some(format) = later_format(&bytes) {
            let format = format_args!("journal format {format}");
            return Err(Error::later_release(path, format, FORMAT_VERSION));
        }
        let Some(first) = first_number(&bytes) else {
            return self.discard(next, &bytes).map(|()| None);
        };
        if next.is_some_and(|next| next != first) {
            return Err(Error::corrupt(format!(
                "{path}: begins with record {first}, the one before ends before {next:?}"
            )));
        }
        let (mut at, mut expected) = (SEGMENT_HEADER_LEN, first);
        while at < bytes.len() {
            match found_at(&bytes[at..]).filter(|it| it.number == expected) {
                Some(Found { payload, .. }) => {
                    at += RECORD_HEADER_LEN + payload.len();
                    expected += 1;
                    records.push(Record { segment: self.number, payload: payload.to_vec() });
                }
                None => {
                    self.check_torn(&bytes[at..], at, expected)?;
                    file.set_len(at as u64).and_then(|()| file.sync()).map_err(refused)?;
                    break;
                }
            }
        }
        debug_assert!(at <= bytes.len(), "a segment is read to its end at most");
        debug_assert!(expected >= first, "numbers grow");
        Ok(Some(Read { file, len: at as u64, next: expected }))
    }

    /// Whether what cannot be read was still being written when the power went: nobody after it
    /// knew it durable.
    fn check_torn(&self, bytes: &[u8], at: usize, expected: u64) -> Result<()> {
        // Numbers first: they are cheap to look at, and bytes of a payload seldom look like them.
        let is_witness = |at: &usize| {
            let Some(header) = bytes[*at..].first_chunk::<RECORD_HEADER_LEN>() else {
                return false;
            };
            let (it, durable) = (number(header, 8), number(header, 16));
            let is_later = it > expected && it - expected <= bytes.len() as u64;
            is_later && (expected..it).contains(&durable) && found_at(&bytes[*at..]).is_some()
        };
        let witness = (1..bytes.len()).find(is_witness);
        if self.is_last && witness.is_none() {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "{}: record {expected} at byte {at} is damaged, and it was durable; take this monitor \
             out and let it join anew",
            path(self.disk, self.number)
        )))
    }

    /// A segment without a header was being made when the power went, or is damaged.
    fn discard(&self, next: Option<u64>, bytes: &[u8]) -> Result<()> {
        let has_records = (0..bytes.len()).any(|at| found_at(&bytes[at..]).is_some());
        let path = path(self.disk, self.number);
        if !self.is_last || has_records || (next.is_none() && self.number != 1) {
            return Err(Error::corrupt(format!(
                "{path}: the first {SEGMENT_HEADER_LEN} bytes are damaged; take this monitor out \
                 and let it join anew"
            )));
        }
        let removed = self.disk.remove(&name(self.number));
        removed
            .and_then(|()| self.disk.sync_folder(FOLDER))
            .map_err(|error| disk::refusal(path, error))
    }
}

/// Makes a segment, durable with its header and its name.
fn create(disk: &dyn Disk, number: u64, first: u64) -> Result<(Arc<dyn DiskFile>, u64)> {
    let mut header = [0; SEGMENT_HEADER_LEN];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&first.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..20]);
    header[20..].copy_from_slice(&checksum.to_le_bytes());
    debug_assert_eq!(first_number(&header), Some(first), "the header would not be read back");
    let make = || -> io::Result<Arc<dyn DiskFile>> {
        let file = disk.open(&name(number), OpenMode::CreateNew)?;
        file.write_at(&header, 0)?;
        file.sync()?;
        disk.sync_folder(FOLDER)?;
        Ok(file)
    };
    let file = make().map_err(|error| disk::refusal(path(disk, number), error))?;
    Ok((file, SEGMENT_HEADER_LEN as u64))
}

/// The format in a segment's header that is whole, if it is a later one than is known here.
fn later_format(bytes: &[u8]) -> Option<u32> {
    let header: &[u8; SEGMENT_HEADER_LEN] = bytes.first_chunk()?;
    let is_whole =
        header.starts_with(MAGIC) && header[20..] == crc32c::crc32c(&header[..20]).to_le_bytes();
    let format = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    (is_whole && format > FORMAT_VERSION).then_some(format)
}

/// The number of a segment's first record, by its header.
fn first_number(bytes: &[u8]) -> Option<u64> {
    let header: &[u8; SEGMENT_HEADER_LEN] = bytes.first_chunk()?;
    let is_sound = header.starts_with(MAGIC)
        && header[8..12] == FORMAT_VERSION.to_le_bytes()
        && header[20..] == crc32c::crc32c(&header[..20]).to_le_bytes();
    is_sound.then(|| number(header, 12))
}

/// The record that begins with these bytes, if one does.
fn found_at(bytes: &[u8]) -> Option<Found<'_>> {
    let header: &[u8; RECORD_HEADER_LEN] = bytes.first_chunk()?;
    let len = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if len > PAYLOAD_LEN_MAX {
        return None;
    }
    let whole = bytes.get(..RECORD_HEADER_LEN + len)?;
    debug_assert_eq!(whole.len(), RECORD_HEADER_LEN + len, "a record is a header and a payload");
    let is_sound = header[4..8] == checksum(whole).to_le_bytes();
    is_sound.then(|| Found { number: number(header, 8), payload: &whole[RECORD_HEADER_LEN..] })
}

/// The checksum of a record: of all of it but the checksum.
fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&record[..4]), &record[8..])
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes are 8 bytes"))
}

fn name(number: u64) -> String {
    format!("{FOLDER}/{number:08}.journal")
}

fn path(disk: &dyn Disk, number: u64) -> String {
    format!("{}/{}", disk.describe(), name(number))
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".journal")?.parse().ok()
}
