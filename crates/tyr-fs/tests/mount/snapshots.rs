//! Kept snapshots, in the directory `.snap`.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};

use super::with_mount;

#[test]
fn what_was_kept_is_read_below_snap_until_it_is_dropped() {
    with_mount(|at| {
        let large: Vec<u8> = (0..3_u32 << 20).map(|at| (at / 3) as u8).collect();
        fs::create_dir(at.join("dir")).unwrap();
        fs::write(at.join("dir/small"), "then").unwrap();
        fs::write(at.join("dir/large"), &large).unwrap();
        symlink("small", at.join("dir/symlink")).unwrap();
        let monday = at.join(".snap/monday");
        fs::create_dir(&monday).unwrap();
        fs::write(at.join("dir/small"), "now").unwrap();
        fs::remove_file(at.join("dir/large")).unwrap();
        fs::rename(at.join("dir"), at.join("moved")).unwrap();

        assert_eq!(fs::read_to_string(monday.join("dir/small")).unwrap(), "then");
        assert_eq!(fs::read_to_string(monday.join("dir/symlink")).unwrap(), "then");
        assert!(fs::read(monday.join("dir/large")).unwrap() == large);
        assert_eq!(fs::read_to_string(at.join("moved/small")).unwrap(), "now");
        let number = |path: &str| fs::metadata(at.join(path)).unwrap().ino();
        assert_ne!(number(".snap/monday/dir/small"), number("moved/small"));
        let names = |path: &str| {
            let mut names: Vec<_> = fs::read_dir(at.join(path))
                .unwrap()
                .map(|it| it.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(".snap"), ["monday"]);
        assert_eq!(names(""), ["moved"]);
        assert_eq!(names(".snap/monday"), ["dir"]);
        assert_eq!(names(".snap/monday/dir"), ["large", "small", "symlink"]);

        let exists = fs::create_dir(&monday).unwrap_err();
        assert_eq!(exists.kind(), ErrorKind::AlreadyExists);
        let open = File::open(monday.join("dir/small")).unwrap();
        fs::remove_dir(&monday).unwrap();
        assert_eq!(fs::metadata(&monday).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(names(".snap"), [""; 0]);
        drop(open);
        // Another of the same name is another.
        fs::create_dir(&monday).unwrap();
        assert_eq!(fs::read_to_string(monday.join("moved/small")).unwrap(), "now");
        fs::remove_dir(&monday).unwrap();
    });
}

#[test]
fn nothing_can_be_changed_in_a_snapshot() {
    with_mount(|at| {
        fs::write(at.join("file"), "then").unwrap();
        let kept = at.join(".snap/kept");
        fs::create_dir(&kept).unwrap();
        let file = kept.join("file");
        let tries = [
            OpenOptions::new().write(true).open(&file).map(drop),
            File::create(kept.join("new")).map(drop),
            fs::create_dir(kept.join("new")),
            fs::remove_file(&file),
            fs::rename(&file, kept.join("new")),
            fs::rename(&file, at.join("new")),
            fs::hard_link(&file, at.join("new")),
            fs::set_permissions(&file, fs::metadata(at.join("file")).unwrap().permissions()),
            File::create(at.join(".snap/new")).map(drop),
        ];
        for (index, result) in tries.into_iter().enumerate() {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem, "{index}: {error}");
        }
        // A file that is open there goes on when its last name now is taken.
        let open = File::open(&file).unwrap();
        fs::remove_file(at.join("file")).unwrap();
        let mut bytes = [0; 4];
        open.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"then");
        drop(open);
        fs::remove_dir(&kept).unwrap();
    });
}
