//! Damages of names, directories, and of what there is one of.

use super::{ALL, Damage};
use crate::layout::header::{ENTRIES_AT, FENCE_AT, PLACE_AT, SUBDIRECTORIES_AT};
use crate::layout::key::{Blob, ROOT};
use crate::layout::orphan;
use crate::layout::record::MODE_AT;
use crate::layout::xattrs::Xattrs;

pub const DAMAGES: [Damage; 24] = [
    Damage {
        what: "the superblock is gone",
        harm: |it| it.delete(&Blob::superblock()),
        words: "superblock: is missing",
        repair: "superblock: it was written anew",
        left: ALL,
    },
    Damage {
        what: "the superblock is none",
        harm: |it| it.put(&Blob::superblock(), "x"),
        words: "the superblock does not begin as one",
        repair: "superblock: it was written anew",
        left: ALL,
    },
    Damage {
        what: "numbers begin again",
        harm: |it| it.put(&Blob::next_number(), [0; 8]),
        words: "is 0, but there",
        repair: "above all files",
        left: ALL,
    },
    Damage {
        what: "the next number is gone",
        harm: |it| it.delete(&Blob::next_number()),
        words: "given again",
        repair: "above all files",
        left: ALL,
    },
    Damage {
        what: "the root is gone",
        harm: |it| it.delete(&Blob::header(ROOT)),
        words: "the root is missing",
        repair: "/: its record was made anew, for 2 names in it",
        left: ALL,
    },
    Damage {
        what: "a name too many is counted",
        harm: |it| it.add(&Blob::header(it.number("/dir")), ENTRIES_AT),
        words: "/dir: it counts 5 names",
        repair: "/dir: it counts 4 names now",
        left: ALL,
    },
    Damage {
        what: "a directory too many is counted",
        harm: |it| it.add(&Blob::header(it.number("/dir")), SUBDIRECTORIES_AT),
        words: "2 directories among them, but",
        repair: "/dir: it counts 4 names now, 1 directories",
        left: ALL,
    },
    Damage {
        what: "more directories than names are counted",
        harm: |it| it.write(&Blob::header(it.number("/dir")), SUBDIRECTORIES_AT, [9]),
        words: "it counts 4 names, 9 directories among them",
        repair: "/dir: its record was made anew, for 4 names in it",
        left: ALL,
    },
    Damage {
        what: "an entry is gone",
        harm: |it| it.delete(&it.entry("/dir", "small")),
        words: "/dir: it counts 4",
        repair: "/dir: it counts 3 names now",
        left: ALL - 1,
    },
    Damage {
        what: "an entry has other rights",
        harm: |it| it.add(&Blob::header(it.number("/dir")), MODE_AT),
        words: "in its entry",
        repair: "/dir: its entry has its rights now",
        left: ALL,
    },
    Damage {
        what: "a directory says another parent",
        harm: |it| it.write(&Blob::header(it.number("/dir/sub")), PLACE_AT, [1]),
        words: "it says that it is sub in directory 1",
        repair: "it says now that it is sub there",
        left: ALL,
    },
    Damage {
        what: "a directory says that it is below itself",
        harm: |it| {
            let below = it.number("/dir/sub").to_le_bytes();
            it.write(&Blob::header(it.number("/dir")), PLACE_AT, below);
        },
        words: "is not below the root",
        repair: "it says now that it is dir there",
        left: ALL,
    },
    Damage {
        what: "two directories are in each other",
        harm: |it| {
            let (dir, sub) = (it.number("/dir"), it.number("/dir/sub").to_le_bytes());
            let (old, new) = (it.entry("/", "dir"), it.entry("/dir/sub", "dir"));
            it.put(&new, it.get(&old));
            it.write(&Blob::header(dir), PLACE_AT, sub);
            it.delete(&old);
        },
        words: "is not below the root",
        repair: "it lay in a directory below itself, and is in /lost+found now",
        left: ALL,
    },
    Damage {
        what: "an empty directory's header is gone",
        harm: |it| it.delete(&Blob::header(it.number("/dir/sub"))),
        words: "sub in directory",
        repair: "its record was made anew, for 0 names in it",
        left: ALL,
    },
    Damage {
        what: "a header is gone",
        harm: |it| it.delete(&Blob::header(it.number("/dir"))),
        words: "no such directory",
        repair: "its record was made anew, for 4 names in it",
        left: ALL,
    },
    Damage {
        what: "header and name of a directory are gone",
        harm: |it| {
            it.delete(&Blob::header(it.number("/dir")));
            it.delete(&it.entry("/", "dir"));
        },
        words: "there are names in it, but no such directory",
        repair: "its record was made anew, for 4 names in it",
        left: ALL,
    },
    Damage {
        what: "a fence is none",
        harm: |it| it.write(&Blob::header(it.number("/dir")), FENCE_AT, [9]),
        words: "its fence is",
        repair: "its record was made anew, for 4 names in it",
        left: ALL,
    },
    Damage {
        what: "a directory has no name",
        harm: |it| it.delete(&it.entry("/dir", "sub")),
        words: "no name leads to it",
        repair: "it had no name, and is in /lost+found now",
        left: ALL,
    },
    Damage {
        what: "a directory has two names",
        harm: |it| it.put(&it.entry("/", "again"), it.get(&it.entry("/dir", "sub"))),
        words: "2 names lead to it",
        repair: "the name again led to it as well, and is gone",
        left: ALL,
    },
    Damage {
        what: "a directory has no attributes aside, and says so",
        harm: |it| it.flag(&Blob::header(it.number("/dir/sub")), 4),
        words: "/dir/sub: it has attributes aside, but they are missing",
        repair: "/dir/sub: its attributes are lost",
        left: ALL,
    },
    Damage {
        what: "a directory does not know of its attributes",
        harm: |it| {
            let aside = Xattrs([(b"user.b".to_vec(), vec![2])].into());
            it.put(&Blob::xattrs(it.number("/dir/sub")), aside.encode());
        },
        words: "/dir/sub: there are attributes aside that it does not know of",
        repair: "/dir/sub: it has the attributes now that lay aside",
        left: ALL,
    },
    Damage {
        what: "an orphan is of no session",
        harm: |it| it.put(&Blob::orphan(it.number("/large")), [0; 7]),
        words: "an orphan has 8 bytes a session, this has 7",
        repair: "",
        left: ALL,
    },
    Damage {
        what: "an orphan is of no file",
        harm: |it| it.put(&Blob::orphan(60_000), orphan::encode(&[7])),
        words: "is an orphan, but there is no such file",
        repair: "file 60000: it was an orphan, but no such file",
        left: ALL,
    },
    Damage {
        what: "a key is of nothing",
        harm: |it| it.meta.put("garbage", "x").unwrap(),
        words: "is the key of nothing in a file system",
        repair: "",
        left: ALL,
    },
];
