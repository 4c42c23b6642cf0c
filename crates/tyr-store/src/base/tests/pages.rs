//! What is written here and there lies in pages, and nothing of it is lost or kept too long.

use super::*;
use crate::pages::PAGE_LEN;

const LEN: u64 = PAGE_LEN as u64;

fn numbered(number: u64) -> Vec<u8> {
    (0..LEN).map(|place| (place * number + place / 250 + number) as u8).collect()
}

/// Bytes that all page files take, without their headers.
fn taken(fixture: &Fixture) -> u64 {
    let pages = fixture.base.pages();
    pages.disk_bytes().unwrap() - pages.settled().len() as u64 * LEN
}

/// The same without pages that are free or will be.
fn in_use(fixture: &Fixture) -> u64 {
    taken(fixture) - fixture.base.free_pages.counts().0 * LEN
}

#[test]
fn overwrites_at_random_take_a_page_each_and_give_the_one_before_back() {
    let mut fixture = Fixture::new(false);
    let (count, mut random) = (64, Random::new(3));
    let mut content: Vec<u8> = (0..count * LEN).map(|place| (place % 253) as u8).collect();
    fixture.write("a", 1, 0, &content);
    fixture.checkpoint(1, 1);
    for round in 2..40 {
        let before = taken(&fixture);
        let places: BTreeSet<u64> = (0..16).map(|_| random.below(count)).collect();
        let mut change = fixture.change("a", round, content.len() as u64);
        for page in &places {
            let bytes = numbered(round * 100 + page);
            content[(page * LEN) as usize..][..bytes.len()].copy_from_slice(&bytes);
            change.pieces.push((page * LEN, PieceData::Bytes(bytes.into())));
        }
        fixture.fold(vec![change]);
        let runs = places.len() as u64 * LEN;
        assert!(taken(&fixture) <= before + runs, "round {round}: more than what was written");
        if random.one_in(2) {
            fixture.checkpoint(round, round);
            let (free, needed) = fixture.base.free_pages.counts();
            assert!(free <= needed, "round {round}: {free} pages are kept, {needed} needed");
            assert!(in_use(&fixture) <= count * LEN, "round {round}: dead pages take space");
        }
        if random.one_in(4) {
            fixture = fixture.reopened();
            fixture.base.reclaim(&[]).unwrap();
        }
        assert!(fixture.content("a").as_ref() == Some(&content), "round {round}");
        assert_eq!(fixture.findings(), [], "round {round}");
    }
    let mut gone = fixture.change("a", 50, 0);
    gone.exists = false;
    fixture.fold(vec![gone]);
    (50..100).for_each(|round| fixture.checkpoint(round, round));
    assert_eq!(taken(&fixture), 0, "nothing is left of a blob that is gone");
    assert_eq!(fixture.findings(), []);
}

#[test]
fn free_pages_are_written_again_and_files_do_not_grow() {
    let mut fixture = Fixture::new(false);
    let (count, mut random) = (64, Random::new(5));
    let content: Vec<u8> = (0..count * LEN).map(|place| (place % 247) as u8).collect();
    fixture.write("a", 1, 0, &content);
    fixture.checkpoint(1, 1);
    for round in 2..60 {
        let mut change = fixture.change("a", round, content.len() as u64);
        let pages: BTreeSet<u64> = (0..16).map(|_| random.below(count)).collect();
        let of = |page: &u64| (page * LEN, PieceData::Bytes(numbered(round + page).into()));
        change.pieces.extend(pages.iter().map(of));
        fixture.fold(vec![change]);
        fixture.checkpoint(round, round);
        if random.one_in(8) {
            fixture = fixture.reopened();
            fixture.base.reclaim(&[]).unwrap();
        }
    }
    let files = fixture.base.pages().settled();
    let ends: u64 = files.values().map(|file| u64::from(file.end - 1)).sum();
    assert!(ends <= count + 2 * 16 + 8, "{ends} pages were begun for {count}: {files:?}");
    assert_eq!(fixture.findings(), []);
}

