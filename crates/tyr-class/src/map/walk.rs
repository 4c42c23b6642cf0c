//! A walk over all of a map: what its invariants are, and how large it is.

use std::collections::BTreeSet;

use tyr_types::{Bytes, Result};

use super::page::{Page, Value, damage};
use super::part;
use super::tree::{DEPTH_MAX, Tree};

/// How large a map is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Keys.
    pub keys: usize,
    /// Pages, with the first one and those that are free.
    pub pages: usize,
    /// Of these, the free ones.
    pub free: usize,
    /// Pages from the root to a leaf.
    pub depth: usize,
}

/// A page to look at: its number, its depth, and where its keys lie.
struct Place {
    number: u32,
    depth: usize,
    low: Bytes,
    high: Option<Bytes>,
}

/// Looks at every page.
///
/// # Errors
/// `Corrupt`, naming the first page where something is wrong.
pub fn walk(tree: &mut Tree<'_>) -> Result<Shape> {
    let mut shape = Shape { pages: tree.roots.pages as usize, ..Shape::default() };
    let mut seen = BTreeSet::new();
    let root = Place { number: tree.roots.root, depth: 1, low: Bytes::new(), high: None };
    let mut open = vec![root];
    while let Some(place) = open.pop() {
        see(&mut seen, place.number)?;
        let page = Page::read(tree.region, place.number)?;
        let wrong = |what: &str| damage(place.number, what);
        let is_inside =
            |key: &[u8]| *key >= *place.low && place.high.as_ref().is_none_or(|high| *key < **high);
        if !(0..page.len()).all(|index| is_inside(page.key(index))) {
            return Err(wrong("its keys belong elsewhere"));
        }
        if place.depth > DEPTH_MAX {
            return Err(wrong("the way to it is longer than one can be"));
        }
        if page.is_inner {
            open.extend(children(tree, &page, &place)?);
            continue;
        }
        if shape.depth != 0 && shape.depth != place.depth {
            return Err(wrong("it is a leaf at another depth than others"));
        }
        shape.depth = place.depth;
        shape.keys += page.len();
        for record in page.records() {
            if let Value::Elsewhere { page, len } = record.value {
                for number in part::pages(tree.region, &tree.roots, page, len)? {
                    see(&mut seen, number)?;
                }
            }
        }
    }
    let mut free = tree.roots.free;
    while free != 0 {
        see(&mut seen, free)?;
        shape.free += 1;
        free = tree.roots.next_free(tree.region, free)?;
    }
    if seen.len() + 1 != shape.pages {
        return Err(damage(0, "it counts pages that nothing leads to"));
    }
    Ok(shape)
}

fn see(seen: &mut BTreeSet<u32>, number: u32) -> Result<()> {
    if seen.insert(number) { Ok(()) } else { Err(damage(number, "more than one page leads to it")) }
}

fn children(tree: &Tree<'_>, page: &Page, place: &Place) -> Result<Vec<Place>> {
    let key = |index: usize| page.record(index).key;
    (0..=page.len())
        .map(|child| {
            Ok(Place {
                number: tree.roots.check(page.number, page.child(child))?,
                depth: place.depth + 1,
                low: if child == 0 { place.low.clone() } else { key(child - 1) },
                high: if child < page.len() { Some(key(child)) } else { place.high.clone() },
            })
        })
        .collect()
}
