//! What is kept reads as it was, whatever is folded, dropped and lost afterwards.

use tyr_types::KeptName;

use super::*;
use crate::base::KeptStretches;

fn kept(number: u64) -> KeptName {
    KeptName::new(&format!("kept-{number}")).unwrap()
}

/// What blobs were at a moment, by the model.
fn state<'m>(
    model: &'m BTreeMap<&str, History>,
    clock: u64,
) -> impl Iterator<Item = (&'m str, Option<&'m Vec<u8>>)> {
    let last = move |history: &'m History| history.range(..=clock).next_back()?.1.as_ref();
    model.iter().map(move |(key, history)| (*key, last(history))).collect::<Vec<_>>().into_iter()
}

fn compare_kept(
    fixture: &Fixture,
    random: &mut Random,
    model: &BTreeMap<&str, History>,
    clock: u64,
) {
    let all = ByteRange { start: 0, end: u64::MAX / 4 };
    let listed = fixture.base.kept_keys(fixture.keyspace, &KeyRange::of(b"", None), at(clock), 100);
    let listed = listed.unwrap().keys;
    for (key, wanted) in state(model, clock) {
        let name = fixture.name(key);
        let found = fixture.base.read_kept(&name, all, at(clock)).unwrap();
        let found = found.map(|(blob, bytes)| {
            assert_eq!(blob.size, bytes.len() as u64);
            bytes
        });
        assert!(found.as_ref() == wanted, "{key:?} at {clock} differs");
        let Some(content) = wanted else { continue };
        let is_in_base = fixture.base.attributes(&name).unwrap().is_some();
        assert!(is_in_base || listed.contains(&name.key), "{key:?} at {clock} is not listed");
        let start = random.below(content.len() as u64 + 1);
        let end = start + random.below(content.len() as u64 + 1 - start);
        let range = ByteRange { start, end };
        let (_, part) = fixture.base.read_kept(&name, range, at(clock)).unwrap().unwrap();
        assert!(part == content[start as usize..end as usize], "{key:?} at {clock}, {range:?}");
        let limit = 1 + random.below(5) as usize;
        let KeptStretches { written, resume, .. } =
            fixture.base.stretches_kept(&name, range, at(clock), limit).unwrap().unwrap();
        let known = resume.unwrap_or(end);
        let is_written = |byte: u64| written.iter().any(|it| it.start <= byte && byte < it.end);
        let mut bytes = (start..known).filter(|byte| content[*byte as usize] != 0);
        if let Some(byte) = bytes.find(|byte| !is_written(*byte)) {
            panic!("{key:?} at {clock}: byte {byte} is said to be a hole");
        }
        assert!(resume.is_none() || known > start, "a page goes on");
    }
}

fn run(seed: u64, is_compressed: bool, rounds: u64) {
    let mut random = Random::new(seed);
    let mut fixture = Fixture::new(is_compressed);
    let keys = ["a", "a\0", "b", "c"];
    let mut model: BTreeMap<&str, History> = BTreeMap::new();
    let mut moments: BTreeMap<u64, u64> = BTreeMap::new();
    for clock in 1..=rounds {
        let mut changes = Vec::new();
        for key in keys {
            if random.one_in(3) {
                let history = model.entry(key).or_default();
                let old = history.values().next_back().cloned().flatten();
                let (change, new) = random_change(&fixture, &mut random, key, clock, old);
                history.insert(clock, new);
                changes.push(change);
            }
        }
        fixture.fold(changes);
        if random.one_in(4) && moments.len() < 6 {
            fixture.base.keep(&kept(clock), at(clock)).unwrap();
            moments.insert(clock, clock);
        }
        if random.one_in(6)
            && let Some(clock) = moments.keys().nth(random.below(6) as usize).copied()
        {
            fixture.base.unkeep(&kept(clock)).unwrap();
            moments.remove(&clock);
        }
        if random.one_in(2) {
            fixture.base.release_some(1 + random.below(2) as usize).unwrap();
        }
        if random.one_in(5) {
            fixture.checkpoint(clock, clock);
        }
        if random.one_in(9) {
            let keep = random.below(fixture.index.unsynced_batches() as u64 + 1) as usize;
            fixture = fixture.crashed(keep, random.below(1 << 40));
            let before = model.clone();
            forget_lost(&fixture, &mut model);
            // What was kept was synced then, and what became of it later may be forgotten.
            let synced = moments.keys().next_back().copied().unwrap_or(0);
            for (key, history) in before {
                let known = history.into_iter().filter(|(clock, _)| *clock <= synced);
                model.entry(key).or_default().extend(known);
            }
            fixture.base.reclaim(&[]).unwrap();
        }
        let found: Vec<u64> = fixture.base.kept().iter().map(|kept| kept.at.clock).collect();
        assert_eq!(found, moments.keys().copied().collect::<Vec<_>>());
        compare(&fixture, &mut random, &model);
        for clock in moments.keys() {
            compare_kept(&fixture, &mut random, &model, *clock);
        }
        if random.one_in(8) {
            fixture.assert_sound();
        }
    }
    for clock in moments.into_keys() {
        fixture.base.unkeep(&kept(clock)).unwrap();
    }
    while fixture.base.release_some(3).unwrap() {}
    fixture.assert_sound();
    assert!(rows(&fixture).is_empty(), "nothing is held for nobody: {:?}", rows(&fixture));
}