#[test]
fn a_page_is_not_written_again_before_what_let_go_of_it_is_synced() {
    let fixture = Fixture::new(false);
    let pages = |number: u64| (0..7).flat_map(|page| numbered(number + page)).collect::<Vec<_>>();
    fixture.write("a", 1, 0, &pages(1));
    fixture.checkpoint(1, 1);
    for clock in 2..5 {
        fixture.write("a", clock, 0, &pages(clock * 100));
        for keep in 0..=fixture.index.unsynced_batches() {
            let left = fixture.crashed(keep, clock * 10 + keep as u64);
            let folded_at = left.base.attributes(&left.name("a")).unwrap().unwrap().folded_at;
            let expected = if folded_at.clock == 1 { 1 } else { folded_at.clock * 100 };
            assert!(left.content("a") == Some(pages(expected)), "{keep} batches after {clock}");
            left.assert_sound();
        }
    }
}

#[test]
fn what_a_failed_fold_took_of_free_pages_is_free_again() {
    let fixture = Fixture::new(false);
    for clock in 1..4 {
        fixture.write("a", clock, 0, &[numbered(clock), numbered(clock + 7)].concat());
        fixture.checkpoint(clock, clock);
    }
    let (free, _) = fixture.base.free_pages.counts();
    assert!(free >= 2, "{free} pages are free");
    fixture.disk.fail(FaultyOperation::Write, 0, Fault::Broken);
    let mut change = fixture.change("a", 4, 2 * LEN);
    change.pieces.push((0, PieceData::Bytes(numbered(9).into())));
    fixture.base.fold(vec![change]).unwrap_err();
    assert_eq!(fixture.content("a"), Some([numbered(3), numbered(10)].concat()));
    fixture.write("a", 4, 0, &numbered(9));
    fixture.checkpoint(4, 4);
    assert_eq!(fixture.content("a"), Some([numbered(9), numbered(10)].concat()));
    assert_eq!(fixture.findings(), []);
}

#[test]
fn a_page_that_changes_in_part_is_written_anew_and_keeps_the_rest() {
    let fixture = Fixture::new(false);
    let mut content: Vec<u8> = (0..4 * LEN).map(|place| (place % 241) as u8 + 1).collect();
    fixture.write("a", 1, 0, &content);
    let mut clock = 1;
    for (offset, len) in
        [(5, 1), (4090, 20), (8192, 512), (4096, 4096), (12_288, 4095), (100, 9000)]
    {
        clock += 1;
        let bytes = vec![clock as u8; len];
        content[offset..offset + len].copy_from_slice(&bytes);
        fixture.write("a", clock, offset as u64, &bytes);
        assert!(fixture.content("a").as_ref() == Some(&content), "{len} bytes at {offset}");
        assert_eq!(fixture.findings(), [], "{len} bytes at {offset}");
    }
    fixture.checkpoint(1, clock);
    assert_eq!(in_use(&fixture), 4 * LEN, "a page for each 4 KiB of the blob");
    // Cut, and holes, within pages and between them.
    for (hole, cut) in [(3000..5000, 4 * LEN), (8192..12_288, 4 * LEN), (0..1, LEN + 7)] {
        clock += 1;
        content.truncate(cut as usize);
        let end = (hole.end as usize).min(content.len());
        content[hole.start as usize..end].fill(0);
        let mut change = fixture.change("a", clock, cut);
        change.cut = Some(cut);
        change.holes.push(ByteRange { start: hole.start, end: end as u64 });
        fixture.fold(vec![change]);
        assert!(fixture.content("a").as_ref() == Some(&content), "{hole:?}, cut at {cut}");
        assert_eq!(fixture.findings(), [], "{hole:?}, cut at {cut}");
    }
}

