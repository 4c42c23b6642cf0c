//! Scans by themselves: which keys they are of, what is refused, and how pages join.

use super::*;
use crate::timestamp::Timestamp;

fn entry(key: &str) -> ScanEntry {
    let stat = Some(Stat { size: key.len() as u64, version: Timestamp::ZERO });
    ScanEntry { key: Key::new(key).unwrap(), stat, bytes: Bytes::new() }
}

fn page(keys: &[&str], groups: &[&'static str], resume: Option<&'static str>) -> ScanPage {
    let entries = keys.iter().map(|key| entry(key)).collect();
    let groups = groups.iter().map(|group| Bytes::from_static(group.as_bytes())).collect();
    ScanPage { entries, groups, resume: resume.map(|at| Bytes::from_static(at.as_bytes())) }
}

fn merged(pages: Vec<ScanPage>, scan: &Scan) -> (Vec<String>, Vec<Bytes>, Option<Bytes>) {
    let page = ScanPage::merge(pages, scan);
    let keys = page.entries.iter().map(|entry| entry.key.to_string()).collect();
    (keys, page.groups, page.resume)
}

fn range(scan: &Scan) -> (Vec<u8>, Option<Vec<u8>>) {
    let keys = scan.keys();
    (keys.start.to_vec(), keys.end.map(|end| end.to_vec()))
}

#[test]
fn a_scan_is_of_the_keys_that_all_its_bounds_allow() {
    let scan = Scan::new().prefix("b");
    assert_eq!(range(&scan), (b"b".to_vec(), Some(b"c".to_vec())));
    let inner = scan.clone().from("b3").to("b7");
    assert_eq!(range(&inner), (b"b3".to_vec(), Some(b"b7".to_vec())));
    assert_eq!(range(&inner.after("b3")).0, b"b3\0", "it comes after what it may begin with");
    assert_eq!(range(&scan.from("a").to("z")), (b"b".to_vec(), Some(b"c".to_vec())));
    assert_eq!(range(&Scan::new().prefix([0xFF])), (vec![0xFF], None));
    assert!(Scan::new().prefix("b").from("c").keys().is_empty());
}

#[test]
fn what_is_out_of_range_is_refused_with_its_name() {
    let long = vec![b'a'; limits::KEY_LEN_MAX + 2];
    let cases = [
        (Scan::new().prefix(&long), "prefix"),
        (Scan::new().from(&long), "from"),
        (Scan::new().to(""), "to"),
        (Scan::new().after(""), "after"),
        (Scan::new().delimiter(""), "delimiter"),
        (Scan::new().from("b").to("a"), "exchange"),
        (Scan::new().after("b").to("a"), "exchange"),
        (Scan::new().limit(0), "limit is 1 to"),
        (Scan::new().limit(limits::SCAN_LIMIT_MAX + 1), "limit is 1 to"),
        (Scan::new().first_bytes(0), "range"),
        (Scan::new().first_bytes(limits::SCAN_RANGE_LEN_MAX + 1), "range"),
        (Scan::new().first_bytes(1).keys_only(), "keys only"),
    ];
    for (scan, word) in cases {
        let error = scan.validate().unwrap_err();
        assert!(error.message().contains(word), "{scan:?}: {error}");
    }
    let beyond = Scan::new().first_bytes(4097).validate_in(4096).unwrap_err();
    assert!(beyond.message().contains("first chunk"), "{beyond}");
    Scan::new().first_bytes(4096).validate_in(4096).unwrap();
}

#[test]
fn a_group_is_the_key_up_to_the_first_delimiter_behind_the_prefix() {
    let scan = Scan::new().prefix("a/").delimiter("/");
    assert_eq!(scan.group_of(b"a/b/c/d"), Some(&b"a/b/"[..]));
    assert_eq!(scan.group_of(b"a/b"), None);
    assert_eq!(scan.group_of(b"a//b"), Some(&b"a//"[..]));
    assert_eq!(Scan::new().delimiter("--").group_of(b"x-y--z"), Some(&b"x-y--"[..]));
    assert_eq!(Scan::new().group_of(b"a/b"), None, "groups are made if they are asked for");
}

#[test]
fn pages_are_merged_up_to_where_the_first_of_them_ended() {
    let scan = Scan::new().delimiter("/").limit(10);
    let pages = vec![page(&["a", "d", "e"], &["f/"], None), page(&["b", "c"], &[], Some("c\0"))];
    let (keys, groups, resume) = merged(pages, &scan);
    assert_eq!((keys, groups.len()), (vec!["a".into(), "b".into(), "c".into()], 0));
    assert_eq!(resume.unwrap(), "c\0");
    let pages = vec![page(&["b"], &["g/"], None), page(&["a"], &["g/", "h/"], None)];
    let (keys, groups, resume) = merged(pages, &scan);
    assert_eq!((keys.len(), groups), (2, vec![Bytes::from("g/"), Bytes::from("h/")]));
    assert_eq!(resume, None);
}

#[test]
fn a_merged_page_that_is_full_goes_on_behind_its_last_entry_or_group() {
    let pages = || vec![page(&["a", "c"], &["b/"], None), page(&["d"], &["b/"], None)];
    let resume = |limit| merged(pages(), &Scan::new().delimiter("/").limit(limit)).2;
    assert_eq!(resume(1).unwrap(), "a\0");
    assert_eq!(resume(2).unwrap(), "b0", "behind all of the group");
    assert_eq!(resume(3).unwrap(), "c\0");
    assert_eq!(resume(4), None);
    let ended = merged(pages(), &Scan::new().delimiter("/").limit(2).to("b0"));
    assert_eq!(ended.2, None, "there is nothing between the group and the end");
}

#[test]
fn a_page_is_bounded_by_bytes_and_has_one_entry_at_least() {
    let mut filling = Filling::new(&Scan::new().first_bytes(limits::SCAN_RANGE_LEN_MAX));
    let mut count = 0;
    while !filling.is_full() {
        let bytes = Bytes::from(vec![0; limits::SCAN_RANGE_LEN_MAX as usize]);
        filling.push(ScanEntry { bytes, ..entry(&format!("{count:03}")) });
        count += 1;
    }
    assert!((1..100).contains(&count), "{count} blobs of a whole range each");
    let page = filling.finish_here();
    let again = Scan::new().after("x").resumed(&page).unwrap();
    assert_eq!(again.keys().start, page.resume.unwrap(), "it goes on there");
}
