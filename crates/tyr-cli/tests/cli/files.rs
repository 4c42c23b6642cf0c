//! `tyr fs` and `tyr mount`: file systems from a shell.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::shell::{Shell, noise};

fn made() -> Shell {
    let shell = Shell::empty();
    shell.ok(["fs", "create", "home"]);
    shell
}

/// A tree of this machine with one of everything that is copied.
fn tree(shell: &Shell) -> PathBuf {
    let root = shell.path("tree");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/small"), "small").unwrap();
    fs::write(root.join("a/b/large"), noise(300_000, 1)).unwrap();
    fs::hard_link(root.join("a/small"), root.join("link")).unwrap();
    symlink("a/small", root.join("symlink")).unwrap();
    fs::set_permissions(root.join("a/small"), fs::Permissions::from_mode(0o640)).unwrap();
    root
}

#[test]
fn files_are_put_listed_renamed_and_removed() {
    let shell = made();
    assert_eq!(shell.text(["fs", "list"]), "home\n");
    shell.ok(["fs", "mkdir", "home", "/dir"]);
    let large = noise(9 << 20, 2);
    shell.ok_fed(["fs", "put", "home", "/dir/large"], &large);
    shell.ok_fed(["fs", "put", "home", "/dir/small"], b"text");
    assert!(shell.ok(["fs", "cat", "home", "/dir/large"]) == large);
    shell.ok(["fs", "mv", "home", "/dir/small", "/small"]);
    assert_eq!(shell.ok(["fs", "cat", "home", "/small"]), b"text");
    assert_eq!(shell.text(["fs", "ls", "home", "/dir"]), "large\n");
    let long = shell.text(["fs", "ls", "-l", "home", "/"]);
    assert!(long.contains("directory 0755") && long.contains("file      0644"), "{long}");
    let stat = &shell.json(["fs", "stat", "home", "/dir/large"])[0];
    assert_eq!((&stat["size"], &stat["kind"]), (&large.len().into(), &"file".into()));
    shell.ok(["fs", "mv", "--exchange", "home", "/dir", "/small"]);
    assert_eq!(shell.text(["fs", "ls", "home", "/small"]), "large\n");
    assert_eq!(shell.refused(["fs", "rm", "home", "/small"]).0, 9);
    shell.ok(["fs", "rm", "home", "/small/large"]);
    shell.ok(["fs", "rm", "home", "/small"]);
    let found = &shell.json(["fs", "check", "home"])[0];
    assert_eq!((&found["names"], &found["bytes"]), (&1.into(), &4.into()), "{found}");
    shell.assert_clean();
}

#[test]
fn what_is_wrong_is_said_with_a_code_of_its_own() {
    let shell = made();
    assert_eq!(shell.refused(["fs", "create", "home"]).0, 4);
    let (code, _, text) = shell.refused(["fs", "ls", "none"]);
    assert!(code == 3 && text.contains("no file system none"), "{code} {text}");
    shell.ok(["keyspace", "create", "other.meta", "--durability", "buffered"]);
    shell.ok(["keyspace", "create", "other.data", "--durability", "buffered"]);
    assert_eq!(shell.refused(["fs", "ls", "other"]).0, 3);
    let (code, _, text) = shell.refused(["fs", "cat", "home", "/no/file"]);
    assert!(code == 3 && text.contains("there is no no in directory 1"), "{code} {text}");
    assert_eq!(shell.refused(["fs", "cat", "home", "/"]).0, 9);
}

#[test]
fn trees_change_places_in_one_step() {
    let shell = made();
    for (tree, content) in [("/old", "old"), ("/new", "new")] {
        shell.ok(["fs", "mkdir", "home", tree]);
        shell.ok_fed(["fs", "put", "home", &format!("{tree}/page")], content.as_bytes());
    }
    let told = &shell.json(["fs", "swap", "home", "/old", "/new"])[0];
    assert_eq!(told["swapped"], serde_json::json!(["/old", "/new"]));
    assert_eq!(shell.ok(["fs", "cat", "home", "/old/page"]), b"new");
    assert_eq!(shell.ok(["fs", "cat", "home", "/new/page"]), b"old");
    assert_eq!(shell.refused(["fs", "swap", "home", "/old", "/none"]).0, 3);
    shell.ok(["fs", "check", "home"]);
}

