//! What is written is read back, what is damaged is named, and space comes back.

use tyr_types::ErrorKind;

use super::*;
use crate::disk::{OpenMode, SimulatedDisk};

fn pages(disk: &Arc<SimulatedDisk>) -> Pages {
    Pages::new(disk.clone(), BTreeMap::new()).with_file_pages(16)
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| ((at * 7 + at / 251) as u8) ^ seed).collect()
}

fn settle(pages: &Pages) {
    let grown = pages.flush().unwrap();
    let known = |(number, end)| (number, PageFile { end, ..pages.known(number) });
    let files = grown.into_iter().map(known).collect();
    pages.settle(files);
}

#[test]
fn what_is_written_is_read_back_in_any_part_also_over_files() {
    let disk = Arc::new(SimulatedDisk::new());
    let pages = pages(&disk);
    let lens = [1, 3072, 4095, 4096, 4097, 8192, 12_000, 16_384, 16_384, 5];
    let runs: Vec<(PageRun, Vec<u8>)> = (0..)
        .zip(lens)
        .map(|(seed, len)| {
            let content = bytes(len, seed);
            (pages.write(&content, None).unwrap(), content)
        })
        .collect();
    settle(&pages);
    assert!(pages.settled().len() > 1, "a file of 16 pages is left for a new one");
    for (run, content) in &runs {
        for (from, to) in [(0, content.len()), (content.len() / 3, content.len() / 2 + 1)] {
            let mut out = vec![0; to - from];
            pages.read(run, from as u64, &mut out).unwrap();
            assert_eq!(out, content[from..to], "{from}..{to} of {run:?}");
        }
        let whole = content.len().div_ceil(PAGE_LEN).min(2);
        let end = run.len().min((whole * PAGE_LEN) as u64);
        let part = run.slice(0, end);
        let mut out = vec![0; end as usize];
        pages.read(&part, 0, &mut out).unwrap();
        assert_eq!(out, content[..end as usize], "a part of {run:?}");
    }
}

#[test]
fn a_flipped_bit_is_named_and_other_pages_stay_readable() {
    let disk = Arc::new(SimulatedDisk::new());
    let pages = pages(&disk);
    let run = pages.write(&bytes(3 * PAGE_LEN, 9), None).unwrap();
    settle(&pages);
    let file = disk.open("pages/00000001.pag", OpenMode::Existing).unwrap();
    let place = u64::from(run.first + 1) * PAGE_LEN as u64;
    file.write_at(&[0xFF], place + 100).unwrap();
    let mut out = [0; PAGE_LEN];
    for (page, is_good) in [(0, true), (1, false), (2, true)] {
        let read = pages.read(&run, page * PAGE_LEN as u64, &mut out);
        assert_eq!(read.is_ok(), is_good, "page {page}");
        if let Err(error) = read {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(&format!("bytes {place} to")), "{error}");
        }
    }
    // Content of another place is noticed, too.
    let mut other = [0; PAGE_LEN];
    file.read_at(&mut other, u64::from(run.first) * PAGE_LEN as u64).unwrap();
    file.write_at(&other, u64::from(run.first + 2) * PAGE_LEN as u64).unwrap();
    let read = pages.read(&run, 2 * PAGE_LEN as u64, &mut out);
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn what_no_batch_came_to_refer_to_is_written_over() {
    let disk = Arc::new(SimulatedDisk::new());
    let pages = pages(&disk);
    let first = pages.write(&bytes(PAGE_LEN, 1), None).unwrap();
    settle(&pages);
    let lost = pages.write(&bytes(PAGE_LEN, 2), None).unwrap();
    pages.flush().unwrap();
    pages.rewind();
    let second = pages.write(&bytes(PAGE_LEN, 3), None).unwrap();
    assert_eq!(lost.span(), second.span(), "the place is taken again");
    settle(&pages);
    let again = Pages::new(disk.clone(), pages.settled());
    let mut out = vec![0; PAGE_LEN];
    for (run, seed) in [(first, 1), (second, 3)] {
        again.read(&run, 0, &mut out).unwrap();
        assert_eq!(out, bytes(PAGE_LEN, seed));
    }
    assert_eq!(again.read(&lost, 0, &mut out).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn pages_that_are_given_back_take_no_space_and_spent_files_go() {
    let disk = Arc::new(SimulatedDisk::new());
    let pages = pages(&disk);
    let runs: Vec<PageRun> =
        (0..40).map(|seed| pages.write(&bytes(PAGE_LEN, seed), None).unwrap()).collect();
    settle(&pages);
    let full = pages.disk_bytes().unwrap();
    let (dead, live): (Vec<PageRun>, Vec<PageRun>) =
        runs.iter().copied().partition(|run| run.file == 1);
    let half = dead.len() / 2;
    for part in [&dead[..half], &dead[half..]] {
        let spans: Vec<PageSpan> = part.iter().map(PageRun::span).collect();
        pages.punch(&spans).unwrap();
        let files = pages.without(&spans).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), [&1]);
        pages.settle(files);
    }
    assert_eq!(full - pages.disk_bytes().unwrap(), (dead.len() * PAGE_LEN) as u64);
    let spent = pages.remove_spent().unwrap();
    assert_eq!(spent, [1], "the file of all that was given back");
    pages.forget(&spent);
    assert_eq!(disk.list("pages").unwrap(), ["00000002.pag", "00000003.pag"]);
    let mut out = vec![0; PAGE_LEN];
    for run in &live {
        pages.read(run, 0, &mut out).unwrap();
    }
    let never = [PageSpan { file: 3, first: 15, count: 9 }];
    assert_eq!(pages.punch(&never).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn an_opening_gives_back_what_lies_behind_the_settled_pages() {
    let disk = Arc::new(SimulatedDisk::new());
    let pages = pages(&disk);
    let run = pages.write(&bytes(PAGE_LEN, 1), None).unwrap();
    settle(&pages);
    let known = pages.settled();
    for seed in 0..20 {
        pages.write(&bytes(PAGE_LEN, seed), None).unwrap();
    }
    pages.flush().unwrap();
    let again = Pages::new(disk.clone(), known);
    again.trim().unwrap();
    assert_eq!(again.disk_bytes().unwrap(), 2 * PAGE_LEN as u64, "a header and a page");
    again.read(&run, 0, &mut vec![0; PAGE_LEN]).unwrap();
}

#[test]
fn a_full_disk_refuses_and_what_was_there_stays() {
    let disk = Arc::new(SimulatedDisk::new());
    let pages = pages(&disk);
    let run = pages.write(&bytes(PAGE_LEN, 1), None).unwrap();
    settle(&pages);
    disk.set_capacity(Some(disk.disk_bytes()));
    pages.write(&bytes(PAGE_LEN, 2), None).unwrap();
    let refused = pages.flush().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.to_string().contains("disk full"), "{refused}");
    pages.rewind();
    disk.set_capacity(None);
    let second = pages.write(&bytes(PAGE_LEN, 3), None).unwrap();
    settle(&pages);
    for run in [run, second] {
        pages.read(&run, 0, &mut vec![0; PAGE_LEN]).unwrap();
    }
}
