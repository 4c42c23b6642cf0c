//! The binary as a process: help, completions, pipes, signals, a second opener, damage.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout};

use rustix::process::{Pid, Signal, kill_process};

use crate::shell::{Shell, describe, files, noise};

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the child is ours and not reaped");
}

/// Starts a command that keeps the store open, and waits until it has.
fn serve(shell: &Shell) -> (Child, BufReader<ChildStdout>) {
    let mut child = shell.start(["telemetry", "serve", "--http", "127.0.0.1:0"]);
    let mut output = BufReader::new(child.stdout.take().expect("it was piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it says where it listens");
    assert!(line.starts_with("listening"), "{line}");
    (child, output)
}

#[test]
fn help_and_version_come_on_standard_output() {
    let shell = Shell::empty();
    assert!(shell.text(["--version"]).starts_with("tyr "));
    let help = shell.text(["--help"]);
    for command in ["keyspace", "txn", "telemetry", "demo"] {
        assert!(help.contains(command), "{command}");
    }
    assert!(shell.text(["put", "--help"]).contains("Example"));
    assert_eq!(shell.run([""; 0]).status.code(), Some(2));
}

#[test]
fn every_shell_gets_completions() {
    let shell = Shell::empty();
    for name in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(shell.text(["completions", name]).contains("keyspace"), "{name}");
    }
    assert_eq!(shell.run(["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn without_a_store_it_says_how_to_name_one() {
    let shell = Shell::empty();
    let mut command = shell.command(["keyspace", "list"]);
    let output = command.env_remove("TYR_DATA").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("--data") && text.contains("TYR_DATA"), "{text}");
    // Nor is there one behind an address that is not a cluster's: no folder of that name is made.
    let create = ["keyspace", "create", "ks", "--data", "http://127.0.0.1:7070"];
    let (code, kind, message) = shell.refused(create);
    assert_eq!((code, kind.as_str()), (2, "Usage"), "{message}");
    assert!(message.contains("begins with tyr://"), "{message}");
    let (code, kind, message) = shell.refused(["keyspace", "list"]);
    assert_eq!((code, kind.as_str()), (3, "NotFound"), "{message}");
    assert!(!shell.data().exists(), "looking at a store does not make one");
}

#[test]
fn data_on_the_command_line_wins_over_the_environment() {
    let shell = Shell::new();
    let other = shell.path("other");
    let other = other.to_str().unwrap();
    shell.ok(["--data", other, "keyspace", "create", "there"]);
    assert!(shell.text(["keyspace", "list", "--data", other]).contains("there"));
    assert!(!shell.text(["keyspace", "list"]).contains("there"));
}

#[test]
fn a_reader_that_has_enough_ends_it_quietly() {
    let shell = Shell::new();
    shell.ok_fed(["put", "ks", "large"], &noise(8 << 20, 1));
    let mut child = shell.start(["get", "ks", "large"]);
    let mut some = [0; 10];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut some).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", describe(&output));
    assert!(output.stderr.is_empty(), "{}", describe(&output));
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let Ok(full) = std::fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let shell = Shell::new();
    shell.ok_fed(["put", "ks", "b"], &noise(100_000, 1));
    let output = shell.command(["get", "ks", "b"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stderr.is_empty());
}

#[test]
fn a_second_opener_is_refused_and_told_who_was_first() {
    let shell = Shell::new();
    let (mut child, _output) = serve(&shell);
    let (code, kind, message) = shell.refused(["put", "ks", "a", "--value", "x"]);
    assert_eq!((code, kind.as_str()), (6, "Unavailable"), "{message}");
    assert!(message.contains(&child.id().to_string()), "{message}");
    assert_eq!(shell.refused(["check"]).0, 6);
    signal(&child, Signal::INT);
    assert!(child.wait().unwrap().success());
    shell.ok(["put", "ks", "a", "--value", "x"]);
}

#[test]
fn a_service_ends_well_on_either_signal() {
    for stop in [Signal::INT, Signal::TERM] {
        let shell = Shell::empty();
        let (mut child, mut output) = serve(&shell);
        signal(&child, stop);
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("stored 0"), "{rest}");
        assert!(child.wait().unwrap().success());
        shell.assert_clean();
    }
}

#[test]
fn ctrl_c_in_the_middle_of_a_put_leaves_the_old_blob_and_a_clean_store() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "b", "--value", "old"]);
    let mut child = shell.start(["put", "ks", "b"]);
    let mut stdin = child.stdin.take().unwrap();
    // A pipe holds far less: once this is written, the command is reading.
    stdin.write_all(&noise(4 << 20, 2)).unwrap();
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130), "{}", describe(&output));
    assert_eq!(shell.ok(["get", "ks", "b"]), b"old");
    shell.assert_clean();
}

