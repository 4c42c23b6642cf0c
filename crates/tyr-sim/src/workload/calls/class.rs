//! The class that the workload calls, in versions: a queue with room for few, a number beside it,
//! notes behind it, and a map.
//!
//! ```text
//!   blob        0  pushed   8  popped   16  the number   24  slots, 8 of 24 bytes   216  notes
//!   companion   the map: keys of one byte
//! ```
//!
//! Versions differ in how many fit the queue, in what they compute, and in how long values are, and
//! each says its number in its answers: an answer by the wrong one shows. What a method writes says
//! also in which call, and when it ran, so a second run would write something else.

use tyr_class::{Class, ClassInfo, Companion, Context, Failure, Limits, Map, MethodKind};
use tyr_types::{Bytes, ErrorKind, Number, Transform, TransformKind};

use super::super::numbers_of;

/// Where the numbers of the head are: so many were pushed, and popped, and the one beside them.
const PUSHED_AT: u64 = 0;
const POPPED_AT: u64 = 8;
const NUMBER_AT: u64 = 16;
const SLOTS_AT: u64 = 24;

/// Slots of the queue, which go round, and bytes of one: the number, the call, the time.
const SLOTS: u64 = 8;
const SLOT_LEN: u64 = 24;

/// Where the notes begin.
const NOTES_AT: u64 = SLOTS_AT + SLOTS * SLOT_LEN;

/// Entries of the map that a look shows, which are all.
const KEYS: usize = 16;

/// A method: its name, its kind, and what it does.
type Method = (&'static str, MethodKind, fn(&mut Opened<'_>, &[u8]) -> Result<Bytes, Failure>);

const METHODS: [Method; 10] = [
    ("clear", MethodKind::Call, clear),
    ("forget", MethodKind::Call, forget),
    ("look", MethodKind::Query, look),
    ("note", MethodKind::Call, note),
    ("pop", MethodKind::Call, pop),
    ("push", MethodKind::Call, push),
    ("put", MethodKind::Call, put),
    ("renew", MethodKind::Call, renew),
    ("swap", MethodKind::Call, swap),
    ("turn", MethodKind::Call, turn),
];

/// A version of the class.
pub struct Queue {
    info: ClassInfo,
    version: u64,
}

impl Queue {
    /// The class as it is in this version.
    pub fn of_version(version: u64) -> Self {
        let named = METHODS.map(|(name, kind, _)| (name, kind));
        let info = ClassInfo::new("queue", named, Limits::IN_PLACE);
        Self { info: info.expect("names and methods are as they have to be"), version }
    }
}

impl Class for Queue {
    fn info(&self) -> &ClassInfo {
        &self.info
    }

    fn run(
        &self,
        method: usize,
        context: &mut dyn Context,
        input: &[u8],
    ) -> Result<Bytes, Failure> {
        let (_, _, run) = METHODS[method];
        run(&mut Opened { context, version: self.version }, input)
    }
}

/// The object of a call, and the version by which it is used.
struct Opened<'a> {
    context: &'a mut dyn Context,
    version: u64,
}

impl Opened<'_> {
    /// How many fit the queue; fewer than there are slots.
    fn room(&self) -> u64 {
        2 + self.version % 5
    }

    /// Begins each answer.
    fn answer(&self, numbers: &[u64]) -> Bytes {
        let all = [&[self.version], numbers].concat();
        all.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into()
    }

    /// Makes room for head and slots where there is none.
    fn make(&mut self) -> Result<(), Failure> {
        if self.context.size()?.unwrap_or(0) < NOTES_AT {
            self.context.truncate(NOTES_AT)?;
        }
        Ok(())
    }

    fn number(&mut self, at: u64) -> Result<u64, Failure> {
        let bytes = self.context.read(at, 8)?;
        Ok(numbers_of(&bytes).next().unwrap_or(0))
    }

    fn set(&mut self, at: u64, number: u64) -> Result<(), Failure> {
        Ok(self.context.write(at, &number.to_le_bytes())?)
    }

    fn map<T>(
        &mut self,
        what: impl FnOnce(&mut Map<'_>) -> tyr_types::Result<T>,
    ) -> Result<T, Failure> {
        Ok(what(&mut Map::new(&mut Companion(self.context)))?)
    }

    /// A value for the map: of some versions it is too long for a leaf.
    fn value(&self, number: u64) -> Vec<u8> {
        number.to_le_bytes().repeat(1 + 80 * (self.version % 3) as usize)
    }

    /// Where the first of the queue is.
    fn first(&mut self) -> Result<u64, Failure> {
        let popped = self.number(POPPED_AT)?;
        match popped == self.number(PUSHED_AT)? {
            true => Err(Failure::method(ErrorKind::NotFound, "there is nothing")),
            false => Ok(slot_at(popped)),
        }
    }
}

