//! What a user may do.

use tyr_fs::blocking::{FileSystem, OpenFor};
use tyr_fs::{Access, Credentials, Errno, Error, Name, NewAttributes, Node, Time};

use super::fixture;

const ALICE: u32 = 1_000;
const BOB: u32 = 1_001;
const STAFF: u32 = 50;

/// What a file is made with: who makes it says only its mode.
fn mode(mode: u32) -> Access {
    Access { mode, owner: 0, group: 0 }
}

fn errno<T>(result: Result<T, Error>) -> Result<(), Errno> {
    result.map(drop).map_err(|error| error.errno())
}

fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

fn chmod(files: &FileSystem, node: &Node, mode: u32) -> Result<(), Errno> {
    let new = NewAttributes { mode: Some(mode), ..NewAttributes::default() };
    errno(files.set_attributes(node, new))
}

fn chown(files: &FileSystem, node: &Node, owner: u32, group: u32) -> Result<(), Errno> {
    let (owner, group) = (Some(owner), Some(group));
    let new = NewAttributes { owner, group, ..NewAttributes::default() };
    errno(files.set_attributes(node, new))
}

/// A file system, and the same for two users.
fn three() -> (super::Fixture, [FileSystem; 2]) {
    let fixture = fixture();
    fixture.files.make_directory_at("/shared", mode(0o1777)).unwrap();
    let alice = Credentials { groups: vec![STAFF], ..Credentials::new(ALICE, 100) };
    let users = [alice, Credentials::new(BOB, 100)].map(|user| fixture.files.acting_as(user));
    (fixture, users)
}

#[test]
fn mode_bits_say_who_reads_writes_and_searches() {
    let (_fixture, [alice, bob]) = three();
    alice.make_directory_at("/shared/private", mode(0o700)).unwrap();
    alice.store_at("/shared/private/file", b"secret", mode(0o666)).unwrap();
    assert_eq!(errno(bob.find("/shared/private/file")), Err(Errno::ACCESS));
    let directory = bob.find("/shared/private").unwrap().node;
    assert_eq!(errno(bob.list_directory(&directory, 0, 10)), Err(Errno::ACCESS));
    assert_eq!(errno(bob.make_directory_at("/x", mode(0o755))), Err(Errno::ACCESS));
    chmod(&alice, &directory, 0o711).unwrap();
    let file = bob.find("/shared/private/file").unwrap().node;
    assert_eq!(bob.read(&file, 0, 10).unwrap(), "secret");
    assert_eq!(errno(bob.remove_file_at("/shared/private/file")), Err(Errno::ACCESS));
    // The owner's bits are the owner's, and the group's the group's, even where others may more.
    chmod(&alice, &file, 0o077).unwrap();
    assert_eq!(errno(alice.read(&file, 0, 10)), Err(Errno::ACCESS));
    assert_eq!(errno(bob.write(&file, 0, "mine")), Ok(()));
    chmod(&alice, &file, 0o604).unwrap();
    assert_eq!(errno(bob.read(&file, 0, 10)), Err(Errno::ACCESS));
    assert_eq!(errno(bob.open_file(&file)), Err(Errno::ACCESS));
}

#[test]
fn an_open_file_keeps_the_rights_that_it_was_opened_with() {
    let (_fixture, [alice, bob]) = three();
    alice.store_at("/shared/file", b"text", mode(0o644)).unwrap();
    let node = bob.find("/shared/file").unwrap().node;
    assert_eq!(errno(bob.open_file_for(&node, OpenFor::Writing)), Err(Errno::ACCESS));
    let open = bob.open_file_for(&node, OpenFor::Reading).unwrap();
    chmod(&alice, &node, 0o600).unwrap();
    assert_eq!(open.read(0, 9).unwrap(), "text");
    assert_eq!(errno(open.write(0, "x")), Err(Errno::BADF));
    assert_eq!(errno(open.truncate(0)), Err(Errno::INVAL));
}

#[test]
fn a_sticky_directory_keeps_names_for_their_owners() {
    let (fixture, [alice, bob]) = three();
    alice.store_at("/shared/hers", b"", mode(0o666)).unwrap();
    bob.store_at("/shared/his", b"", mode(0o666)).unwrap();
    assert_eq!(errno(bob.remove_file_at("/shared/hers")), Err(Errno::PERM));
    assert_eq!(errno(bob.rename_at("/shared/hers", "/shared/x")), Err(Errno::PERM));
    assert_eq!(errno(bob.rename_at("/shared/his", "/shared/hers")), Err(Errno::PERM));
    assert_eq!(errno(bob.rename_at("/shared/his", "/shared/x")), Ok(()));
    assert_eq!(errno(alice.remove_file_at("/shared/hers")), Ok(()));
    assert_eq!(errno(fixture.files.remove_file_at("/shared/x")), Ok(()));
}