#[test]
fn a_killed_put_leaves_the_old_blob_and_a_clean_store() {
    let shell = Shell::new();
    shell.ok(["put", "ks", "b", "--value", "old"]);
    let mut child = shell.start(["put", "ks", "b"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&noise(4 << 20, 2)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(shell.ok(["get", "ks", "b"]), b"old");
    shell.assert_clean();
}

#[test]
fn the_space_of_a_killed_put_comes_back_when_the_store_is_opened_to_be_written() {
    /// What its payloads take on the disk, in MiB.
    fn extents_mib(shell: &Shell) -> u64 {
        use std::os::unix::fs::MetadataExt;
        let is_extents = |path: &std::path::Path| path.extension().is_some_and(|it| it == "ext");
        let of = |path: &std::path::Path| std::fs::metadata(path).expect("listed").blocks() / 2048;
        let paths = files(&shell.data()).into_iter().map(|(path, _)| path);
        paths.filter(|path| is_extents(path)).map(|path| of(&path)).sum()
    }
    let shell = Shell::new();
    let mut child = shell.start(["put", "ks", "b"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&noise(64 << 20, 2)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(extents_mib(&shell) > 16, "{}", extents_mib(&shell));
    // Who looks changes nothing.
    assert_eq!(shell.text(["ls", "ks"]), "");
    assert!(extents_mib(&shell) > 16, "{}", extents_mib(&shell));
    let tyr = tyr::blocking::Tyr::open(shell.data()).unwrap();
    assert_eq!(extents_mib(&shell), 0, "nothing was written yet");
    tyr.close().unwrap();
    shell.assert_clean();
}

#[test]
fn damage_is_found_and_named() {
    let shell = Shell::new();
    shell.ok_fed(["put", "ks", "large"], &noise(1 << 20, 5));
    shell.assert_clean();
    // The only extent file holds the blob's bytes; its middle is some of them.
    let is_extents = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "ext");
    let mut paths = files(&shell.data()).into_iter().map(|(path, _)| path);
    let path = paths.find(is_extents).expect("a large blob is in one");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = (1 << 20) / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (code, kind, message) = shell.refused(["check"]);
    assert_eq!((code, kind.as_str()), (12, "Corrupt"), "{message}");
    let name = path.file_name().unwrap().to_str().unwrap();
    let text = String::from_utf8(shell.run(["check"]).stdout).unwrap();
    assert!(text.contains(name), "{name} in {text}");
    assert_eq!(shell.refused(["get", "ks", "large", "-o", "/dev/null"]).0, 12);
}

/// A store with these keys, as a process leaves it that is killed: all is in the log. Answers also
/// the log.
fn killed_store(shell: &Shell, keys: &[&str]) -> (std::path::PathBuf, std::path::PathBuf) {
    let tyr = tyr::blocking::Tyr::open(shell.data()).expect("it is new");
    let keyspace = tyr.create_keyspace("ks", tyr::KeyspaceConfig::default()).expect("it is new");
    for key in keys {
        keyspace.put(*key, format!("what is in {key}").into_bytes()).expect("there is room");
    }
    let killed = shell.path("killed");
    let copied = std::process::Command::new("cp").arg("-r").args([&shell.data(), &killed]).status();
    assert!(copied.expect("cp is there").success());
    tyr.close().expect("there is room");
    let is_log = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "log");
    let log = files(&killed).into_iter().map(|(path, _)| path).find(is_log);
    (killed, log.expect("every store has one"))
}

/// What was committed after the damage is missing: nobody reads that without having said so.
#[test]
fn a_store_whose_log_is_damaged_is_read_when_somebody_says_so_and_only_then() {
    let shell = Shell::empty();
    let (killed, log) = killed_store(&shell, &["before", "damaged", "after"]);
    let mut bytes = std::fs::read(&log).unwrap();
    let content = b"what is in damaged";
    let place = bytes.windows(content.len()).position(|it| it == content).unwrap();
    bytes[place] ^= 1;
    std::fs::write(log, bytes).unwrap();

    let data = killed.to_str().unwrap();
    let (code, kind, message) = shell.refused(["get", "ks", "before", "--data", data]);
    assert_eq!((code, kind.as_str()), (12, "Corrupt"), "{message}");
    assert!(message.contains("--despite-damage"), "{message}");
    let despite = |key| ["get", "ks", key, "--data", data, "--despite-damage"];
    assert_eq!(shell.ok(despite("before")), b"what is in before");
    assert_eq!(shell.refused(despite("after")).0, 3, "it was committed after the damage");
}

#[test]
fn what_a_crash_left_at_the_end_of_the_log_is_told() {
    let shell = Shell::empty();
    let (killed, log) = killed_store(&shell, &["before"]);
    let mut bytes = std::fs::read(&log).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    bytes.extend([vec![0; 512], vec![7; 20]].concat());
    std::fs::write(&log, bytes).unwrap();

    let (data, name) = (killed.to_str().unwrap(), log.file_name().unwrap().to_str().unwrap());
    let told = |text: Vec<u8>| String::from_utf8(text).unwrap();
    let checked = shell.run(["check", "--data", data]);
    assert!(checked.status.success(), "{checked:?}");
    let text = told(checked.stdout);
    assert!(text.contains(name) && text.contains("with 0 transactions"), "{text}");
    // Who reads passes over it, who writes cuts it off.
    let get = ["get", "ks", "before", "--data", data];
    let later = shell.path("later");
    std::fs::write(&later, "late").unwrap();
    let put = ["put", "ks", "later", later.to_str().unwrap(), "--data", data];
    for command in [&get[..], &put[..]] {
        let output = shell.run(command);
        assert!(output.status.success(), "{output:?}");
        let warning = told(output.stderr);
        assert!(warning.contains("warning") && warning.contains(name), "{command:?}: {warning}");
    }
    assert_eq!(told(shell.run(get).stderr), "");
}