#[test]
fn what_a_check_names_is_repaired_and_said() {
    let shell = made();
    shell.ok_fed(["fs", "put", "home", "/file"], b"text");
    let found = &shell.json(["fs", "check", "home", "--repair"])[0];
    assert_eq!(found["repairs"], serde_json::json!([]));
    // The root counts nine names, and the numbers of files begin again.
    let root = "00000000000000010000000000";
    shell.ok_fed(["write", "--hex-key", "home.meta", root, "448"], &[9]);
    let next = "000000000000000000000000026e";
    shell.ok_fed(["put", "--hex-key", "home.meta", next], &[0; 8]);
    assert_ne!(shell.refused(["fs", "check", "home"]).0, 0);
    let text = shell.text(["fs", "check", "home", "--repair"]);
    assert!(text.contains("repaired: /: it counts 1 names now"), "{text}");
    assert!(text.contains("repaired: next number: it is"), "{text}");
    assert!(text.trim_end().ends_with(": 0 findings"), "{text}");
    let found = &shell.json(["fs", "check", "home", "--repair"])[0];
    assert_eq!(found["repairs"], serde_json::json!([]));
    assert_eq!(shell.ok(["fs", "cat", "home", "/file"]), b"text");
}

#[test]
fn a_tree_comes_back_as_it_was() {
    let shell = made();
    let root = tree(&shell);
    let told = &shell.json(["fs", "import", "home", root.to_str().unwrap(), "/in"])[0];
    let counts = |it: &serde_json::Value| {
        ["directories", "files", "bytes", "left_out"].map(|name| it[name].as_u64().unwrap())
    };
    assert_eq!(counts(told), [3, 3, 300_005, 0]);
    assert_eq!(shell.refused(["fs", "import", "home", root.to_str().unwrap(), "/in"]).0, 4);
    let back = shell.path("back");
    let told = &shell.json(["fs", "export", "home", "/in", back.to_str().unwrap()])[0];
    assert_eq!(counts(told), [3, 3, 300_005, 0]);
    for name in ["a", "a/b", "a/small", "a/b/large", "link", "symlink"] {
        let [one, two] = [&root, &back].map(|it| fs::symlink_metadata(it.join(name)).unwrap());
        let told = |it: &fs::Metadata| (it.mode(), it.uid(), it.gid(), it.nlink());
        assert_eq!(told(&one), told(&two), "{name}");
        if one.is_file() {
            assert_eq!(one.modified().unwrap(), two.modified().unwrap(), "{name}");
            assert!(fs::read(root.join(name)).unwrap() == fs::read(back.join(name)).unwrap());
        }
    }
    assert_eq!(fs::read_link(back.join("symlink")).unwrap(), Path::new("a/small"));
    shell.ok(["fs", "check", "home"]);
}

#[test]
fn what_was_kept_is_listed_read_and_exported() {
    let shell = made();
    shell.ok(["fs", "mkdir", "home", "/dir"]);
    shell.ok_fed(["fs", "put", "home", "/dir/file"], b"then");
    shell.ok(["snapshot", "keep", "monday"]);
    shell.ok_fed(["fs", "put", "home", "/dir/file"], b"now");
    shell.ok(["fs", "mv", "home", "/dir", "/moved"]);
    fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
        [words, &["--at", "monday"]].concat()
    }
    assert_eq!(shell.ok(words(&["fs", "cat", "home", "/dir/file"])), b"then");
    assert_eq!(shell.text(words(&["fs", "ls", "home", "/"])), "dir\n");
    let stat = &shell.json(words(&["fs", "stat", "home", "/dir/file"]))[0];
    assert_eq!(stat["size"], 4);
    let back = shell.path("back");
    shell.ok(words(&["fs", "export", "home", "/", back.to_str().unwrap()]));
    assert_eq!(fs::read(back.join("dir/file")).unwrap(), b"then");
    assert_eq!(shell.ok(["fs", "cat", "home", "/moved/file"]), b"now");
    assert_eq!(shell.refused(["fs", "ls", "home", "--at", "tuesday"]).0, 3);
}