#[test]
fn a_damaged_page_is_named_with_its_blob_and_the_rest_stays_readable() {
    let fixture = Fixture::new(false);
    for key in ["a", "b"] {
        fixture.write(key, 1, 0, &numbered(7));
        fixture.write(key, 2, LEN, &numbered(9));
    }
    let file = fixture.disk.names().into_iter().find(|name| name.ends_with(".pag")).unwrap();
    // The header, then two pages of "a".
    fixture.disk.damage(&file, |bytes| bytes[2 * PAGE_LEN + 77] ^= 1);
    let mut out = vec![0; PAGE_LEN];
    let range = ByteRange { start: LEN, end: 2 * LEN };
    let error = fixture.base.read(&fixture.name("a"), range, &mut out).unwrap_err();
    assert_eq!((error.kind(), error.blob()), (ErrorKind::Corrupt, Some(&fixture.name("a"))));
    assert!(error.to_string().contains("bytes 8192 to 12288"), "{error}");
    assert_eq!(fixture.read("a", ByteRange { start: 0, end: LEN }), numbered(7));
    assert_eq!(fixture.read("b", range), numbered(9));
    let findings = fixture.findings();
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert!(findings[0].place.contains("\"a\"") && findings[0].what.contains("bytes 8192 to"));
    // Whoever overwrites all of it need not read it.
    fixture.write("a", 3, LEN, &numbered(11));
    assert_eq!(fixture.read("a", range), numbered(11));
    fixture.assert_sound();
}

#[test]
fn none_is_written_where_programs_of_before_have_to_open_the_store() {
    let fixture = Fixture::new(false);
    let format = || fixture.base.format.load(Ordering::Relaxed);
    fixture.base.write_pages(false);
    fixture.write("a", 1, 0, &numbered(1));
    assert_eq!(fixture.disk.names().iter().filter(|name| name.ends_with(".pag")).count(), 0);
    assert!(format() < FORMAT_WITH_PAGES);
    fixture.base.write_pages(true);
    fixture.write("b", 2, 0, &numbered(2));
    assert_eq!(format(), FORMAT_WITH_PAGES);
    for (key, number) in [("a", 1), ("b", 2)] {
        assert_eq!(fixture.content(key), Some(numbered(number)));
    }
    let again = fixture.reopened();
    assert_eq!(again.base.format.load(Ordering::Relaxed), FORMAT_WITH_PAGES);
    // What was inline goes to a page when it is written again.
    again.write("a", 3, 17, b"x");
    assert_eq!(taken(&again), 2 * LEN);
    again.assert_sound();
}

#[test]
fn a_lost_page_file_costs_its_pages_and_no_checkpoint() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, &numbered(1));
    fixture.write("b", 2, 0, &[5; 100]);
    fixture.checkpoint(1, 2);
    let file = fixture.disk.names().into_iter().find(|name| name.ends_with(".pag")).unwrap();
    fixture.disk.remove(&file).unwrap();
    let fixture = fixture.reopened();
    fixture.base.reclaim(&[]).unwrap();
    let range = ByteRange { start: 0, end: LEN };
    let error = fixture.base.read(&fixture.name("a"), range, &mut vec![0; PAGE_LEN]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    fixture.write("a", 3, 0, &numbered(3));
    fixture.checkpoint(3, 3);
    assert_eq!(fixture.content("a"), Some(numbered(3)));
    assert_eq!(fixture.content("b"), Some(vec![5; 100]));
}

#[test]
fn on_a_full_disk_what_makes_room_needs_no_page() {
    let fixture = Fixture::new(false);
    let mut content = [numbered(3), numbered(5), numbered(7)].concat();
    fixture.write("a", 1, 0, &content);
    fixture.checkpoint(1, 1);
    fixture.disk.set_capacity(Some(fixture.disk.disk_bytes()));
    // Within a page: what is left of it has to be written.
    let cut = 2 * LEN + 3500;
    content.truncate(cut as usize);
    let mut change = fixture.change("a", 2, cut);
    change.cut = Some(cut);
    fixture.fold(vec![change]);
    content[100..200].fill(9);
    fixture.write("a", 3, 100, &[9; 100]);
    assert_eq!(fixture.content("a"), Some(content.clone()));
    fixture.disk.set_capacity(None);
    fixture.checkpoint(3, 3);
    assert_eq!(in_use(&fixture), LEN, "the page between");
    content[..8].fill(1);
    fixture.write("a", 4, 0, &[1; 8]);
    fixture.checkpoint(4, 4);
    assert_eq!(in_use(&fixture), 2 * LEN, "with room again it is a page again");
    assert_eq!(fixture.content("a"), Some(content));
    assert_eq!(fixture.findings(), []);
}
