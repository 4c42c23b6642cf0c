//! One blob that several mounts and programs use at the same time.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::Command;

use super::{Flat, STALE, errno, with_flat, with_flat_alone};

#[test]
fn what_threads_of_two_mounts_append_is_all_there_and_whole() {
    with_flat(|Flat { keyspace, one, other }| {
        std::thread::scope(|scope| {
            for writer in 0..6 {
                let at = if writer % 2 == 0 { one } else { other };
                scope.spawn(move || {
                    let mut file =
                        OpenOptions::new().append(true).create(true).open(at.join("log")).unwrap();
                    for number in 0..50 {
                        // Lines of another length each, some of them over chunks.
                        let line = format!("{writer}:{number:03}:{}\n", "x".repeat(number * 80));
                        assert_eq!(file.write(line.as_bytes()).unwrap(), line.len());
                    }
                });
            }
            for number in 0..50 {
                keyspace.append("log", format!("s:{number:03}:\n")).unwrap();
            }
        });
        let all = String::from_utf8(keyspace.get("log").unwrap().to_vec()).unwrap();
        assert_eq!(fs::read_to_string(one.join("log")).unwrap(), all);
        let lines: BTreeSet<_> = all.lines().collect();
        assert_eq!((lines.len(), all.lines().count()), (350, 350));
        for line in lines.into_iter().filter(|line| !line.starts_with('s')) {
            let number: usize = line[2..5].parse().unwrap();
            assert_eq!(line[6..], "x".repeat(number * 80));
        }
    });
}

#[test]
fn of_two_mounts_that_make_a_file_exclusively_one_does() {
    with_flat(|Flat { one, other, .. }| {
        for number in 0..50 {
            let make = |at: &std::path::Path| {
                let made = File::create_new(at.join(format!("file {number}")));
                match made {
                    Ok(_) => true,
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
                    Err(error) => panic!("{error}"),
                }
            };
            let won = std::thread::scope(|scope| {
                let [one, other] = [one, other].map(|at| scope.spawn(move || make(at)));
                [one.join().unwrap(), other.join().unwrap()]
            });
            assert_ne!(won[0], won[1], "file {number}");
        }
        // Without O_EXCL both open what one of them has made.
        std::thread::scope(|scope| {
            for at in [one, other] {
                scope.spawn(move || {
                    for number in 0..50 {
                        let mut options = OpenOptions::new();
                        options.append(true).create(true);
                        options.open(at.join(format!("shared {number}"))).unwrap();
                    }
                });
            }
        });
    });
}

#[test]
fn ranks_write_their_blocks_into_one_file_at_the_same_time() {
    with_flat(|Flat { keyspace, one, other }| {
        const BLOCK_LEN: usize = 10_007;
        let ranks = 4_u8;
        File::create(one.join("shared")).unwrap();
        std::thread::scope(|scope| {
            for rank in 0..ranks {
                let at = if rank % 2 == 0 { one } else { other };
                scope.spawn(move || {
                    let file = File::options().write(true).open(at.join("shared")).unwrap();
                    for block in 0..20 {
                        let offset = (block * usize::from(ranks) + usize::from(rank)) * BLOCK_LEN;
                        file.write_all_at(&[rank + 1; BLOCK_LEN], offset as u64).unwrap();
                    }
                });
            }
        });
        let all = keyspace.get("shared").unwrap();
        assert_eq!(all.len(), 20 * usize::from(ranks) * BLOCK_LEN);
        for (number, block) in all.chunks(BLOCK_LEN).enumerate() {
            let rank = (number % usize::from(ranks)) as u8;
            assert!(block.iter().all(|byte| *byte == rank + 1), "block {number}");
        }
    });
}