#[test]
fn what_there_is_no_room_for_is_refused() {
    let shell = made();
    let set = &shell.json(["fs", "quota", "home", "--bytes", "100KiB"])[0];
    assert_eq!(set["bytes_max"], 100 << 10);
    assert!(set["names_max"].is_null());
    let large = shell.path("large");
    fs::write(&large, noise(200_000, 3)).unwrap();
    let put = ["fs", "put", "home", "/large", large.to_str().unwrap()];
    let (code, _, text) = shell.refused(put);
    assert!(code == 11 && text.contains("102400 bytes"), "{code} {text}");
    shell.ok(["fs", "quota", "home", "--names", "9"]);
    let shown = shell.text(["fs", "quota", "home"]);
    assert!(shown.contains("of 102400") && shown.contains("of 9"), "{shown}");
    shell.ok(["fs", "quota", "home", "--none"]);
    shell.ok(put);
    shell.ok(["fs", "check", "home"]);
}

/// `tyr mount` that runs, and where.
struct Mounted {
    process: Child,
    at: PathBuf,
}

impl Mounted {
    /// Mounts; `None` where nothing can be mounted.
    fn new(shell: &Shell, more: &[&str]) -> Option<Self> {
        Self::of(shell, "home", more)
    }

    /// The same of something of this name.
    fn of(shell: &Shell, name: &str, more: &[&str]) -> Option<Self> {
        if File::options().read(true).write(true).open("/dev/fuse").is_err() {
            eprintln!("skipped: /dev/fuse cannot be opened here");
            return None;
        }
        let at = shell.path("mnt");
        fs::create_dir_all(&at).unwrap();
        let arguments = ["mount", name, at.to_str().unwrap()];
        let mut command = shell.command(arguments.iter().chain(more));
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("is mounted at"), "{line}");
        Some(Self { process, at })
    }

    /// Ends it as Ctrl-C does.
    fn interrupt(mut self) {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::INT).unwrap();
        assert!(self.process.wait().unwrap().success());
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(self.at.to_str().unwrap()), "{mounts}");
    }
}

#[test]
fn a_mount_shows_files_until_ctrl_c_and_leaves_nothing_behind() {
    let shell = made();
    shell.ok_fed(["fs", "put", "home", "/before"], b"before");
    let Some(mounted) = Mounted::new(&shell, &[]) else { return };
    let at = mounted.at.clone();
    assert_eq!(fs::read_to_string(at.join("before")).unwrap(), "before");
    fs::create_dir(at.join("dir")).unwrap();
    fs::write(at.join("dir/file"), "written").unwrap();
    mounted.interrupt();
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
    assert_eq!(shell.ok(["fs", "cat", "home", "/dir/file"]), b"written");
    let Some(mounted) = Mounted::new(&shell, &["--read-only"]) else { return };
    let refused = fs::write(at.join("dir/file"), "again").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(fs::read_to_string(at.join("dir/file")).unwrap(), "written");
    mounted.interrupt();
    shell.ok(["fs", "check", "home"]);
}

#[test]
fn the_blobs_of_a_keyspace_are_files_until_ctrl_c() {
    let shell = Shell::empty();
    shell.ok(["keyspace", "create", "data"]);
    shell.ok_fed(["put", "data", "run/before"], b"before");
    let missing = shell.path("missing");
    let (code, _, text) = shell.refused(["mount", "--flat", "none", missing.to_str().unwrap()]);
    assert!(code == 3 && text.contains("`tyr keyspace create none`"), "{code} {text}");
    let (code, _, text) = shell.refused(["mount", "--flat", "data", missing.to_str().unwrap()]);
    assert!(code != 0 && text.contains("cannot mount at"), "{code} {text}");
    let Some(mounted) = Mounted::of(&shell, "data", &["--flat"]) else { return };
    let at = mounted.at.clone();
    assert_eq!(fs::read_to_string(at.join("run/before")).unwrap(), "before");
    fs::write(at.join("run/file"), "written").unwrap();
    mounted.interrupt();
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
    assert_eq!(shell.ok(["get", "data", "run/file"]), b"written");
    let Some(mounted) = Mounted::of(&shell, "data", &["--flat", "--read-only"]) else { return };
    let refused = fs::write(at.join("run/file"), "again").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    mounted.interrupt();
}

