//! `mount.tyr`: what mount(8), and with it /etc/fstab and systemd, calls for the type `tyr`.
//!
//! ```text
//!   mount -t tyr NAME@STORE DIRECTORY -o OPTIONS
//!     └─► mount.tyr NAME@STORE DIRECTORY -o OPTIONS      this program by another name
//!           └─► tyr --data STORE mount NAME DIRECTORY    stays, when this has ended
//! ```
//!
//! With the option `flat` NAME is a keyspace, whose blobs are the files.
//!
//! It ends once the file system is there, or with what mount(8) takes for "it could not be". What
//! is mounted has the type `fuse.tyr`: for `-o remount` mount(8) calls `mount.fuse.tyr`, if that is
//! there, which lets the kernel do it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The names by which this program is the helper.
const NAMES: [&str; 2] = ["mount.tyr", "mount.fuse.tyr"];

/// What mount(8) understands when a helper ends so: a usage that makes no sense, a failed mount.
const USAGE_CODE: u8 = 1;
const FAILED_CODE: u8 = 32;

/// Options that say nothing to a file system: they are for who calls this, or what every mount has.
const FOR_OTHERS: [&str; 18] = [
    "rw",
    "defaults",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "nodev",
    "nosuid",
    "relatime",
    "async",
    "exec",
    "allow_other",
    "default_permissions",
];

/// Whether this program was called as the helper, and what comes of it then.
pub fn run_if_called() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    let name = Path::new(&program).file_name()?.to_str()?.to_owned();
    if !NAMES.contains(&name.as_str()) {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    let done = |result: Result<ExitCode, String>| {
        result.unwrap_or_else(|text| {
            eprintln!("{name}: {text}");
            ExitCode::from(FAILED_CODE)
        })
    };
    Some(match asked(&words) {
        Ok(Asked::Nothing) => ExitCode::SUCCESS,
        Ok(Asked::Mount(arguments)) => done(mount(&arguments)),
        Ok(Asked::Remount(arguments)) => done(remount(&arguments)),
        Err(text) => {
            eprintln!("{name}: {text}\nusage: {name} NAME@STORE DIRECTORY [-o OPTIONS]");
            ExitCode::from(USAGE_CODE)
        }
    })
}

/// What mount(8) asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// To say that it could be done (`-f`).
    Nothing,
    /// The command line of `tyr mount`.
    Mount(Vec<OsString>),
    /// That of mount(8), without a helper.
    Remount(Vec<OsString>),
}

fn asked(words: &[OsString]) -> Result<Asked, String> {
    let (mut places, mut options, mut is_fake, mut is_sloppy) =
        (Vec::new(), Vec::new(), false, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-o") => {
                let list = words.next().and_then(|list| list.to_str());
                options.extend(list.ok_or("-o wants options")?.split(','));
            }
            // The type, or a namespace of mounts, which mount(8) has entered.
            Some("-t" | "-N") => drop(words.next()),
            Some(flags) if flags.starts_with('-') => {
                for flag in flags.chars().skip(1) {
                    match flag {
                        'f' => is_fake = true,
                        's' => is_sloppy = true,
                        'n' | 'v' => {}
                        'r' => options.push("ro"),
                        'w' => options.push("rw"),
                        other => return Err(format!("there is no flag -{other}")),
                    }
                }
            }
            _ => places.push(word.clone()),
        }
    }
    let [source, at] = &places[..] else { return Err("it wants a source and a directory".into()) };
    if options.contains(&"remount") {
        let words = ["-i", "-o", &options.join(",")].map(OsString::from);
        return Ok(Asked::Remount(words.into_iter().chain([at.clone()]).collect()));
    }
    let source = source.to_str().ok_or("the source is no UTF-8")?;
    let (name, store) = source
        .split_once('@')
        .filter(|(name, store)| !name.is_empty() && !store.is_empty())
        .ok_or_else(|| format!("{source} is no NAME@STORE, like home@/var/lib/tyr"))?;
    // A source with `=` in it is something else to mount(8), so this comes as options.
    let mut store = store.to_owned();
    for parameter in options.iter().filter_map(|option| option.strip_prefix("tyr.")) {
        store.push_str(if store.contains('?') { "&" } else { "/?" });
        store.push_str(parameter);
    }
    let mut mount: Vec<OsString> =
        ["--data", &store, "mount", name].into_iter().map(OsString::from).collect();
    mount.push(at.clone());
    mount.push("--detached".into());
    for option in options {
        match option {
            "ro" => mount.push("--read-only".into()),
            "noatime" => mount.push("--noatime".into()),
            "flat" => mount.push("--flat".into()),
            other if other.starts_with("cache_size=") => {
                mount.push(format!("--{}", other.replacen('_', "-", 1)).into());
            }
            other if FOR_OTHERS.contains(&other) || other.starts_with("x-") => {}
            other if other.starts_with("tyr.") => {}
            "" => {}
            _ if is_sloppy => {}
            other => return Err(format!("there is no option {other}")),
        }
    }
    Ok(if is_fake { Asked::Nothing } else { Asked::Mount(mount) })
}

