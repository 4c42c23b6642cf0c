//! Whether every page of every file is accounted for.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::{Audit, Finding};
use crate::base::{key, record};
use crate::index::Table;
use crate::pages::PageSpan;

/// Pages that were met, a bit each.
#[derive(Default)]
pub(super) struct PagesMet(BTreeMap<u32, Vec<u64>>);

impl PagesMet {
    /// Meets these; answers whether it is the first time for all of them.
    pub fn meet(&mut self, span: PageSpan) -> bool {
        let bits = self.0.entry(span.file).or_default();
        let mut is_first = true;
        for page in span.first..span.first + span.count {
            let (word, bit) = (page as usize / 64, 1 << (page % 64));
            if bits.len() <= word {
                bits.resize(word + 1, 0);
            }
            is_first &= bits[word] & bit == 0;
            bits[word] |= bit;
        }
        is_first
    }

    fn has_any(&self, span: PageSpan) -> bool {
        let Some(bits) = self.0.get(&span.file) else { return false };
        let is_met = |page: u32| {
            bits.get(page as usize / 64).is_some_and(|word| word & (1 << (page % 64)) != 0)
        };
        (span.first..span.first + span.count).any(is_met)
    }

    fn files(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    fn count(&self, file: u32) -> u32 {
        self.0.get(&file).map_or(0, |bits| bits.iter().map(|word| word.count_ones()).sum())
    }
}

impl Audit<'_> {
    /// Each page of a file is in use, is free or will be, or was given back.
    pub(super) fn pages(&mut self) {
        let end = key::behind(key::DEAD_PAGES).expect("the prefix is not the last");
        let (mut dead, mut found) = (PagesMet::default(), Vec::new());
        let used = &self.pages;
        let mut visit = |key: &[u8], value: &Bytes| {
            match record::decode_dead_pages(value) {
                Some(spans) => {
                    for span in spans {
                        if !dead.meet(span) || used.has_any(span) {
                            found.push(format!("{span:?} is free, and is in use"));
                        }
                    }
                }
                None => found.push(format!("key \"{}\" is no pages", key.escape_ascii())),
            }
            Ok(true)
        };
        let result = self.base.index.scan(Table::Meta, key::DEAD_PAGES, Some(&end), &mut visit);
        found.extend(result.err().map(|error| error.to_string()));
        for what in found {
            self.error("index table meta", what);
        }
        let settled = self.base.pages.settled();
        for number in self.pages.files().chain(dead.files()).collect::<BTreeSet<_>>() {
            if !settled.contains_key(&number) {
                self.error(
                    self.base.pages.path(number),
                    "is in use, and the index has no such file",
                );
            }
        }
        for (number, file) in settled {
            let path = self.base.pages.path(number);
            let met = self.pages.count(number) + dead.count(number) + file.freed;
            if met + 1 > file.end {
                let what = format!("has {} pages, and {met} are in use or free", file.end - 1);
                self.error(path, what);
            } else if met + 1 < file.end {
                let what = format!("{} of its pages belong to nothing", file.end - 1 - met);
                self.auditor.found(Finding::warning(path, what));
            }
        }
    }
}
