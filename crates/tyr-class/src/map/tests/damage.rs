//! Maps of any bytes.

use proptest::prelude::*;
use tyr_types::ErrorKind;

use super::super::Map;
use super::super::page::PAGE_LEN;
use super::{key, sample};
use crate::limits::MAP_LISTED_MAX;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(200)))]

    #[test]
    fn any_bytes_in_its_pages_are_errors_and_nothing_worse(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
        in_heads in any::<bool>(),
        key in key(),
    ) {
        let mut region = sample();
        for (at, byte) in changes {
            // Heads and slots lead elsewhere; most other bytes are of keys and values.
            let at = at.index(region.len());
            let at = if in_heads { at - at % PAGE_LEN + at % 40 } else { at };
            region[at] = byte;
        }
        use_all(&mut region, &key);
    }

    #[test]
    fn any_bytes_at_all_are_errors_and_nothing_worse(
        page in prop::collection::vec(any::<u8>(), PAGE_LEN),
        kind in 0_u8..6,
        key in key(),
    ) {
        let mut region = sample();
        let at = region[8] as usize * PAGE_LEN;
        region[at..at + PAGE_LEN].copy_from_slice(&page);
        region[at] = kind;
        use_all(&mut region, &key);
    }
}

/// Whatever comes of it, it comes.
fn use_all(region: &mut Vec<u8>, key: &[u8]) {
    let mut map = Map::new(region);
    let _ = map.invariants();
    let _ = map.get(key);
    let _ = map.next(&[], MAP_LISTED_MAX);
    let _ = map.prefix(&key[..1], &[], 10);
    let _ = map.header();
    let _ = map.set(key, &[2; 5_000]);
    let _ = map.set(key, &[2; 900]);
    for number in 0_u32..300 {
        let _ = map.remove(&number.wrapping_mul(0x9E37_79B1).to_be_bytes());
    }
    map.clear().unwrap();
    map.set(b"a", b"b").unwrap();
    assert_eq!(map.invariants().unwrap().keys, 1);
}

#[test]
fn damage_names_its_page() {
    let mut region = sample();
    let root = usize::from(region[8]);
    region[root * PAGE_LEN] = 9;
    let error = Map::new(&mut region).get(b"a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains(&format!("page {root} of the map")), "{error}");
    region[0] = 0;
    assert!(Map::new(&mut region).get(b"a").unwrap_err().message().contains("page 0"));
    let mut later = sample();
    later[6] = 2;
    assert_eq!(Map::new(&mut later).get(b"a").unwrap_err().kind(), ErrorKind::Unavailable);
}
