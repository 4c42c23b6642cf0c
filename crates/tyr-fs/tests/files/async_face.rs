//! The same calls from async code.

use tyr_fs::{FileSystem, Name, NewFile, Node};

use super::{MINE, options};

#[test]
fn async_code_makes_writes_renames_and_checks() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = tyr::Tyr::open(folder.path()).await.unwrap();
        let files = FileSystem::create(&store, "home", &options()).await.unwrap();
        let directory = files.make_directory_at(b"/letters", MINE).await.unwrap().node;
        let (draft, letter) = (Name::new("draft").unwrap(), Name::new("letter").unwrap());
        let made = files.make_file(&directory, &draft, NewFile::regular(MINE)).await.unwrap();
        let open = files.open_file(&made.node).await.unwrap();
        assert_eq!(open.append("Dear ").await.unwrap(), 0);
        let mode = tyr_fs::RenameMode::NoReplace;
        files.rename((&directory, &draft), (&Node::ROOT, &letter), mode).await.unwrap();
        assert_eq!(open.append("reader").await.unwrap(), 5);
        files.remove_file_at(b"/letter").await.unwrap();
        assert_eq!(open.read(0, 100).await.unwrap(), "Dear reader");
        open.close().await.unwrap();
        let moment = files.moment().await.unwrap();
        let content = files
            .transact(|files| {
                files.store_at("/letters/one", b"1", MINE)?;
                files.fetch_at("/letters/one")
            })
            .await
            .unwrap();
        assert_eq!(content, "1");
        assert!(moment.find("/letters/one").is_err());
        let report = files.check(|_| true).await.unwrap();
        assert_eq!((report.findings, report.directories, report.names), (vec![], 2, 1));
        let repairs = files.repair(|_| true).await.unwrap();
        assert_eq!((repairs.done, repairs.report.names), (vec![], 1));
        files.close().await.unwrap();
    });
}
