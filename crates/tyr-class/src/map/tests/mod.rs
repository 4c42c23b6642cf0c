//! Maps against `BTreeMap`, and what an insert writes.

mod damage;

use std::collections::BTreeMap;

use proptest::prelude::*;
use tyr_types::{Bytes, ErrorKind, Result};

use super::{Map, Region};
use crate::limits::{MAP_HEADER_LEN_MAX, MAP_KEY_LEN_MAX, MAP_LISTED_MAX, MAP_VALUE_LEN_MAX};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, usize, u8),
    Remove(Vec<u8>),
    RemoveFrom(Vec<u8>, usize),
    Next(Vec<u8>, usize),
    Prefix(Vec<u8>, usize),
    Header(usize),
    Clear,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    let short = prop::collection::vec(0_u8..4, 1..5);
    let long = (0_u8..4, 1_usize..=MAP_KEY_LEN_MAX).prop_map(|(byte, len)| vec![byte; len]);
    prop_oneof![6 => short, 1 => long]
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![8 => 0_usize..60, 3 => 0_usize..1_100, 1 => 0_usize..20_000];
    prop_oneof![
        30 => (key(), len, any::<u8>()).prop_map(|(key, len, byte)| Step::Set(key, len, byte)),
        10 => key().prop_map(Step::Remove),
        2 => (key(), 1_usize..40).prop_map(|(key, count)| Step::RemoveFrom(key, count)),
        3 => (key(), 0_usize..30).prop_map(|(key, count)| Step::Next(key, count)),
        3 => (prop::collection::vec(0_u8..4, 0..3), 0_usize..30)
            .prop_map(|(prefix, count)| Step::Prefix(prefix, count)),
        1 => (0..MAP_HEADER_LEN_MAX).prop_map(Step::Header),
        1 => prop_oneof![Just(Step::Clear), Just(Step::Header(3)), Just(Step::Header(0))],
    ]
}

fn plain(entries: Vec<(Bytes, Bytes)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    entries.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn run(region: &mut Vec<u8>, model: &mut Model, header: &mut Vec<u8>, step: &Step) {
    let mut map = Map::new(region);
    let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    match step {
        Step::Set(key, len, byte) => {
            let value = vec![*byte; *len];
            map.set(key, &value).unwrap();
            model.insert(key.clone(), value);
        }
        Step::Remove(key) => {
            assert_eq!(map.remove(key).unwrap(), model.remove(key).is_some());
        }
        Step::RemoveFrom(key, count) => {
            for key in map.keys(key, &[], *count).unwrap() {
                assert!(map.remove(&key).unwrap() && model.remove(&key[..]).is_some());
            }
        }
        Step::Next(after, count) => {
            let above = model.iter().filter(|(key, _)| *key > after);
            let wanted: Vec<_> = above.take(*count).map(owned).collect();
            assert_eq!(plain(map.next(after, *count).unwrap()), wanted);
        }
        Step::Prefix(prefix, count) => {
            let with = model.iter().filter(|(key, _)| key.starts_with(prefix));
            let wanted: Vec<_> = with.take(*count).map(owned).collect();
            assert_eq!(plain(map.prefix(prefix, &[], *count).unwrap()), wanted);
        }
        Step::Header(len) => {
            *header = vec![7; *len];
            map.set_header(header).unwrap();
        }
        Step::Clear => {
            map.clear().unwrap();
            model.clear();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(60)))]

    #[test]
    fn a_map_is_a_sorted_map(steps in prop::collection::vec(step(), 1..250)) {
        let (mut region, mut model, mut header) = (Vec::new(), Model::new(), Vec::new());
        for step in &steps {
            run(&mut region, &mut model, &mut header, step);
            let mut map = Map::new(&mut region);
            let shape = map.invariants().unwrap();
            prop_assert_eq!(shape.keys, model.len());
            prop_assert_eq!(&map.header().unwrap(), &header);
        }
        let mut map = Map::new(&mut region);
        for (key, value) in &model {
            prop_assert_eq!(map.get(key).unwrap().unwrap(), value);
        }
        prop_assert_eq!(plain(map.next(&[], MAP_LISTED_MAX).unwrap()),
            model.into_iter().collect::<Vec<_>>());
    }
}