#[test]
fn only_owners_change_modes_and_times_and_only_root_gives_files_away() {
    let (fixture, [alice, bob]) = three();
    alice.store_at("/shared/file", b"", mode(0o622)).unwrap();
    let node = alice.find("/shared/file").unwrap().node;
    assert_eq!(chmod(&bob, &node, 0o777), Err(Errno::PERM));
    assert_eq!(chown(&alice, &node, BOB, 100), Err(Errno::PERM));
    assert_eq!(chown(&alice, &node, ALICE, 7), Err(Errno::PERM));
    assert_eq!(chown(&alice, &node, ALICE, STAFF), Ok(()));
    assert_eq!(chown(&bob, &node, BOB, 100), Err(Errno::PERM));
    let times = NewAttributes { mtime: Some(Time(1)), ..NewAttributes::default() };
    assert_eq!(errno(bob.set_attributes(&node, times)), Err(Errno::PERM));
    assert_eq!(errno(alice.set_attributes(&node, times)), Ok(()));
    // Who may write it may say that it was written.
    assert_eq!(errno(bob.set_times_now(&node)), Ok(()));
    chmod(&alice, &node, 0o600).unwrap();
    assert_eq!(errno(bob.set_times_now(&node)), Err(Errno::ACCESS));
    assert_eq!(chown(&fixture.files, &node, BOB, 7), Ok(()));
    assert_eq!(fixture.files.attributes(&node).unwrap().owner, BOB);
}

#[test]
fn set_user_and_set_group_go_with_a_new_owner_and_with_new_bytes() {
    let (fixture, [alice, bob]) = three();
    let root = fixture.files.acting_as(Credentials::new(0, 0));
    for size in [10, 100_000] {
        alice.store_at("/shared/program", &vec![1; size], mode(0o777)).unwrap();
        let node = alice.find("/shared/program").unwrap().node;
        let mode_of = || alice.attributes(&node).unwrap().mode;
        let privileged = || chmod(&alice, &node, 0o6777).unwrap();
        privileged();
        bob.write(&node, 0, "x").unwrap();
        assert_eq!(mode_of(), 0o777);
        privileged();
        bob.append(&node, "x").unwrap();
        assert_eq!(mode_of(), 0o777);
        privileged();
        alice.truncate(&node, 5).unwrap();
        assert_eq!(mode_of(), 0o777);
        privileged();
        root.write(&node, 0, "x").unwrap();
        assert_eq!(mode_of(), 0o6777);
        chown(&root, &node, ALICE, 100).unwrap();
        assert_eq!(mode_of(), 0o777);
        alice.remove_file_at("/shared/program").unwrap();
    }
    // Of a group that one is not in nothing can be made to run as.
    alice.store_at("/shared/file", b"", mode(0o600)).unwrap();
    let node = alice.find("/shared/file").unwrap().node;
    chown(&root, &node, ALICE, 7).unwrap();
    chmod(&alice, &node, 0o2755).unwrap();
    assert_eq!(alice.attributes(&node).unwrap().mode, 0o755);
}

#[test]
fn what_is_made_belongs_to_who_made_it_and_to_the_group_of_a_set_group_directory() {
    let (fixture, [alice, bob]) = three();
    alice.store_at("/shared/file", b"", mode(0o644)).unwrap();
    let made = alice.attributes_at("/shared/file").unwrap();
    assert_eq!((made.owner, made.group), (ALICE, 100));
    let staff = Access { mode: 0o2777, owner: 0, group: STAFF };
    fixture.files.make_directory_at("/staff", staff).unwrap();
    let made = alice.make_directory_at("/staff/sub", mode(0o755)).unwrap().attributes;
    assert_eq!((made.group, made.mode), (STAFF, 0o2755));
    bob.store_at("/staff/program", b"", mode(0o2755)).unwrap();
    let made = bob.attributes_at("/staff/program").unwrap();
    assert_eq!((made.owner, made.group, made.mode), (BOB, STAFF, 0o755));
}

#[test]
fn a_directory_of_another_is_not_moved_elsewhere() {
    let (_fixture, [alice, bob]) = three();
    alice.make_directory_at("/shared/open", mode(0o777)).unwrap();
    alice.make_directory_at("/shared/open/hers", mode(0o755)).unwrap();
    bob.make_directory_at("/shared/his", mode(0o755)).unwrap();
    let to = "/shared/his/hers";
    assert_eq!(errno(bob.rename_at("/shared/open/hers", to)), Err(Errno::ACCESS));
    assert_eq!(errno(bob.rename_at("/shared/open/hers", "/shared/open/x")), Ok(()));
}

#[test]
fn attributes_of_a_user_are_for_who_reads_and_writes_and_others_for_root() {
    let (fixture, [alice, bob]) = three();
    alice.store_at("/shared/file", b"", mode(0o644)).unwrap();
    let node = alice.find("/shared/file").unwrap().node;
    let set = |files: &FileSystem, name: &str| {
        let change = tyr_fs::XattrChange::Set(b"value".to_vec());
        errno(files.set_xattr(&node, name.as_bytes(), change))
    };
    assert_eq!(set(&alice, "user.a"), Ok(()));
    assert_eq!(set(&bob, "user.a"), Err(Errno::ACCESS));
    assert_eq!(bob.xattr(&node, b"user.a").unwrap(), b"value");
    assert_eq!(set(&alice, "trusted.a"), Err(Errno::PERM));
    assert_eq!(set(&fixture.files, "trusted.a"), Ok(()));
    assert_eq!(errno(alice.xattr(&node, b"trusted.a")), Err(Errno::NODATA));
    assert_eq!(errno(alice.lookup(&node, &name("x"))), Err(Errno::NOTDIR));
}