fn slot_at(number: u64) -> u64 {
    SLOTS_AT + number % SLOTS * SLOT_LEN
}

/// The number that a method was given.
fn given(input: &[u8]) -> u64 {
    numbers_of(input).next().unwrap_or(0)
}

/// The key of the map that a number means.
fn key(number: u64) -> [u8; 1] {
    [b'a' + (number % KEYS as u64) as u8]
}

/// It writes before it knows whether there is room: what it wrote is dropped when it fails.
fn push(object: &mut Opened<'_>, input: &[u8]) -> Result<Bytes, Failure> {
    object.make()?;
    let (pushed, popped) = (object.number(PUSHED_AT)?, object.number(POPPED_AT)?);
    let (call, now_us) = (object.context.transaction().0 as u64, object.context.now_us());
    let slot = [given(input), call, now_us].map(u64::to_le_bytes).concat();
    object.context.write(slot_at(pushed), &slot)?;
    if pushed.saturating_sub(popped) >= object.room() {
        let text = format!("there are {} already", object.room());
        return Err(Failure::method(ErrorKind::QuotaExceeded, text));
    }
    object.set(PUSHED_AT, pushed + 1)?;
    Ok(object.answer(&[pushed]))
}

fn pop(object: &mut Opened<'_>, _input: &[u8]) -> Result<Bytes, Failure> {
    let first = object.first()?;
    let (number, popped) = (object.number(first)?, object.number(POPPED_AT)?);
    object.set(POPPED_AT, popped + 1)?;
    Ok(object.answer(&[number, popped]))
}

/// Changes the first number of the queue, in the blob, for one in the map, in the companion.
fn swap(object: &mut Opened<'_>, input: &[u8]) -> Result<Bytes, Failure> {
    let first = object.first()?;
    let (number, key) = (object.number(first)?, key(given(input)));
    let Some(kept) = object.map(|map| map.get(&key))? else {
        return Err(Failure::method(ErrorKind::NotFound, "the map has nothing there"));
    };
    let (kept, value) = (given(&kept), object.value(number));
    object.set(first, kept)?;
    object.map(|map| map.set(&key, &value))?;
    Ok(object.answer(&[number, kept]))
}

fn put(object: &mut Opened<'_>, input: &[u8]) -> Result<Bytes, Failure> {
    let (key, value) = (key(given(input)), object.value(given(input)));
    let before = object.map(|map| map.get(&key))?;
    object.map(|map| map.set(&key, &value))?;
    Ok(object.answer(&[before.map_or(0, |before| given(&before))]))
}

fn forget(object: &mut Opened<'_>, input: &[u8]) -> Result<Bytes, Failure> {
    let was_there = object.map(|map| map.remove(&key(given(input))))?;
    Ok(object.answer(&[was_there.into()]))
}

/// Arithmetic in place, another in each second version.
fn turn(object: &mut Opened<'_>, input: &[u8]) -> Result<Bytes, Failure> {
    object.make()?;
    let kind =
        if object.version.is_multiple_of(2) { TransformKind::Add } else { TransformKind::Xor };
    let transform = Transform::new(kind, Number::U64(given(input)))?;
    match object.context.transform(NUMBER_AT, transform)? {
        Number::U64(number) => Ok(object.answer(&[number])),
        other => Err(Failure::broken(format!("{other:?} is of another type"))),
    }
}

/// Appends, so that the end moves over chunks.
fn note(object: &mut Opened<'_>, input: &[u8]) -> Result<Bytes, Failure> {
    object.make()?;
    let count = 1 + given(input) % 64;
    let offset = object.context.append(&given(input).to_le_bytes().repeat(count as usize))?;
    Ok(object.answer(&[offset]))
}

fn clear(object: &mut Opened<'_>, _input: &[u8]) -> Result<Bytes, Failure> {
    let was_there = object.context.remove()?;
    Ok(object.answer(&[was_there.into()]))
}

/// Removes the object and makes it anew, in one call.
fn renew(object: &mut Opened<'_>, input: &[u8]) -> Result<Bytes, Failure> {
    let was_there = object.context.remove()?;
    let is_new = object.context.create()?;
    object.make()?;
    object.set(NUMBER_AT, given(input))?;
    Ok(object.answer(&[was_there.into(), is_new.into()]))
}

/// All there is, but for the notes, of which it says where they end.
fn look(object: &mut Opened<'_>, _input: &[u8]) -> Result<Bytes, Failure> {
    let size = object.context.size()?;
    let mut all = object.answer(&[size.map_or(0, |size| size + 1)]).to_vec();
    all.extend(object.context.read(0, NOTES_AT)?);
    for (key, value) in object.map(|map| map.next(b"", KEYS))? {
        all.extend(key);
        all.extend(value);
    }
    Ok(all.into())
}
