//! Which suites there are, how each is called, and what it may find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::mounted::ran;

/// A suite.
pub struct Suite {
    pub name: &'static str,
    pub what: &'static str,
    /// What it needs, and where that comes from.
    pub program: &'static str,
    pub install: &'static str,
    pub run: Run,
}

/// How a suite runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// At each mount of the file system: in this directory of that, with one of another file
    /// system.
    Each(fn(&Path, &Path) -> Result<(), String>),
    /// Once for the file system and once for the blobs of a keyspace, at all mounts together: in
    /// this directory of each, with one of another file system.
    Together(fn(&[PathBuf], &Path) -> Result<(), String>),
}

pub const SUITES: [Suite; 13] = [
    Suite {
        name: "pjdfstest",
        what: "calls of POSIX, each with its errors",
        program: "pjdfstest",
        install: "cargo install pjdfstest (needs libacl1-dev)",
        run: Run::Each(pjdfstest),
    },
    Suite {
        name: "fsx",
        what: "random operations on a file, mapped too",
        program: "fsx",
        install: "cargo install fsx",
        run: Run::Each(fsx),
    },
    Suite {
        name: "fio",
        what: "bytes that are written at random places, verified",
        program: "fio",
        install: "apt-get install fio",
        run: Run::Each(fio),
    },
    Suite {
        name: "stress-ng",
        what: "names, links, locks, holes and attributes, by several processes at once",
        program: "stress-ng",
        install: "apt-get install stress-ng",
        run: Run::Each(stress_ng),
    },
    Suite {
        name: "dbench",
        what: "what office programs ask of a file server",
        program: "dbench",
        install: "apt-get install dbench",
        run: Run::Each(dbench),
    },
    Suite {
        name: "git",
        what: "commit, clone, gc, fsck",
        program: "git",
        install: "apt-get install git",
        run: Run::Each(git),
    },
    Suite {
        name: "sqlite",
        what: "two writers of one database, with and without its log of writes",
        program: "sqlite3",
        install: "apt-get install sqlite3",
        run: Run::Each(sqlite),
    },
    Suite {
        name: "tar",
        what: "a tree there and back, with modes, times and links",
        program: "tar",
        install: "apt-get install tar",
        run: Run::Each(tar),
    },
    Suite {
        name: "rsync",
        what: "a tree there, changed, there again and back",
        program: "rsync",
        install: "apt-get install rsync",
        run: Run::Each(rsync),
    },
    Suite {
        name: "python",
        what: "Python's own tests of files, mapped ones, archives and mailboxes among them",
        program: "python3",
        install: "apt-get install python3 libpython3-testsuite",
        run: Run::Each(python),
    },
    Suite {
        name: "go",
        what: "Go's own tests of files and directories",
        program: "go",
        install: "apt-get install golang-go",
        run: Run::Each(go),
    },
    Suite {
        name: "postgresql",
        what: "a database that is killed under pgbench has all that was committed",
        program: "pgbench",
        install: "apt-get install postgresql",
        run: Run::Each(postgresql),
    },
    Suite {
        name: "mpi-io",
        what: "four ranks that write interleaved blocks into one file, and into one blob",
        program: "mpicc",
        install: "apt-get install openmpi-bin libopenmpi-dev",
        run: Run::Together(mpi_io),
    },
];

/// Tests of pjdfstest that fail, each with its reason: none does.
const EXPECTED_FAILURES: [(&str, &str); 0] = [];

fn pjdfstest(at: &Path, beside: &Path) -> Result<(), String> {
    let failures: Vec<_> = EXPECTED_FAILURES.iter().map(|(name, _)| format!("{name:?}")).collect();
    // A mount of which the kernel still knows files without a name cannot be made read-only, and
    // the other tests leave such: so those that do it come first. Where mount(8) finds the helper
    // of libfuse, and not ours, it would start a program to change a mount, and nothing is tried.
    let can_be_remounted =
        !Path::new("/sbin/mount.fuse").exists() || Path::new("/sbin/mount.fuse.tyr").exists();
    for (is_remounted, names) in [(can_be_remounted, &["erofs"][..]), (false, &[][..])] {
        let configuration = format!(
            "[features]\nposix_fallocate = {{}}\nrename_ctime = {{}}\nstat_st_birthtime = {{}}\n\
             utime_now = {{}}\nutimensat = {{}}\n\
             [settings]\nnaptime = 0.01\nallow_remount = {is_remounted}\n\
             expected_failures = [{}]\n\
             [dummy_auth]\nentries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"]]\n",
            failures.join(", ")
        );
        let file = beside.join("pjdfstest.toml");
        fs::write(&file, configuration).map_err(|error| error.to_string())?;
        let mut command = Command::new("pjdfstest");
        command.arg("-c").arg(file).arg("-p").arg(at).arg("-s").arg(beside).args(names);
        ran(&mut command)?;
    }
    Ok(())
}

