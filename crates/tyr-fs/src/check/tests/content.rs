//! Damages of files: of their records, content, attributes, and of what leads to them.

use super::{ALL, Damage, Fixture};
use crate::layout::forward::Place;
use crate::layout::key::Blob;
use crate::layout::name::Name;
use crate::layout::orphan;
use crate::layout::record::{LAST_SEGMENT_AT, LINKS_AT};
use crate::layout::xattrs::Xattrs;

fn inode(it: &Fixture) -> Blob {
    Blob::inode(it.number("/large"))
}

fn nowhere() -> Vec<u8> {
    Place { directory: 1, name: Name::new("x").unwrap() }.encode()
}

fn aside() -> Vec<u8> {
    Xattrs([(b"user.b".to_vec(), vec![2])].into()).encode()
}

/// The large file loses its names.
fn unname(it: &Fixture) {
    it.delete(&it.entry("/", "large"));
    it.delete(&it.entry("/dir", "link"));
}

pub const DAMAGES: [Damage; 27] = [
    Damage {
        what: "a small file lies twice",
        harm: |it| it.put(&it.entry("/", "again"), it.get(&it.entry("/dir", "small"))),
        words: "lies in two entries",
        repair: "it was there twice, and is file",
        left: ALL + 1,
    },
    Damage {
        what: "a name says another kind",
        harm: |it| it.write(&it.entry("/", "large"), 2, [4]),
        words: "it is a file, but not to large",
        repair: "/large: it is a file by this name, too",
        left: ALL,
    },
    Damage {
        what: "an entry is no record",
        harm: |it| it.write(&it.entry("/dir", "small"), 0, "XX"),
        words: "does not begin as a record",
        repair: "",
        left: ALL,
    },
    Damage {
        what: "a reference is too long",
        harm: |it| it.write(&it.entry("/", "large"), 32, "x"),
        words: "a reference has 32 bytes, this has 33",
        repair: "",
        left: ALL,
    },
    Damage {
        what: "a small file counts two names",
        harm: |it| it.add(&it.entry("/dir", "small"), LINKS_AT),
        words: "one name, but 2 links",
        repair: "",
        left: ALL,
    },
    Damage {
        what: "a name too many is counted",
        harm: |it| it.add(&inode(it), LINKS_AT),
        words: "it counts 3 names",
        repair: "it counts 2 names now",
        left: ALL,
    },
    Damage {
        what: "one of two names is gone",
        harm: |it| it.delete(&it.entry("/dir", "link")),
        words: "it counts 2 names, but has 1",
        repair: "it counts 1 names now",
        left: ALL - 1,
    },
    Damage {
        what: "an inode is gone",
        harm: |it| it.delete(&inode(it)),
        words: "it has segments, but no inode",
        repair: "its record was made anew",
        left: ALL,
    },
    Damage {
        what: "an inode is no record",
        harm: |it| it.write(&inode(it), 0, "XX"),
        words: "it has segments, but no inode",
        repair: "its record was made anew",
        left: ALL,
    },
    Damage {
        what: "an inode is another file's",
        harm: |it| it.write(&inode(it), 8, [77]),
        words: "it is of file",
        repair: "its record was made anew",
        left: ALL,
    },
    Damage {
        what: "inode and names are gone",
        harm: |it| {
            it.delete(&inode(it));
            unname(it);
        },
        words: "it has segments, but no inode",
        repair: "its record was made anew",
        left: ALL - 1,
    },
    Damage {
        what: "names lead to nothing",
        harm: |it| {
            let number = it.number("/large");
            it.delete(&inode(it));
            it.delete(&Blob::xattrs(number));
            (0..4).for_each(|segment| it.delete(&Blob::content(number, segment)));
        },
        words: "leads to nothing",
        repair: "/large: it led to nothing, and is gone",
        left: ALL - 2,
    },
    Damage {
        what: "all names are gone",
        harm: unname,
        words: "it counts 2 names, but has 0",
        repair: "it had no name, and is in /lost+found now; it counts 1 names now",
        left: ALL - 1,
    },
    Damage {
        what: "an orphan has names",
        harm: |it| it.put(&Blob::orphan(it.number("/large")), orphan::encode(&[7])),
        words: "is listed as one",
        repair: "it is no orphan",
        left: ALL,
    },
    Damage {
        what: "a file with names says that it is an orphan",
        harm: |it| it.flag(&inode(it), 8),
        words: "says that it is an orphan",
        repair: "it is no orphan",
        left: ALL,
    },
    Damage {
        what: "an orphan is not listed",
        harm: |it| {
            it.flag(&inode(it), 8);
            unname(it);
        },
        words: "and is not listed as one",
        repair: "it has no name, and is deleted",
        left: ALL - 2,
    },
    Damage {
        what: "an inode says that it was moved",
        harm: |it| it.flag(&inode(it), 2),
        words: "it has an inode, and says that it was moved",
        repair: "it does not say any more that it was moved",
        left: ALL,
    },
    Damage {
        what: "the last segment is gone",
        harm: |it| it.add(&inode(it), LAST_SEGMENT_AT),
        words: "it ends in segment 4, which is missing",
        repair: "it ends in segment 3 now",
        left: ALL,
    },
    Damage {
        what: "all segments are gone",
        harm: |it| {
            let number = it.number("/large");
            (0..4).for_each(|segment| it.delete(&Blob::content(number, segment)));
        },
        words: "which is missing",
        repair: "it had no content, and is empty now",
        left: ALL - 2,
    },
    Damage {
        what: "there is a segment behind the last",
        harm: |it| it.put(&Blob::content(it.number("/large"), 9), "x"),
        words: "it ends in segment 3, but has",
        repair: "it ends in segment 9 now",
        left: ALL,
    },
    Damage {
        what: "a segment is too long",
        harm: |it| it.put(&Blob::content(it.number("/large"), 1), [1; 70_000]),
        words: "segment 1 has 70000 bytes",
        repair: "segment 1 was cut to 65536 bytes",
        left: ALL,
    },
    Damage {
        what: "a forward is gone",
        harm: |it| it.delete(&Blob::forward(it.number("/dir/moved"))),
        words: "/dir/moved: its forward is missing",
        repair: "/dir/moved: its forward leads to it now",
        left: ALL,
    },
    Damage {
        what: "a forward leads elsewhere",
        harm: |it| it.put(&Blob::forward(it.number("/dir/moved")), nowhere()),
        words: "its forward leads to x",
        repair: "/dir/moved: its forward leads to it now",
        left: ALL,
    },
    Damage {
        what: "what was never moved has a forward, and a segment",
        harm: |it| {
            it.put(&Blob::forward(it.number("/dir/small")), nowhere());
            it.put(&Blob::content(it.number("/dir/small"), 0), "x");
        },
        words: "it lies here, and has an inode or segments too",
        repair: "/dir/small: it was never moved, and its forward is gone",
        left: ALL,
    },
    Damage {
        what: "a small file has an inode",
        harm: |it| {
            let number = it.number("/dir/small");
            it.put(&Blob::inode(number), it.get(&inode(it)));
            it.write(&Blob::inode(number), 8, number.to_le_bytes());
        },
        words: "it lies here, and has an inode or segments too",
        repair: "/dir/small: it was there twice, and is file",
        left: ALL,
    },
    Damage {
        what: "attributes are gone",
        harm: |it| it.delete(&Blob::xattrs(it.number("/large"))),
        words: "it has attributes aside, but they are missing",
        repair: "its attributes are lost",
        left: ALL,
    },
    Damage {
        what: "there are attributes that files do not know of, and of none",
        harm: |it| {
            it.put(&Blob::xattrs(it.number("/dir/small")), aside());
            it.put(&Blob::xattrs(it.number("/dir/moved")), aside());
            it.put(&Blob::xattrs(60_000), aside());
            it.put(&Blob::forward(60_001), nowhere());
        },
        words: "there are attributes, but no such file",
        repair: "/dir/moved: it has the attributes now that lay aside",
        left: ALL,
    },
];
