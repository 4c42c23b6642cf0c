//! What a crash left at the end of a log is told, by who cuts it off and by who passes over it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use tyr::CheckSeverity;
use tyr::blocking::Tyr;

use super::content::{self, Answers, LATE};
use super::folder::{self, Folder};
use super::harm::{Harm, Kind};

/// The bytes of a record of which the header never came to the disk.
const TORN: [u8; 20] = [7; 20];

#[test]
fn what_a_crash_left_at_the_end_of_the_log_is_told_once_it_is_cut_off_no_more() {
    let filled = folder::temporary();
    let tyr = content::fill(filled.path());
    let killed = Folder::read(filled.path());
    drop(tyr);
    let (log, len) = killed.files().filter(|(name, _)| name.ends_with(".log")).last().unwrap();
    let torn = folder::temporary();
    killed.write(torn.path(), &Harm { file: log.to_owned(), at: len, kind: Kind::Cut });
    let file = File::options().write(true).open(torn.path().join(log)).unwrap();
    file.write_all_at(&TORN, len as u64 + 512).unwrap();

    let report = tyr::check(torn.path(), &mut |_| {}).unwrap();
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!(finding.severity, CheckSeverity::Warning);
    assert!(finding.what.contains(log) && finding.what.contains("bytes"), "{finding:?}");
    for is_read_only in [true, false] {
        let tyr = Tyr::options().is_read_only(is_read_only).open_blocking(torn.path()).unwrap();
        let told = tyr.torn_tail().unwrap();
        assert!(told.file.ends_with(log) && told.bytes >= TORN.len() as u64, "{told:?}");
        assert_eq!(told.records_lost, 0, "there is no header of any");
        let answers = Answers::of(&tyr);
        assert_eq!(answers.late, Some(LATE));
        assert!(answers.wrong.is_empty() && answers.refused.is_empty(), "{answers:?}");
        tyr.close().unwrap();
    }
    let again = Tyr::open(torn.path()).unwrap();
    assert_eq!(again.torn_tail(), None);
    again.close().unwrap();
    assert!(tyr::check(torn.path(), &mut |_| {}).unwrap().findings.is_empty());
}
