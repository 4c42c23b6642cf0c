//! A blob that a fold takes in parts: each is there with its bytes, and with how far the fold is.

use super::*;
use crate::base::types::Ahead;
use crate::base::{FORMAT_WITH_PAGES, FORMAT_WITH_PARTS};

const LEN: u64 = 100_000;
const BELOW: u64 = 32 << 10;

fn part(fixture: &Fixture, clock: u64, below: u64) -> BlobChange {
    let bytes = Bytes::from(vec![clock as u8; 5000]);
    let pieces = vec![(below - 5000, PieceData::Bytes(bytes))];
    BlobChange { part: Some(below), pieces, ..fixture.change("a", clock, LEN + 7) }
}

#[test]
fn a_part_changes_its_bytes_and_says_how_far_the_fold_is() {
    let mut fixture = Fixture::new(false);
    let mut content = vec![1; LEN as usize];
    fixture.write("a", 1, 0, &content);
    fixture.write("a", 2, 50_000, &[2; 4096]);
    content[50_000..54_096].fill(2);
    let format = |fixture: &Fixture| fixture.base.format.load(Ordering::Relaxed);
    assert_eq!(format(&fixture), FORMAT_WITH_PAGES);
    let before = fixture.base.attributes(&fixture.name("a")).unwrap().unwrap();
    for below in [BELOW, 2 * BELOW] {
        fixture.fold(vec![part(&fixture, 5, below)]);
        content[below as usize - 5000..below as usize].fill(5);
        fixture = fixture.reopened();
        fixture.base.reclaim(&[]).unwrap();
        let ahead = Some(Ahead { below, at: at(5) });
        let now = fixture.base.attributes(&fixture.name("a")).unwrap().unwrap();
        assert_eq!(now, BlobBase { ahead, ..before.clone() });
        assert_eq!((fixture.content("a").unwrap() == content, fixture.findings()), (true, vec![]));
    }
    assert_eq!(format(&fixture), FORMAT_WITH_PARTS, "programs of before would misread it");
    // The last part says all else.
    let mut last = part(&fixture, 5, LEN);
    (last.part, last.size) = (None, LEN);
    fixture.fold(vec![last]);
    let now = fixture.base.attributes(&fixture.name("a")).unwrap().unwrap();
    assert_eq!((now.ahead, now.folded_at), (None, at(5)));
    assert_eq!(fixture.findings(), []);
}

#[test]
fn there_is_no_part_of_what_the_base_has_not_or_not_so_far() {
    let fixture = Fixture::new(false);
    let refused = |change: BlobChange| {
        let error = fixture.base.fold(vec![change]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    };
    refused(part(&fixture, 1, BELOW));
    fixture.write("a", 2, 0, &vec![1; LEN as usize]);
    refused(part(&fixture, 3, LEN + 1));
    refused(BlobChange { cut: Some(0), ..part(&fixture, 3, BELOW) });
    let holes = vec![ByteRange { start: 0, end: 1 }];
    refused(BlobChange { holes, ..part(&fixture, 3, BELOW) });
    fixture.fold(vec![part(&fixture, 3, BELOW)]);
}