fn fsx(at: &Path, beside: &Path) -> Result<(), String> {
    let configuration = "\
        flen = 1048576\n[opsize]\nmax = 131072\n[weights]\nclose_open = 1\ninvalidate = 1\n\
        read = 10\nwrite = 10\nmapread = 5\nmapwrite = 5\ntruncate = 2\nfsync = 1\nfdatasync = 1\n\
        posix_fallocate = 2\npunch_hole = 4\nsendfile = 2\ncopy_file_range = 2\n";
    let file = beside.join("fsx.toml");
    fs::write(&file, configuration).map_err(|error| error.to_string())?;
    for seed in ["1", "2"] {
        let mut command = Command::new("fsx");
        command.args(["-N", "3000", "-S", seed, "-f"]).arg(&file).arg("-P").arg(beside);
        ran(command.arg(at.join(format!("file-{seed}"))).stdout(Stdio::null()))?;
    }
    Ok(())
}

fn fio(at: &Path, beside: &Path) -> Result<(), String> {
    let directory = format!("--directory={}", at.display());
    // It leaves files where it stands.
    ran(Command::new("fio").current_dir(beside).args([
        "--name=verified",
        &directory,
        "--rw=randwrite",
        "--bsrange=512-128k",
        "--bs_unaligned",
        "--size=32m",
        "--numjobs=2",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--do_verify=1",
        "--fallocate=none",
        "--output-format=terse",
    ]))
}

/// Those of its class `filesystem` that are about what the kernel has, and no files of ours.
const LEFT_OUT: &str = "bind-mount,binderfs,chattr,dnotify,eventfd,fanotify,fiemap,file-ioctl,\
                        handle,inode-flags,ioprio,procfs,verity";

fn stress_ng(at: &Path, _: &Path) -> Result<(), String> {
    let mut command = Command::new("stress-ng");
    command.args(["--class", "filesystem", "--exclude", LEFT_OUT, "--sequential", "2"]);
    command.args(["--timeout", "2s", "--verify", "--hdd-bytes", "16m", "--iomix-bytes", "16m"]);
    ran(command.arg("--temp-path").arg(at))
}

fn dbench(at: &Path, _: &Path) -> Result<(), String> {
    ran(Command::new("dbench").arg("-D").arg(at).args(["-t", "10", "2"]).stdout(Stdio::null()))
}

/// A line of a shell, in this directory; what it prints is shown.
fn shell(at: &Path, line: &str) -> Result<(), String> {
    ran(Command::new("sh").args(["-euc", line]).current_dir(at))
}

fn git(at: &Path, _: &Path) -> Result<(), String> {
    let root = crate::root();
    let source = root.join("crates/tyr-types");
    shell(
        at,
        &format!(
            "git init -q made; cp -r '{}' made/; cd made; git add .; \
             git -c user.name=t -c user.email=t@t commit -qm one; \
             git mv tyr-types moved; git -c user.name=t -c user.email=t@t commit -qm two; \
             cd ..; git clone -q made cloned; cd cloned; git gc -q; git fsck --strict; \
             test -z \"$(git status --porcelain)\"; diff -r moved ../made/moved",
            source.display()
        ),
    )
}

fn sqlite(at: &Path, _: &Path) -> Result<(), String> {
    for journal in ["delete", "wal"] {
        shell(
            at,
            &format!(
                "db={journal}.db; \
                 sqlite3 $db 'pragma journal_mode={journal}; create table t(w, n)'; \
                 writer() {{ for n in $(seq 60); do \
                 echo \"begin immediate; insert into t values($1, $n); commit;\"; done \
                 | sqlite3 -cmd '.timeout 20000' $db; }}; \
                 writer 1 & writer 2; wait; \
                 test \"$(sqlite3 $db 'pragma integrity_check')\" = ok; \
                 test \"$(sqlite3 $db 'select count(*) from t')\" = 120"
            ),
        )?;
    }
    Ok(())
}

