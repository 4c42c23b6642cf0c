//! Whatever is encoded is decoded again, and what is no encoding is refused.

use proptest::prelude::*;
use rustix::io::Errno;

use super::forward::Place;
use super::header::{DirectoryPlace, Header};
use super::key::{Blob, Role, Space};
use super::name::Name;
use super::record::{Access, Entry, Flags, Identity, Kind, Record, Reference, Time, Times};
use super::superblock::{FORMAT, Superblock};
use super::xattrs::Xattrs;

fn names() -> impl Strategy<Value = Name> {
    proptest::collection::vec(any::<u8>(), 1..=255)
        .prop_filter_map("some bytes are in no name", |bytes| Name::new(bytes).ok())
}

fn kinds() -> impl Strategy<Value = Kind> {
    proptest::sample::select(&Kind::ALL[..])
}

fn records(kind: impl Strategy<Value = Kind>) -> impl Strategy<Value = Record> {
    let words = (any::<[u32; 5]>(), any::<[i64; 4]>(), any::<u64>(), any::<[bool; 3]>());
    let body = proptest::collection::vec(any::<u8>(), 384);
    (kind, words, 0_u8..64, body).prop_map(|(kind, words, segment_bits, body)| {
        let ([mode, owner, group, device, last_segment], times, number, flags) = words;
        let [is_moved, has_xattrs, is_orphan] = flags;
        let flags = Flags { is_reference: false, is_moved, has_xattrs, is_orphan };
        let [mtime, ctime, atime, btime] = times.map(Time);
        Record {
            identity: Identity { kind, flags, number },
            access: Access { mode: mode & 0o7777, owner, group },
            links: owner ^ group,
            times: Times { mtime, ctime, atime, btime },
            device,
            last_segment,
            segment_bits,
            body: Box::new(body.try_into().unwrap()),
        }
    })
}

fn roles() -> impl Strategy<Value = Role> {
    let numbers = 64_u64..;
    prop_oneof![
        Just(Role::Superblock),
        Just(Role::NextNumber),
        Just(Role::SessionChanges),
        numbers.clone().prop_map(Role::Header),
        (numbers.clone(), names()).prop_map(|(directory, name)| Role::Entry(directory, name)),
        any::<u64>().prop_map(Role::Session),
        numbers.clone().prop_map(Role::Orphan),
        numbers.clone().prop_map(Role::Inode),
        (numbers.clone(), any::<u32>()).prop_map(|(number, at)| Role::Content(number, at)),
        numbers.clone().prop_map(Role::Forward),
        numbers.prop_map(Role::Xattrs),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(128)))]

    #[test]
    fn a_record_is_decoded_as_it_was_encoded(record in records(kinds())) {
        prop_assert_eq!(Record::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn a_header_is_decoded_as_it_was_encoded(
        mut record in records(Just(Kind::Directory)),
        parent in any::<u64>(),
        name in names(),
        entries in 0_i64..1_000,
    ) {
        record.identity.number |= 64;
        let place = DirectoryPlace { parent, name: Some(name) };
        let header = Header { record, place, entries, subdirectories: entries / 2 };
        let decoded = Header::decode(&header.encode()).unwrap();
        prop_assert_eq!(&decoded.place, &header.place);
        prop_assert_eq!(decoded.entries, entries);
        prop_assert_eq!(decoded.subdirectories, entries / 2);
        prop_assert_eq!(decoded.encode(), header.encode());
    }

    #[test]
    fn a_reference_is_decoded_as_it_was_encoded(
        kind in kinds(),
        number: u64,
        mode in 0..0o10000_u32,
    ) {
        let reference = Reference { kind, number, access: Access { mode, owner: 7, group: 8 } };
        let bytes = reference.encode();
        prop_assert_eq!(Entry::decode(&bytes).unwrap(), Entry::Reference(reference));
        prop_assert_eq!(Entry::decode(&bytes[..31]).unwrap_err().errno(), Errno::IO);
    }

    #[test]
    fn a_key_says_what_it_is_the_key_of(role in roles()) {
        prop_assert_eq!(role.blob().parse().unwrap(), role);
    }

    #[test]
    fn keys_of_nothing_are_refused_or_are_keys_of_something(
        bytes in proptest::collection::vec(any::<u8>(), 1..40),
    ) {
        for space in [Space::Meta, Space::Data] {
            let blob = Blob { space, key: tyr::Key::new(&bytes).unwrap() };
            if let Ok(role) = blob.parse() {
                prop_assert_eq!(role.blob(), blob);
            }
        }
    }

    #[test]
    fn xattrs_are_decoded_as_they_were_encoded_and_never_cut(
        all in proptest::collection::btree_map(
            proptest::collection::vec(any::<u8>(), 1..40),
            proptest::collection::vec(any::<u8>(), 0..100),
            0..6,
        ),
    ) {
        let xattrs = Xattrs(all);
        let bytes = xattrs.encode();
        prop_assert_eq!(&Xattrs::decode(&bytes).unwrap(), &xattrs);
        prop_assert!(bytes.len() <= 4 || Xattrs::decode(&bytes[..bytes.len() - 1]).is_err());
        match xattrs.encode_inline() {
            Some(body) => prop_assert_eq!(Xattrs::decode(&body[..]).unwrap(), xattrs),
            None => prop_assert!(bytes.len() > 384),
        }
    }

    #[test]
    fn a_forward_is_decoded_as_it_was_encoded(directory: u64, name in names()) {
        let place = Place { directory, name };
        prop_assert_eq!(Place::decode(&place.encode()).unwrap(), place);
    }

    #[test]
    fn any_bytes_are_refused_or_mean_something(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        drop((Entry::decode(&bytes), Header::decode(&bytes), Xattrs::decode(&bytes)));
        drop((Place::decode(&bytes), Superblock::decode(&bytes)));
    }
}

#[test]
fn a_record_with_any_of_its_first_bytes_otherwise_is_another_or_refused() {
    let record = Record::new(Kind::Regular, 99, Access::default(), Time(5));
    let bytes = record.encode();
    for at in 0..16 {
        let mut damaged = bytes;
        damaged[at] ^= 0x40;
        assert_ne!(Record::decode(&damaged).ok(), Some(record.clone()), "byte {at}");
    }
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let mut bytes = Superblock { segment_bits: 30 }.encode();
    assert_eq!(Superblock::decode(&bytes).unwrap().segment_bits, 30);
    bytes[8] = u8::try_from(FORMAT).unwrap() + 1;
    let refused = Superblock::decode(&bytes).unwrap_err();
    assert_eq!(refused.errno(), Errno::OPNOTSUPP);
    assert!(refused.text().contains("format 2"), "{refused}");
}

#[test]
fn names_that_no_file_has_are_refused_each_by_its_own_number() {
    let refused = |name: &[u8]| Name::new(name).unwrap_err().errno();
    assert_eq!(refused(b""), Errno::NOENT);
    assert_eq!(refused(b".."), Errno::INVAL);
    assert_eq!(refused(b"a/b"), Errno::INVAL);
    assert_eq!(refused(&[b'x'; 256]), Errno::NAMETOOLONG);
    assert!(Name::new([0xFF; 255]).is_ok());
}