/// The keys of all that is kept and held.
fn rows(fixture: &Fixture) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for prefix in [key::KEPT, key::HELD, key::HELD_ENTRY, key::HELD_PIECE] {
        let mut visit = |key: &[u8], _: &Bytes| {
            found.push(key.to_vec());
            Ok(true)
        };
        let end = key::behind(prefix);
        fixture.index.scan(Table::Meta, prefix, end.as_deref(), &mut visit).unwrap();
    }
    found
}

#[test]
fn kept_moments_read_as_they_were_through_folds_drops_and_losses_of_power() {
    for seed in 0..tyr_chance::part(16) {
        run(seed, seed % 2 == 1, 70);
    }
}

#[test]
fn what_is_replaced_is_held_once_and_given_back_with_the_last_that_needs_it() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, &vec![7; 400_000]);
    fixture.base.keep(&kept(1), at(1)).unwrap();
    fixture.base.keep(&kept(2), at(2)).unwrap();
    for clock in 3..8 {
        fixture.write("a", clock, 100_000, &vec![clock as u8; 200_000]);
    }
    let held = fixture.base.kept_bytes();
    assert!((200_000..201_000).contains(&held), "{held} bytes are held");
    fixture.base.unkeep(&kept(2)).unwrap();
    while fixture.base.release_some(1).unwrap() {}
    let of_first = fixture.base.kept()[0].bytes;
    assert!((200_000..201_000).contains(&of_first), "{of_first} bytes are held");
    let range = ByteRange { start: 0, end: 400_000 };
    let (_, bytes) = fixture.base.read_kept(&fixture.name("a"), range, at(1)).unwrap().unwrap();
    assert!(bytes == vec![7; 400_000]);
    fixture.base.unkeep(&kept(1)).unwrap();
    while fixture.base.release_some(1).unwrap() {}
    fixture.checkpoint(8, 8);
    fixture.assert_sound();
    assert_eq!(fixture.base.kept_bytes(), 0);
    let on_disk = fixture.extents.disk_bytes().unwrap();
    assert!(on_disk < 450_000, "{on_disk} bytes of extents for a blob of 400,000");
}

#[test]
fn a_small_change_of_a_block_again_and_again_holds_that_block_once() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, &[7; 16_000]);
    fixture.base.keep(&kept(1), at(1)).unwrap();
    for clock in 2..200 {
        fixture.write("a", clock, clock * 16, &[clock as u8; 8]);
    }
    assert!(fixture.base.kept_bytes() < 16_500, "{} bytes are held", fixture.base.kept_bytes());
}

#[test]
fn programs_of_before_are_told_of_a_later_format_from_the_first_kept_snapshot_on() {
    let fixture = Fixture::new(false);
    let format = |fixture: &Fixture| {
        let value = fixture.index.get(Table::Meta, key::FORMAT).unwrap().unwrap();
        record::decode_number(&value).unwrap()
    };
    fixture.write("a", 1, 0, b"hello");
    assert_eq!(format(&fixture), 1, "a store without kept snapshots stays as it is");
    fixture.base.keep(&kept(1), at(1)).unwrap();
    assert_eq!(format(&fixture), 3);
    let name = KeyspaceName::new("groups").unwrap();
    let placed_by = tyr_types::PlacedBy::parse("first:2").unwrap();
    let config = KeyspaceConfig { placed_by, ..Default::default() };
    fixture.base.create_keyspace(&name, &config).unwrap();
    assert_eq!(format(&fixture), 3, "what comes later does not take it back");
}

#[test]
fn what_is_held_of_a_keyspace_goes_with_it() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, &vec![7; 400_000]);
    fixture.base.keep(&kept(1), at(1)).unwrap();
    fixture.write("a", 2, 0, &vec![8; 400_000]);
    fixture.base.drop_keyspace(fixture.keyspace).unwrap();
    while fixture.base.remove_some_dropped(1).unwrap() {}
    assert_eq!(fixture.base.kept_bytes(), 0);
    fixture.assert_sound();
}

#[test]
fn a_damaged_piece_that_is_held_is_named_by_a_check() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, &[7; 16_000]);
    fixture.base.keep(&kept(1), at(1)).unwrap();
    fixture.write("a", 2, 0, &[8; 16_000]);
    let piece = rows(&fixture).into_iter().find(|key| key.starts_with(key::HELD_PIECE)).unwrap();
    let mut batch = IndexBatch::new();
    batch.put(Table::Meta, piece, vec![9]);
    fixture.index.commit(batch).unwrap();
    let findings = fixture.findings();
    assert!(findings.iter().any(|it| it.what.contains("is not a piece that is held")));
    let range = ByteRange { start: 0, end: 10 };
    let error = fixture.base.read_kept(&fixture.name("a"), range, at(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
