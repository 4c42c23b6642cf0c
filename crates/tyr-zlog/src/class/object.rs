//! The class `zlog` in Rust: a storage object, whose slots are written once, under an epoch.
//!
//! What is where in the blob says `zlog.lua`, which does the same.

use tyr::Bytes;
use tyr_class::{Context, Failure, MethodKind};

use super::input::{Fields, numbers};
use super::native::{Method, NativeClass};
use super::refusal::Refusal;
use super::{ENTRY_LEN_MAX, OBJECT_CLASS, SLOTS_MAX};

const MAGIC: &[u8; 8] = b"tyr-zlo\x01";
const EPOCH_AT: u64 = 8;
const FIRST_AT: usize = 16;
const WIDTH_AT: usize = 24;
const SLOTS_AT: usize = 28;
const NEXT_AT: usize = 32;
const FREE_AT: usize = 40;
const HEAD_LEN: u64 = 64;
const SLOT_LEN: u64 = 16;

/// What of a slot is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unwritten,
    Data,
    Filled,
    Trimmed,
}

impl State {
    const ALL: [Self; 4] = [Self::Unwritten, Self::Data, Self::Filled, Self::Trimmed];

    fn code(self) -> u32 {
        match self {
            Self::Unwritten => 0,
            Self::Data => 1,
            Self::Filled => 2,
            Self::Trimmed => 3,
        }
    }
}

/// A slot of the table.
struct Slot {
    offset: u64,
    len: u32,
    state: State,
}

