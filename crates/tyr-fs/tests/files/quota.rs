//! Quotas: what there is no room for is refused, and changes nothing.

use tyr_fs::blocking::FileSystem;
use tyr_fs::{Errno, Node, Quota};

use super::{MINE, options, until};
use tyr_testing::{Opened, stores};

const NONE: Quota = Quota { bytes: None, files: None };

#[test]
fn bytes_beyond_the_quota_are_refused_and_come_back_with_room() {
    for kind in stores() {
        let store = Opened::new(kind);
        let files = FileSystem::create(&store.tyr, &store.name("quota"), &options()).unwrap();
        files.store_at("/kept", &[1; 10_000], MINE).unwrap();
        assert_eq!(files.quota().unwrap().0, NONE);
        files.set_quota(Quota { bytes: Some(300_000), ..NONE }).unwrap();
        let node = files.make_file_at("/large", MINE).unwrap().node;
        let mut written = 0;
        let refused = loop {
            match files.write(&node, written, vec![2; 20_000]) {
                Ok(()) => written += 20_000,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.errno(), Errno::DQUOT);
        assert!((200_000..300_000).contains(&written), "{written}");
        assert_eq!(files.attributes(&node).unwrap().size, written);
        // What makes nothing longer goes on, and so does taking away.
        files.write(&node, 0, vec![3; 20_000]).unwrap();
        for refused in [
            files.append(&node, vec![4; 100_000]).map(drop),
            files.truncate(&node, 1 << 20),
            files.store_at("/new", &[5; 60_000], MINE),
        ] {
            assert_eq!(refused.unwrap_err().errno(), Errno::DQUOT);
        }
        let in_transaction = files.transact(|files| {
            files.store_at("/kept", &[1; 50_000], MINE)?;
            files.store_at("/more", &[1; 60_000], MINE)?;
            files.store_at("/most", &[1; 60_000], MINE)
        });
        assert_eq!(in_transaction.unwrap_err().errno(), Errno::DQUOT);
        assert_eq!(files.attributes_at("/kept").unwrap().size, 10_000);
        files.truncate(&node, 0).unwrap();
        until("there is room again", || files.append(&node, vec![6; 150_000]).is_ok());
        files.set_quota(NONE).unwrap();
        files.append(&node, vec![7; 1 << 20]).unwrap();
        assert!(files.check(&mut |_| true).unwrap().findings.is_empty());
    }
}

#[test]
fn names_beyond_the_quota_are_refused_for_every_program() {
    for kind in stores() {
        let store = Opened::new(kind);
        let name = store.name("quota");
        let one = FileSystem::create(&store.tyr, &name, &options()).unwrap();
        one.set_quota(Quota { files: Some(50), ..NONE }).unwrap();
        let two = FileSystem::open(&store.other(), &name).unwrap();
        let mut made = 0;
        let refused = loop {
            match two.make_file_at(format!("/{made}"), MINE) {
                Ok(_) => made += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.errno(), Errno::DQUOT);
        assert!((20..=51).contains(&made), "{made}");
        let node = two.find("/0").unwrap().node;
        let name = tyr_fs::Name::new("link").unwrap();
        assert_eq!(two.link(&node, &Node::ROOT, &name).unwrap_err().errno(), Errno::DQUOT);
        // What is there can be written.
        two.write(&node, 0, "text").unwrap();
        assert_eq!(two.quota().unwrap().0, Quota { files: Some(50), ..NONE });
    }
}
