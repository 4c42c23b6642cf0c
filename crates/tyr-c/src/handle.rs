//! Handles: what a program in C holds in the place of an object.
//!
//! A handle looks like a pointer, so that C tells a keyspace from a store. It points to nothing: it
//! is a number that is looked up here, of the kind, the place in the table, and how often that
//! place was used before. So a handle that was freed, is of another kind, or was never one, is
//! found out and told, and never read through.
//!
//! ```text
//!   63      56 55                    24 23            0
//!  +----------+------------------------+---------------+
//!  |   kind   |       generation       |     place     |
//!  +----------+------------------------+---------------+
//! ```

use std::sync::Arc;

use parking_lot::RwLock;

use crate::failure::Failure;
use crate::object::{Kind, NAMES, Object};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("handles of libtyr are numbers of 64 bits in the place of pointers");

const PLACE_BITS: u32 = 24;
const KIND_SHIFT: u32 = 56;

/// Handles that a process has at most.
const HANDLES_MAX: usize = 1 << PLACE_BITS;

/// The handles of a process, or of a test.
#[derive(Debug)]
pub struct Table(RwLock<Slots>);

#[derive(Debug)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    /// How often the place was given out, from 1.
    generation: u32,
    object: Option<Object>,
}

/// All handles of this process.
pub static HANDLES: Table = Table::new();

impl Table {
    const fn new() -> Self {
        Self(RwLock::new(Slots { slots: Vec::new(), free: Vec::new() }))
    }

    /// Gives an object a handle.
    ///
    /// # Errors
    /// `InvalidArgument` when there are too many.
    pub fn add<T: Kind>(&self, object: T) -> Result<usize, Failure> {
        let mut table = self.0.write();
        let place = match table.free.pop() {
            Some(place) => place,
            None if table.slots.len() == HANDLES_MAX => {
                return Err(Failure::invalid(format!(
                    "this process has {HANDLES_MAX} handles; free those it is done with"
                )));
            }
            None => {
                table.slots.push(Slot { generation: 0, object: None });
                table.slots.len() as u32 - 1
            }
        };
        let slot = &mut table.slots[place as usize];
        slot.generation = slot.generation.wrapping_add(1).max(1);
        slot.object = Some(object.into_object());
        Ok(handle(T::KIND, slot.generation, place))
    }

    /// The object of a handle.
    ///
    /// # Errors
    /// `InvalidArgument` when it is NULL, of another kind, freed, or no handle.
    pub fn get<T: Kind>(&self, handle: usize) -> Result<Arc<T>, Failure> {
        let (generation, place) = parts::<T>(handle)?;
        let table = self.0.read();
        let slot = table.slots.get(place).filter(|slot| slot.generation == generation);
        let found = slot.and_then(|slot| slot.object.as_ref()).and_then(T::of);
        found.cloned().ok_or_else(|| freed::<T>())
    }

    /// Takes the handle back: it is none any more.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn take<T: Kind>(&self, handle: usize) -> Result<Arc<T>, Failure> {
        let (generation, place) = parts::<T>(handle)?;
        let mut table = self.0.write();
        let slot = table.slots.get_mut(place).filter(|slot| slot.generation == generation);
        let slot = slot.ok_or_else(|| freed::<T>())?;
        let found = slot.object.as_ref().and_then(T::of).cloned();
        let found = found.ok_or_else(|| freed::<T>())?;
        // It is dropped by the caller, outside of the lock.
        let object = slot.object.take();
        table.free.push(place as u32);
        drop(table);
        drop(object);
        Ok(found)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        let table = self.0.read();
        table.slots.len() - table.free.len()
    }
}

fn handle(kind: u8, generation: u32, place: u32) -> usize {
    (kind as usize) << KIND_SHIFT | (generation as usize) << PLACE_BITS | place as usize
}

fn parts<T: Kind>(handle: usize) -> Result<(u32, usize), Failure> {
    let wanted = T::NAME;
    let kind = handle >> KIND_SHIFT;
    if handle == 0 {
        return Err(Failure::invalid(format!("the {wanted} is NULL")));
    }
    if kind == T::KIND as usize {
        return Ok(((handle >> PLACE_BITS) as u32, handle & (HANDLES_MAX - 1)));
    }
    Err(Failure::invalid(match NAMES.get(kind.wrapping_sub(1)) {
        Some(other) => format!("this is a {other} where a {wanted} is wanted"),
        None => format!("this is no {wanted}: no function of Týr gave it out"),
    }))
}

fn freed<T: Kind>() -> Failure {
    Failure::invalid(format!("this {} was freed, closed, committed or rolled back before", T::NAME))
}

#[cfg(test)]
mod tests {
    use tyr::Bytes;

    use super::*;
    use crate::object::Page;

    fn text<T: Kind>(found: Result<Arc<T>, Failure>) -> String {
        found.map(drop).unwrap_err().text().to_string_lossy().into_owned()
    }

    #[test]
    fn a_handle_is_what_it_was_given_for_until_it_is_taken_back() {
        let table = Table::new();
        let one = table.add(Bytes::from("one")).unwrap();
        let two = table.add(Bytes::from("two")).unwrap();
        assert_eq!(*table.get::<Bytes>(one).unwrap(), "one");
        assert_eq!(*table.take::<Bytes>(one).unwrap(), "one");
        assert!(text(table.get::<Bytes>(one)).contains("freed"));
        assert!(text(table.take::<Bytes>(one)).contains("freed"));
        assert_eq!(*table.get::<Bytes>(two).unwrap(), "two");
        let three = table.add(Bytes::from("three")).unwrap();
        assert_ne!(one, three, "the place is used again, the handle is not");
        assert!(text(table.get::<Bytes>(one)).contains("freed"));
        assert_eq!(table.count(), 2);
    }

    #[test]
    fn what_is_no_handle_of_that_kind_is_told() {
        let table = Table::new();
        let bytes = table.add(Bytes::from("one")).unwrap();
        assert!(text(table.get::<Page>(bytes)).contains("a tyr_bytes where a tyr_page is wanted"));
        assert!(text(table.get::<Page>(0)).contains("NULL"));
        let on_the_stack = 0x7fff_dead_beef_usize;
        assert!(text(table.get::<Page>(on_the_stack)).contains("no function of Týr"));
        let far = handle(Page::KIND, 1, 77);
        assert!(text(table.get::<Page>(far)).contains("freed"));
    }
}
