//! Which cases a benchmark consists of, in the order of a run.

use tyr::Durability;

use super::Scenario;
use super::calls;
use super::case::Case;
use super::log::Work;
use super::random::whole_pieces;

/// Threads of the mix.
const MIX_THREADS: usize = 32;
/// Writers among them: 5, 35, 65 and 95 %, rounded.
const MIX_WRITERS: [usize; 4] = [2, 11, 21, 30];

/// Bytes of the blobs of `return` and `restart`, and how many change.
pub const SMALL_LEN: u64 = 100;
const SMALL_CHANGED: u64 = 232;
const LARGE_LEN: u64 = 1 << 20;
const LARGE_CHANGED: u64 = 104;

/// How large the cases are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the stream, of which the blobs of `random` and `endurance` have a part.
    pub bytes: u64,
    /// Blobs of `open`.
    pub opened: u64,
    /// Small blobs of `return`.
    pub small: u64,
    /// Large ones.
    pub large: u64,
}

/// Where a case works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// In a new folder, removed afterwards.
    Fresh,
    /// In the folder of this name, which stays.
    Kept(&'static str),
}

/// One case of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// What is measured.
    pub case: Case,
    /// Where.
    pub folder: Folder,
    /// Only in the first run: the others use what it left.
    pub is_once: bool,
}

/// The cases of the `wanted` scenarios.
pub fn plan(wanted: &[Scenario], sizes: Sizes) -> Vec<Item> {
    let Sizes { bytes, opened: blobs, .. } = sizes;
    let mut items = Vec::new();
    for scenario in Scenario::ALL.into_iter().filter(|scenario| wanted.contains(scenario)) {
        match scenario {
            Scenario::Open => {
                let folder = Folder::Kept("open");
                items.push(Item { case: Case::Build { blobs }, folder, is_once: true });
                items.push(Item { case: Case::Open { blobs }, folder, is_once: false });
            }
            Scenario::Monalisa => items.extend(monalisa().map(fresh)),
            Scenario::Reads => items.extend([1, 32].map(|readers| fresh(Case::Reads { readers }))),
            Scenario::Transforms => items.extend(
                [true, false]
                    .map(|is_in_place| fresh(Case::Transforms { is_in_place, writers: 32 })),
            ),
            Scenario::Mix => items.extend(
                MIX_WRITERS
                    .map(|writers| fresh(Case::Mix { writers, readers: MIX_THREADS - writers })),
            ),
            Scenario::Stream => items.extend(stream(bytes).map(fresh)),
            Scenario::Random => items.extend(random(bytes).map(fresh)),
            Scenario::RandomNode => items.extend(random_on_a_node(bytes).map(fresh)),
            Scenario::Return => items.extend(returning(sizes).map(fresh)),
            Scenario::Restart => items.push(fresh(Case::Restart { blobs: sizes.small })),
            Scenario::Log => items.extend(log().map(fresh)),
            Scenario::Calls => items.extend(calls().map(fresh)),
            Scenario::Endurance => {
                items.push(fresh(Case::Endurance { bytes: whole_pieces(bytes / 8) }));
            }
        }
    }
    items
}

fn fresh(case: Case) -> Item {
    Item { case, folder: Folder::Fresh, is_once: false }
}

fn monalisa() -> impl Iterator<Item = Case> {
    [Durability::Memory, Durability::Buffered, Durability::Sync].into_iter().flat_map(
        |durability| {
            [1, 32, 128]
                .map(|writers| Case::Monalisa { durability: durability.name().to_owned(), writers })
        },
    )
}

/// Blob and plain file by turns, so that both meet the same disk.
fn stream(bytes: u64) -> impl Iterator<Item = Case> {
    [true, false].into_iter().flat_map(move |is_synced| {
        [true, false].map(|is_plain_file| Case::Stream { is_plain_file, is_synced, bytes })
    })
}

/// A blob of half the bytes; of an eighth where an overwrite costs more a byte, so that it ends.
fn random(bytes: u64) -> [Case; 4] {
    [
        (Durability::Buffered, 4096, bytes / 2),
        (Durability::Buffered, 512, bytes / 8),
        (Durability::Buffered, 65_536, bytes / 2),
        (Durability::Sync, 4096, bytes / 8),
    ]
    .map(|(durability, len, bytes)| Case::Random {
        durability: durability.name().to_owned(),
        len,
        bytes: whole_pieces(bytes),
        is_on_node: false,
    })
}

/// The cases with 4 KiB again, on a node.
fn random_on_a_node(bytes: u64) -> impl Iterator<Item = Case> {
    random(bytes).into_iter().filter_map(|case| match case {
        Case::Random { durability, len: len @ 4096, bytes, .. } => {
            Some(Case::Random { durability, len, bytes, is_on_node: true })
        }
        _ => None,
    })
}

/// Many small blobs, of which few change, and large ones, of which more do; of few a tenth.
fn returning(sizes: Sizes) -> [Case; 2] {
    [(sizes.small, SMALL_LEN, SMALL_CHANGED), (sizes.large, LARGE_LEN, LARGE_CHANGED)].map(
        |(blobs, len, changed)| {
            let changed = changed.min(blobs.div_ceil(10));
            Case::Return { blobs, len, changed }
        },
    )
}

fn log() -> [Case; 5] {
    [
        (Work::Append, Durability::Buffered, 1),
        (Work::Append, Durability::Buffered, 32),
        (Work::Append, Durability::Sync, 32),
        (Work::Batches, Durability::Buffered, 1),
        (Work::Pop, Durability::Buffered, 1),
    ]
    .map(|(work, durability, threads)| Case::Log {
        work,
        durability: durability.name().to_owned(),
        threads,
    })
}

/// A plain write and a call by turns, so that both meet the same disk.
fn calls() -> [Case; 5] {
    [
        (calls::Work::Plain, 1),
        (calls::Work::Call, 1),
        (calls::Work::Plain, 32),
        (calls::Work::Call, 32),
        (calls::Work::Hot, 32),
    ]
    .map(|(work, threads)| Case::Calls { work, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { bytes: 4 << 30, opened: 1_000_000, small: 3_000, large: 16 };

    #[test]
    fn the_whole_plan_has_every_scenario_and_no_case_twice() {
        let items = plan(&Scenario::ALL, SIZES);
        for scenario in Scenario::ALL {
            assert!(items.iter().any(|item| item.case.scenario() == scenario), "{scenario:?}");
        }
        let mut labels: Vec<String> = items.iter().map(|item| item.case.label()).collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), items.len());
    }

    #[test]
    fn only_the_wanted_scenarios_are_planned() {
        let items = plan(&[Scenario::Reads], SIZES);
        assert!(items.iter().all(|item| item.case.scenario() == Scenario::Reads));
        assert_eq!(items.len(), 2);
    }

    #[test]
    fn cases_survive_the_way_to_a_child_process() {
        for item in plan(&Scenario::ALL, SIZES) {
            let text = serde_json::to_string(&item.case).unwrap();
            assert_eq!(serde_json::from_str::<Case>(&text).unwrap(), item.case);
        }
    }
}