/// The kernel changes what is there: no program has to know.
fn remount(arguments: &[OsString]) -> Result<ExitCode, String> {
    let status = Command::new("mount").args(arguments).status();
    let code = status.map_err(|error| format!("mount(8) does not start: {error}"))?.code();
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED_CODE)))
}

/// Starts it; answers when it is there, or has failed and said why.
fn mount(arguments: &[OsString]) -> Result<ExitCode, String> {
    let failed = |error: std::io::Error| format!("it cannot be started: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    // Who waits until nobody writes to this one's output any more must not wait for the other.
    let mut said = tempfile::tempfile().map_err(failed)?;
    let mut command = Command::new(program);
    // Not by the name of the helper, by which it would be that again.
    command.arg0("tyr").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(said.try_clone().map_err(failed)?);
    let mut child = command.spawn().map_err(failed)?;
    let mut line = String::new();
    let output = child.stdout.take().expect("it is a pipe");
    BufReader::new(output).read_line(&mut line).map_err(failed)?;
    if !line.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    child.wait().map_err(failed)?;
    let mut text = String::new();
    said.rewind().and_then(|()| said.read_to_string(&mut text)).map_err(failed)?;
    Err(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(words: &[&str]) -> Result<Option<Vec<String>>, String> {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        let (Asked::Mount(words) | Asked::Remount(words)) = asked(&words)? else { return Ok(None) };
        Ok(Some(words.iter().map(|word| word.to_str().unwrap().to_owned()).collect()))
    }

    #[test]
    fn what_mount_says_becomes_a_command_line() {
        let plain = called(&["home@/var/lib/tyr", "/mnt", "-o", "rw,_netdev,x-systemd.automount"]);
        let words = ["--data", "/var/lib/tyr", "mount", "home", "/mnt", "--detached"];
        assert_eq!(plain.unwrap().unwrap(), words);
        let source = "home@tyr://one:7001,two:7001";
        let options = "noatime,tyr.user=alice,ro,tyr.key_file=/etc/tyr/key,cache_size=16MiB";
        let more = called(&["-n", source, "/mnt", "-t", "tyr", "-o", options]).unwrap();
        let more = more.unwrap();
        assert_eq!(more[1], "tyr://one:7001,two:7001/?user=alice&key_file=/etc/tyr/key");
        assert_eq!(more[5..], ["--detached", "--noatime", "--read-only", "--cache-size=16MiB"]);
        assert_eq!(called(&["-f", "home@/store", "/mnt"]), Ok(None));
        let flat = called(&["data@/var/lib/tyr", "/mnt", "-o", "flat,ro,nofail"]).unwrap().unwrap();
        let words = ["mount", "data", "/mnt", "--detached", "--flat", "--read-only"];
        assert_eq!(flat[2..], words);
        let again = called(&["home", "/mnt", "-o", "rw,remount,ro"]).unwrap().unwrap();
        assert_eq!(again, ["-i", "-o", "rw,remount,ro", "/mnt"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for (words, part) in [
            (&["home@/store"][..], "a source and a directory"),
            (&["home", "/mnt"], "NAME@STORE"),
            (&["@/store", "/mnt"], "NAME@STORE"),
            (&["home@/store", "/mnt", "-o"], "-o wants options"),
            (&["home@/store", "/mnt", "-o", "rw,suid"], "no option suid"),
            (&["home@/store", "/mnt", "-z"], "no flag -z"),
        ] {
            let text = called(words).unwrap_err();
            assert!(text.contains(part), "{words:?}: {text}");
        }
        assert!(called(&["-s", "home@/store", "/mnt", "-o", "rw,suid"]).unwrap().is_some());
    }
}