fn tar(at: &Path, beside: &Path) -> Result<(), String> {
    let (root, beside) = (crate::root().join("docs"), beside.display());
    shell(
        at,
        &format!(
            "cp -a '{root}' '{beside}/tree'; ln '{beside}/tree/start.md' '{beside}/tree/link'; \
             ln -s nowhere '{beside}/tree/symlink'; mkfifo '{beside}/tree/fifo'; \
             tar -C '{beside}' -cf - tree | tar -xpf -; diff -r --no-dereference \
             --exclude=fifo '{beside}/tree' tree; tar -C '{beside}' -cf '{beside}/there.tar' \
             --sort=name --numeric-owner tree; tar -cf '{beside}/back.tar' --sort=name \
             --numeric-owner tree; cmp '{beside}/there.tar' '{beside}/back.tar'",
            root = root.display()
        ),
    )
}

fn rsync(at: &Path, beside: &Path) -> Result<(), String> {
    let root = crate::root();
    let (docs, beside) = (root.join("docs"), beside.join("synchronized"));
    shell(
        at,
        &format!(
            "cp -a '{docs}' '{beside}'; ln '{beside}/start.md' '{beside}/link'; \
             rsync -aHX '{beside}/' tree; echo more >>'{beside}/start.md'; \
             rm -r '{beside}/decisions'; mv '{beside}/guide' '{beside}/moved'; \
             rsync -aHX --checksum --delete '{beside}/' tree; diff -r '{beside}' tree; \
             test -z \"$(rsync -aHXn --checksum --delete --itemize-changes '{beside}/' tree)\"; \
             test -z \"$(rsync -aHXn --checksum --delete --itemize-changes tree/ '{beside}')\"",
            docs = docs.display(),
            beside = beside.display()
        ),
    )
}

/// Those of Python's tests that are about files.
const OF_PYTHON: &str = "\
    test_os test_posix test_shutil test_tempfile test_file test_fileio test_io test_mmap test_glob \
    test_pathlib test_posixpath test_genericpath test_filecmp test_fileinput test_fcntl test_stat \
    test_zipfile test_tarfile test_mailbox test_dbm test_sqlite3 test_largefile test_unicode_file \
    test_unicode_file_functions test_bufio test_univnewlines test_shelve test_py_compile \
    test_zipapp test_linecache test_import";

fn python(at: &Path, _: &Path) -> Result<(), String> {
    let mut command = Command::new("python3");
    command.args(["-m", "test", "-u", "largefile", "--tempdir"]).arg(at);
    ran(command.args(OF_PYTHON.split_whitespace()).env("TMPDIR", at).current_dir(at))
}

/// A test of Go that fails: that files have no deadlines, which it takes from a file that cannot be
/// polled. The kernel lets every file of FUSE be polled.
const NOT_OF_GO: &str = "^TestNonpollableDeadline$";

fn go(at: &Path, beside: &Path) -> Result<(), String> {
    let mut command = Command::new("go");
    command.args(["test", "-count=1", "-skip", NOT_OF_GO]);
    command.args(["os", "path/filepath", "io/fs", "internal/poll"]);
    ran(command.env("TMPDIR", at).env_remove("GOTMPDIR").current_dir(beside))
}

/// How often a database is killed.
const KILLS: u32 = 50;

/// Of a database: as the user `nobody`, for it refuses to run as root. Clients count what they were
/// told is committed, each in a row of its own; `kill -9` of all its processes, and it begins
/// again with what is on disk.
fn postgresql(at: &Path, beside: &Path) -> Result<(), String> {
    let script = crate::root().join("xtask/src/fs_suites/postgresql.sh");
    let mut command = Command::new("bash");
    command.arg(script).arg(at.join("database")).arg(beside.join("sockets"));
    ran(command.arg(KILLS.to_string()).current_dir(beside))
}

/// Its program is compiled before it runs.
fn mpi_io(at: &[PathBuf], beside: &Path) -> Result<(), String> {
    let (source, program) =
        (crate::root().join("xtask/src/fs_suites/mpi_io.c"), beside.join("mpi_io"));
    ran(Command::new("mpicc").arg("-o").arg(&program).arg(source))?;
    let mut command = Command::new("mpirun");
    // There may be fewer processors than ranks, which wait for each other.
    command.args(["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]);
    command.args(["-n", "4"]).arg(program).args(at.iter().map(|at| at.join("shared")));
    ran(command.current_dir(beside))
}
