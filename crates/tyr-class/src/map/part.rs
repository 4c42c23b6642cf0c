//! Values that are too long for a leaf: they lie in pages of their own, one leading to the next.
//!
//! ```text
//!    0  kind       u8, 3
//!    1  zeros      3
//!    4  next       u32, the page with what follows; 0 in the last
//!    8  bytes
//! 4096
//! ```

use tyr_types::{Bytes, Result};

use super::header::Roots;
use super::page::{PAGE_LEN, PageKind, damage, offset_of, u32_at};
use super::region::Region;
use crate::limits::MAP_VALUE_LEN_MAX;

const HEAD_LEN: usize = 8;
const PART_LEN: usize = PAGE_LEN - HEAD_LEN;

/// How many pages a value of `len` bytes takes.
pub fn count(len: usize) -> usize {
    len.div_ceil(PART_LEN)
}

/// Writes a value to pages that it takes; answers the first.
///
/// # Errors
/// `QuotaExceeded` when there are no more pages.
pub fn write(region: &mut dyn Region, roots: &mut Roots, value: &[u8]) -> Result<u32> {
    let mut next = 0;
    for part in value.chunks(PART_LEN).rev() {
        let number = roots.take_page(region)?;
        let mut bytes = Vec::with_capacity(HEAD_LEN + part.len());
        bytes.extend_from_slice(&[PageKind::Part.code(), 0, 0, 0]);
        bytes.extend_from_slice(&u32::to_le_bytes(next));
        bytes.extend_from_slice(part);
        region.write(offset_of(number), &bytes)?;
        next = number;
    }
    Ok(next)
}

/// The value of `len` bytes that begins in page `first`.
///
/// # Errors
/// `Corrupt`, naming the page.
pub fn read(region: &mut dyn Region, roots: &Roots, first: u32, len: u32) -> Result<Bytes> {
    let mut value = Vec::new();
    walk(region, roots, first, len, |_, part| value.extend_from_slice(part))?;
    Ok(value.into())
}

/// Gives the pages of a value back.
///
/// # Errors
/// `Corrupt`, naming the page.
pub fn give_back(region: &mut dyn Region, roots: &mut Roots, first: u32, len: u32) -> Result<()> {
    for number in pages(region, roots, first, len)? {
        roots.give_page(region, number)?;
    }
    Ok(())
}

/// The pages of a value.
///
/// # Errors
/// `Corrupt`, naming the page.
pub fn pages(region: &mut dyn Region, roots: &Roots, first: u32, len: u32) -> Result<Vec<u32>> {
    let mut pages = Vec::new();
    walk(region, roots, first, len, |number, _| pages.push(number))?;
    Ok(pages)
}

fn walk(
    region: &mut dyn Region,
    roots: &Roots,
    first: u32,
    len: u32,
    mut visit: impl FnMut(u32, &[u8]),
) -> Result<()> {
    let (mut number, mut left) = (first, len as usize);
    if left > MAP_VALUE_LEN_MAX {
        return Err(damage(first, "a value that begins here is longer than one can be"));
    }
    while left > 0 {
        roots.check(first, number)?;
        let here = left.min(PART_LEN);
        let bytes = region.read(offset_of(number), HEAD_LEN + here)?;
        if bytes.len() < HEAD_LEN + here || PageKind::of(bytes[0]) != Some(PageKind::Part) {
            return Err(damage(number, "it is no part of a value"));
        }
        let next = u32_at(&bytes, 4);
        visit(number, &bytes[HEAD_LEN..]);
        (number, left) = (next, left - here);
    }
    Ok(())
}