#[test]
fn a_mount_ends_behind_the_last_file_that_is_open_there() {
    let shell = made();
    let Some(mut mounted) = Mounted::new(&shell, &[]) else { return };
    let mut file = File::create_new(mounted.at.join("file")).unwrap();
    kill_process(Pid::from_child(&mounted.process), Signal::INT).unwrap();
    // Whoever looks for files there finds none any more; what is open goes on.
    crate::nodes::until("it is unmounted", || !mounted.at.join("file").exists());
    std::io::Write::write_all(&mut file, b"late").unwrap();
    assert!(mounted.process.try_wait().unwrap().is_none());
    drop(file);
    assert!(mounted.process.wait().unwrap().success());
    assert_eq!(shell.ok(["fs", "cat", "home", "/file"]), b"late");
}

#[test]
fn what_cannot_be_mounted_is_said_and_changes_nothing() {
    let shell = made();
    let missing = shell.path("missing");
    let (code, _, text) = shell.refused(["mount", "home", missing.to_str().unwrap()]);
    assert!(code != 0 && text.contains("cannot mount at"), "{code} {text}");
    let file = shell.path("file");
    fs::write(&file, "kept").unwrap();
    let (code, _, _) = shell.refused(["mount", "home", file.to_str().unwrap()]);
    assert_ne!(code, 0);
    let at = shell.path("at");
    fs::create_dir(&at).unwrap();
    assert_eq!(shell.refused(["mount", "none", at.to_str().unwrap()]).0, 3);
    let Some(mounted) = Mounted::new(&shell, &[]) else { return };
    // The store has one program at a time.
    let (code, _, text) = shell.refused(["fs", "ls", "home"]);
    assert!(code == 6 && text.contains("open"), "{code} {text}");
    mounted.interrupt();
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    shell.ok(["fs", "check", "home"]);
}

#[test]
fn mount_finds_a_helper_that_ends_when_the_file_system_is_there() {
    let shell = made();
    shell.ok_fed(["fs", "put", "home", "/before"], b"before");
    if File::options().read(true).write(true).open("/dev/fuse").is_err() {
        eprintln!("skipped: /dev/fuse cannot be opened here");
        return;
    }
    let (helper, at) = (shell.path("mount.tyr"), shell.path("mnt"));
    symlink(env!("CARGO_BIN_EXE_tyr"), &helper).unwrap();
    fs::create_dir(&at).unwrap();
    let source = |name: &str| format!("{name}@{}", shell.data().display());
    let called = |source: &str, options: &str| {
        let mut command = std::process::Command::new(&helper);
        command.arg(source).arg(&at).args(["-o", options]).stdin(Stdio::null());
        command.output().unwrap()
    };
    assert_eq!(called("home", "rw").status.code(), Some(1));
    let failed = called(&source("none"), "rw");
    assert_eq!(failed.status.code(), Some(32), "{failed:?}");
    assert!(String::from_utf8(failed.stderr).unwrap().contains("no file system none"));
    let mounted = called(&source("home"), "rw,noatime,_netdev");
    assert!(mounted.status.success(), "{mounted:?}");
    assert_eq!(fs::read_to_string(at.join("before")).unwrap(), "before");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts.lines().find(|it| it.contains(at.to_str().unwrap())).unwrap();
    assert!(line.contains(" fuse.tyr "), "{line}");
    let unmounted = std::process::Command::new("umount").arg(&at).status().unwrap();
    assert!(unmounted.success());
    // It gives the store back behind that.
    crate::nodes::until("the store is free", || {
        shell.run(["fs", "check", "home"]).status.success()
    });
}