#[test]
fn a_read_over_chunks_sees_each_write_as_a_whole_or_not_at_all() {
    with_flat(|Flat { keyspace, one, other }| {
        const LEN: usize = 500_000;
        keyspace.put("file", vec![0; LEN]).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let file = File::options().write(true).open(one.join("file")).unwrap();
                for round in 1..=30 {
                    assert_eq!(file.write_at(&[round; LEN], 0).unwrap(), LEN);
                }
            });
            let file = File::open(other.join("file")).unwrap();
            let mut before = 0;
            while !writer.is_finished() {
                let mut bytes = vec![0; LEN];
                assert_eq!(file.read_at(&mut bytes, 0).unwrap(), LEN);
                assert!(bytes.iter().all(|byte| *byte == bytes[0]), "torn");
                assert!(bytes[0] >= before, "an older one than before");
                before = bytes[0];
            }
            writer.join().unwrap();
        });
    });
}

#[test]
fn what_was_deleted_is_stale_for_who_has_it_open_and_is_not_made_anew() {
    with_flat(|Flat { keyspace, one, other }| {
        for by_other in [false, true] {
            fs::write(one.join("file"), "content").unwrap();
            let file = File::options().read(true).write(true).open(one.join("file")).unwrap();
            fs::remove_file(if by_other { other } else { one }.join("file")).unwrap();
            assert_eq!(errno(file.read_at(&mut [0; 7], 0)), STALE);
            assert_eq!(errno(file.write_at(b"late", 0)), STALE);
            assert_eq!(errno(file.set_len(0)), STALE);
            assert_eq!(errno(file.metadata()), STALE);
            assert!(keyspace.stat("file").is_err());
            let append = OpenOptions::new().append(true).create(true).open(one.join("file"));
            let append = append.unwrap();
            keyspace.delete("file").unwrap();
            assert_eq!(errno((&append).write(b"late")), STALE);
        }
        // Here a file of the same name is another one.
        fs::write(one.join("file"), "before").unwrap();
        let file = File::open(one.join("file")).unwrap();
        fs::remove_file(one.join("file")).unwrap();
        fs::write(one.join("file"), "after").unwrap();
        assert_eq!(errno(file.read_at(&mut [0; 7], 0)), STALE);
        assert_eq!(fs::read_to_string(one.join("file")).unwrap(), "after");
    });
}

/// Maps a file, reads it, and writes to it.
const MAPPED: &str = "
import mmap, sys
with open(sys.argv[1], 'r+b') as file:
    with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:6] == b'before', mapped[:6]
    with mmap.mmap(file.fileno(), 0) as mapped:
        mapped[5000:5006] = b'mapped'
        mapped.flush()
    file.seek(5000)
    assert file.read(6) == b'mapped'
";

#[test]
fn mapped_memory_shows_the_blob_and_what_is_written_into_it_is_the_blobs() {
    let map = |path: std::path::PathBuf| {
        let run = Command::new("python3").args(["-c", MAPPED]).arg(path).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    with_flat(|Flat { keyspace, one, other }| {
        for at in [one, other, one] {
            keyspace.put("file", [b"before".to_vec(), vec![1; 9_994]].concat()).unwrap();
            map(at.join("file"));
            let expected = [&b"before"[..], &[1; 4_994], b"mapped", &[1; 4_994]].concat();
            assert!(keyspace.get("file").unwrap() == expected);
        }
    });
    with_flat_alone(|keyspace, at| {
        keyspace.put("file", [b"before".to_vec(), vec![1; 9_994]].concat()).unwrap();
        map(at.join("file"));
        assert_eq!(keyspace.read("file", 5_000, 6).unwrap(), "mapped");
    });
}

#[test]
fn a_copy_of_a_tree_there_and_back_is_the_same() {
    let script = "set -eu; mkdir src; mkdir src/sub; seq 100000 > src/numbers; \
                  head -c 3000000 /dev/urandom > src/sub/random; : > src/sub/empty; \
                  cp -a src \"$1/cp\"; tar -cf - src | tar -xpf - -C \"$1\"; \
                  diff -r src \"$1/cp\"; diff -r src \"$1/src\"; \
                  mv \"$1/src\" \"$1/moved\"; diff -r src \"$1/moved\"; \
                  rm -r \"$1/cp\" \"$1/moved\"; test -z \"$(ls -A \"$1\")\"";
    let run = |at: &std::path::Path| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(at).current_dir(folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    with_flat(|flat| run(flat.one));
    with_flat_alone(|_, at| run(at));
}