/// A map with inner pages, long values, and free pages.
fn sample() -> Vec<u8> {
    let mut region = Vec::new();
    let mut map = Map::new(&mut region);
    for number in 0_u32..300 {
        let len = if number % 50 == 0 { 9_000 } else { 40 };
        map.set(&number.wrapping_mul(0x9E37_79B1).to_be_bytes(), &vec![1; len]).unwrap();
    }
    for number in 0_u32..30 {
        map.remove(&number.wrapping_mul(0x9E37_79B1).to_be_bytes()).unwrap();
    }
    map.set_header(b"header").unwrap();
    region
}

/// Which ranges are written and read.
#[derive(Default)]
struct Watched {
    bytes: Vec<u8>,
    written: Vec<std::ops::Range<u64>>,
    read: Vec<std::ops::Range<u64>>,
}

impl Region for Watched {
    fn size(&mut self) -> Result<u64> {
        self.bytes.size()
    }

    fn read(&mut self, offset: u64, len: usize) -> Result<Bytes> {
        self.read.push(offset..offset + len as u64);
        self.bytes.read(offset, len)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.written.push(offset..offset + data.len() as u64);
        self.bytes.write(offset, data)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        Region::truncate(&mut self.bytes, size)
    }
}

#[test]
fn inserts_into_different_leaves_write_nothing_that_the_other_touches() {
    let insert = |key: &[u8]| {
        let mut region = Watched { bytes: sample(), ..Watched::default() };
        Map::new(&mut region).set(key, &[3; 40]).unwrap();
        region
    };
    let [low, high] = [insert(&[1, 1, 1, 1, 1]), insert(&[0xF0, 1, 1, 1, 1])];
    let overlaps = |a: &std::ops::Range<u64>, b: &std::ops::Range<u64>| {
        a.start.max(b.start) < a.end.min(b.end)
    };
    for (one, other) in [(&low, &high), (&high, &low)] {
        let bytes: u64 = one.written.iter().map(|range| range.end - range.start).sum();
        assert!(bytes < 5 + 40 + 16 + 2 * 80, "{:?}", one.written);
        let touched = || other.written.iter().chain(&other.read);
        assert!(!one.written.iter().any(|range| touched().any(|it| overlaps(range, it))));
    }
}

#[test]
fn pages_that_became_free_are_taken_again() {
    let mut region = Vec::new();
    let mut map = Map::new(&mut region);
    for round in 0_u32..20 {
        for number in 0_u32..500 {
            map.set(&(round * 1_000 + number).to_be_bytes(), &[5; 30]).unwrap();
        }
        for number in 0_u32..500 {
            assert!(map.remove(&(round * 1_000 + number).to_be_bytes()).unwrap());
        }
    }
    let shape = map.invariants().unwrap();
    assert_eq!((shape.keys, shape.depth), (0, 1));
    assert!(shape.pages < 20, "{shape:?}");
}

#[test]
fn bounds_are_told() {
    let mut region = Vec::new();
    let mut map = Map::new(&mut region);
    map.set(&[1; MAP_KEY_LEN_MAX], &[2; MAP_VALUE_LEN_MAX]).unwrap();
    assert_eq!(map.get(&[1; MAP_KEY_LEN_MAX]).unwrap().unwrap().len(), MAP_VALUE_LEN_MAX);
    let told = |error: tyr_types::Error, what: &str| {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(what), "{error}");
    };
    told(map.set(&[1; MAP_KEY_LEN_MAX + 1], &[]).unwrap_err(), "1 to 1000 bytes");
    told(map.get(&[]).unwrap_err(), "1 to 1000 bytes");
    told(map.set(b"a", &[2; MAP_VALUE_LEN_MAX + 1]).unwrap_err(), "65536 bytes");
    told(map.set_header(&[2; MAP_HEADER_LEN_MAX + 1]).unwrap_err(), "4000 bytes");
    told(map.next(&[], MAP_LISTED_MAX + 1).unwrap_err(), "0 to 10000");
}

#[test]
fn a_full_map_refuses_and_stays_as_it_was() {
    let mut region = Vec::new();
    let mut map = Map::new(&mut region);
    let value = vec![1; MAP_VALUE_LEN_MAX];
    let full = (0_u32..).find_map(|number| map.set(&number.to_be_bytes(), &value).err());
    assert_eq!(full.unwrap().kind(), ErrorKind::QuotaExceeded);
    let shape = map.invariants().unwrap();
    assert!(shape.pages > 16_000, "{shape:?}");
    assert!(map.remove(&7_u32.to_be_bytes()).unwrap());
    map.set(&7_000_000_u32.to_be_bytes(), &value).unwrap();
    assert_eq!(map.invariants().unwrap().keys, shape.keys);
}