impl Slot {
    fn bytes(&self) -> [u8; SLOT_LEN as usize] {
        let mut bytes = [0; SLOT_LEN as usize];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.len.to_le_bytes());
        bytes[12..].copy_from_slice(&self.state.code().to_le_bytes());
        bytes
    }

    /// Of a slot without data.
    fn empty(state: State) -> [u8; SLOT_LEN as usize] {
        Self { offset: 0, len: 0, state }.bytes()
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

/// The head of an object.
struct Object {
    epoch: u64,
    first: u64,
    width: u64,
    slots: u64,
    /// The highest position written, and one; 0 when there is none.
    next: u64,
    /// Where the next data goes.
    free: u64,
}

impl Object {
    /// Of an object that is not newer than the caller's epoch.
    fn open(context: &mut dyn Context, epoch: u64) -> Result<Self, Failure> {
        let head = context.read(0, HEAD_LEN)?;
        if head.is_empty() {
            return Err(Refusal::NoObject.failure("there is no such object"));
        }
        if head.len() < HEAD_LEN as usize || !head.starts_with(MAGIC) {
            return Err(Refusal::Wrong.failure("the blob is no object of a log"));
        }
        let object = Self {
            epoch: u64_at(&head, EPOCH_AT as usize),
            first: u64_at(&head, FIRST_AT),
            width: u32_at(&head, WIDTH_AT).into(),
            slots: u32_at(&head, SLOTS_AT).into(),
            next: u64_at(&head, NEXT_AT),
            free: u64_at(&head, FREE_AT),
        };
        match epoch < object.epoch {
            true => Err(Refusal::Stale
                .failure(format!("epoch {epoch} is stale: the object has {}", object.epoch))),
            false => Ok(object),
        }
    }

    /// Which slot a position has.
    fn slot_of(&self, position: u64) -> Result<u64, Failure> {
        let relative = position.checked_sub(self.first).filter(|it| it % self.width == 0);
        relative.map(|it| it / self.width).filter(|slot| *slot < self.slots).ok_or_else(|| {
            Refusal::Wrong.failure(format!("position {position} is not of this object"))
        })
    }

    fn positions(&self) -> Bytes {
        Fields::of([self.epoch, self.next]).into()
    }
}

fn slot_at(slot: u64) -> u64 {
    HEAD_LEN + SLOT_LEN * slot
}

fn read_slot(context: &mut dyn Context, slot: u64) -> Result<Slot, Failure> {
    let bytes = context.read(slot_at(slot), SLOT_LEN)?;
    let code = u32_at(&bytes, 12);
    let state = State::ALL.into_iter().find(|state| state.code() == code);
    let state = state.ok_or_else(|| Refusal::Wrong.failure(format!("a slot has state {code}")))?;
    Ok(Slot { offset: u64_at(&bytes, 0), len: u32_at(&bytes, 8), state })
}

fn init(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([epoch, first, width, slots], _) = numbers(input)?;
    let bounds = 1..=SLOTS_MAX;
    if !bounds.contains(&width) || !bounds.contains(&slots) {
        return Err(Refusal::Wrong.failure("width and slots are 1 to 65536"));
    }
    if !context.read(0, HEAD_LEN)?.is_empty() {
        return Err(Refusal::Exists.failure("the object is there already"));
    }
    let mut head = vec![0; slot_at(slots) as usize];
    head[..8].copy_from_slice(MAGIC);
    head[EPOCH_AT as usize..FIRST_AT].copy_from_slice(&epoch.to_le_bytes());
    head[FIRST_AT..WIDTH_AT].copy_from_slice(&first.to_le_bytes());
    head[WIDTH_AT..SLOTS_AT].copy_from_slice(&(width as u32).to_le_bytes());
    head[SLOTS_AT..NEXT_AT].copy_from_slice(&(slots as u32).to_le_bytes());
    head[FREE_AT..FREE_AT + 8].copy_from_slice(&slot_at(slots).to_le_bytes());
    context.write(0, &head)?;
    Ok(Bytes::new())
}

fn read(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([epoch, position], _) = numbers(input)?;
    let object = Object::open(context, epoch)?;
    let slot = read_slot(context, object.slot_of(position)?)?;
    let invalid = |what| {
        let text = format!("position {position} was {what}: it has no data");
        Err(Refusal::Invalid.failure(text))
    };
    match slot.state {
        State::Unwritten => {
            Err(Refusal::NotWritten.failure(format!("position {position} is not written")))
        }
        State::Filled => invalid("filled"),
        State::Trimmed => invalid("trimmed"),
        State::Data => Ok(context.read(slot.offset, slot.len.into())?),
    }
}

fn write(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([epoch, position], data) = numbers(input)?;
    if data.len() > ENTRY_LEN_MAX {
        return Err(Refusal::Wrong.failure("an entry has at most 65536 bytes"));
    }
    let object = Object::open(context, epoch)?;
    let slot = object.slot_of(position)?;
    match read_slot(context, slot)?.state {
        State::Unwritten => {}
        State::Data | State::Filled | State::Trimmed => {
            return Err(Refusal::ReadOnly.failure(format!("position {position} is taken")));
        }
    }
    if !data.is_empty() {
        context.write(object.free, data)?;
    }
    let len = data.len() as u32;
    let taken = Slot { offset: object.free, len, state: State::Data };
    context.write(slot_at(slot), &taken.bytes())?;
    let ends = Fields::of([object.next.max(position + 1), object.free + u64::from(len)]);
    context.write(NEXT_AT as u64, &Bytes::from(ends))?;
    Ok(Bytes::new())
}

fn fill(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([epoch, position], _) = numbers(input)?;
    let slot = Object::open(context, epoch)?.slot_of(position)?;
    match read_slot(context, slot)?.state {
        State::Filled | State::Trimmed => {}
        State::Unwritten => context.write(slot_at(slot), &Slot::empty(State::Filled))?,
        State::Data => {
            return Err(Refusal::ReadOnly.failure(format!("position {position} has data")));
        }
    }
    Ok(Bytes::new())
}

fn trim(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([epoch, position, count], _) = numbers(input)?;
    let object = Object::open(context, epoch)?;
    let slot = object.slot_of(position)?;
    let left = object.slots - slot;
    if !(1..=left).contains(&count) {
        let text = format!("this object has {left} positions from there on");
        return Err(Refusal::Wrong.failure(text));
    }
    context.write(slot_at(slot), &Slot::empty(State::Trimmed).repeat(count as usize))?;
    Ok(Bytes::new())
}

fn seal(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([epoch], _) = numbers(input)?;
    let object = Object::open(context, epoch)?;
    if object.epoch == epoch {
        let text = format!("epoch {epoch} is stale: the object has it");
        return Err(Refusal::Stale.failure(text));
    }
    context.write(EPOCH_AT, &epoch.to_le_bytes())?;
    Ok(Object { epoch, ..object }.positions())
}

fn max_position(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let ([epoch], _) = numbers(input)?;
    Ok(Object::open(context, epoch)?.positions())
}

const METHODS: &[Method] = &[
    ("fill", MethodKind::Call, fill),
    ("init", MethodKind::Call, init),
    ("max_position", MethodKind::Query, max_position),
    ("read", MethodKind::Query, read),
    ("seal", MethodKind::Call, seal),
    ("trim", MethodKind::Call, trim),
    ("write", MethodKind::Call, write),
];

/// The class of storage objects.
pub fn object_class() -> NativeClass {
    NativeClass::new(OBJECT_CLASS, METHODS)
}
