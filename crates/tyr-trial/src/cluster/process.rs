//! One node as a process: started, killed, stopped for a while, given a small disk or a wrong
//! clock.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tyr_types::{Error, Result};

use super::program::{Formation, Program, Sizes};
use crate::fabric::Endpoint;
use crate::fabric::namespaces::run;

/// How long a node may take to stop cleanly.
const STOP: Duration = Duration::from_secs(20);

/// The variable by which a node finds how wrong its clock is.
const SHIFT_VARIABLE: &str = "TYR_CLOCK_SHIFT_FILE";

/// The variable that tells a node which feature level it speaks.
const LEVEL_VARIABLE: &str = "TYR_LEVEL";

/// The variable that tells `tyr serve` what it logs.
const LOG_VARIABLE: &str = "TYR_LOG_LEVEL";

/// A monitor has applied the service metadata up to a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The revision.
    pub revision: u64,
    /// When, in microseconds of the day, UTC.
    pub at_us: u64,
}

/// One node. Dropping it kills the process.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub number: u16,
    /// How it comes to its cluster.
    pub formation: Formation,
    /// The rule that it breaks.
    pub broken: Option<String>,
    /// What it may have.
    pub sizes: Sizes,
    /// The feature level that it speaks, if that is not the program's.
    pub level: Option<u8>,
    /// What it logs, if that is not what the program does.
    pub log_level: Option<&'static str>,
    endpoint: Endpoint,
    folder: PathBuf,
    child: Option<Child>,
    starts: u32,
    is_mounted: bool,
}

impl Process {
    /// A node that does not run yet.
    pub fn new(number: u16, endpoint: Endpoint, folder: PathBuf) -> Self {
        let formation = Formation::Initial(String::new());
        let (broken, child, starts, is_mounted) = (None, None, 0, false);
        let (level, log_level, sizes) = (None, None, Sizes::default());
        Self {
            number,
            formation,
            broken,
            sizes,
            level,
            log_level,
            endpoint,
            folder,
            child,
            starts,
            is_mounted,
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// `Unavailable` when the system refuses.
    pub fn start(&mut self, program: &Program) -> Result<()> {
        let data = self.data();
        std::fs::create_dir_all(&data).map_err(|error| Error::io("the node's folder", error))?;
        let data = data.display().to_string();
        let words = program.words(self.number, &self.endpoint, &data, &self.formation, &self.sizes);
        let log = self.log()?;
        let errors = log.try_clone().map_err(|error| Error::io("the node's log", error))?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(log).stderr(errors);
        command.env(SHIFT_VARIABLE, self.shift_file());
        if let Some(level) = self.level {
            command.env(LEVEL_VARIABLE, level.to_string());
        }
        if let Some(level) = self.log_level {
            command.env(LOG_VARIABLE, level);
        }
        if let (Some(rule), Program::Own(_)) = (&self.broken, program) {
            command.args(["--broken", rule]);
        }
        let child = command.spawn().map_err(|error| Error::io(words.join(" "), error))?;
        self.starts += 1;
        self.child = Some(child);
        Ok(())
    }

    fn log(&self) -> Result<File> {
        let path = self.log_file();
        let log = OpenOptions::new().create(true).append(true).open(&path);
        log.map_err(|error| Error::io(path.display().to_string(), error))
    }

    /// What the node found wrong with replicas, as its log says. It writes them anew, so that in
    /// the end all may be equal again.
    ///
    /// # Errors
    /// `Unavailable` when the log cannot be read.
    pub fn findings(&self) -> Result<Vec<String>> {
        let log = self.said()?;
        let warnings = log.lines().filter(|line| line.contains("\"WARN\""));
        let findings = warnings.filter(|line| line.contains("\"scrubbing: "));
        Ok(findings.map(str::to_owned).collect())
    }

    /// Whether the node's log has this text.
    ///
    /// # Errors
    /// `Unavailable` when the log cannot be read.
    pub fn has_said(&self, text: &str) -> Result<bool> {
        Ok(self.said()?.contains(text))
    }

    /// When its monitor had applied which revision, as its log says at `debug`.
    ///
    /// # Errors
    /// `Unavailable` when the log cannot be read.
    pub fn applied(&self) -> Result<Vec<Applied>> {
        Ok(self.said()?.lines().filter_map(applied).collect())
    }

    fn said(&self) -> Result<String> {
        let path = self.log_file();
        let log =
            std::fs::read(&path).map_err(|error| Error::io(path.display().to_string(), error))?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    /// The folder that the node has.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn shift_file(&self) -> PathBuf {
        self.folder.join("clock-shift")
    }

    /// The number of its process; 0 when it does not run.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Whether its process is there, stopped or not.
    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Ends it as a loss of the process does.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        if let Some(mut child) = self.child.take() {
            // It is gone, one way or the other.
            let _ = child.wait();
        }
    }

    /// It does nothing until [`Process::resume`].
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// It goes on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Has it write to its log what it has in flight; only our own node does.
    pub fn inquire(&self, program: &Program) {
        match program {
            Program::Own(_) => self.signal(Signal::USR1),
            Program::Serve(_) => {}
        }
    }

    /// Stops it cleanly.
    ///
    /// # Errors
    /// `Unavailable` when it takes too long, or did not end well; it is gone all the same.
    pub fn stop(&mut self) -> Result<()> {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        let Some(mut child) = self.child.take() else { return Ok(()) };
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    let text = format!("node {} ended with {status} on SIGTERM", self.number);
                    return Err(Error::unavailable(text));
                }
                Ok(None) if begun.elapsed() < STOP => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Ok(None) | Err(_) => {
                    self.note_stacks(child.id());
                    self.child = Some(child);
                    self.kill();
                    let text = format!("node {} did not stop in {STOP:?}", self.number);
                    return Err(Error::unavailable(text));
                }
            }
        }
    }

    /// Notes in the node's log where its threads stand, if there is a debugger.
    fn note_stacks(&self, pid: u32) {
        let Ok(log) = self.log() else { return };
        let pid = pid.to_string();
        let mut debugger = Command::new("gdb");
        debugger.args(["-p", &pid, "-batch", "-ex", "thread apply all backtrace 40"]);
        let _ = debugger.stdin(Stdio::null()).stdout(log).stderr(Stdio::null()).status();
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().and_then(|child| Pid::from_raw(child.id().cast_signed()));
        if let Some(pid) = pid {
            // It may have ended by itself; whoever cares asks `is_running`.
            let _ = kill_process(pid, signal);
        }
    }

    /// Its wall clock is wrong by so many microseconds from now on.
    ///
    /// # Errors
    /// `Unavailable` when the file cannot be written.
    pub fn shift_clock(&self, shift_us: i64) -> Result<()> {
        let (file, new) = (self.shift_file(), self.folder.join("clock-shift.new"));
        std::fs::write(&new, shift_us.to_string())
            .and_then(|()| std::fs::rename(&new, &file))
            .map_err(|error| Error::io(file.display().to_string(), error))
    }

    /// Gives it a disk of its own, of this many bytes.
    ///
    /// # Errors
    /// `Unavailable` for who may not mount.
    pub fn mount(&mut self, len: &str) -> Result<()> {
        let data = self.data();
        std::fs::create_dir_all(&data).map_err(|error| Error::io("the node's folder", error))?;
        let place = data.display().to_string();
        run("mount", &["-t", "tmpfs", "-o", &format!("size={len}"), "tmpfs", &place])?;
        self.is_mounted = true;
        Ok(())
    }

    /// Fills its disk with one file until nothing more goes in.
    ///
    /// # Errors
    /// `InvalidArgument` when it has no disk of its own.
    pub fn fill_disk(&self) -> Result<()> {
        if !self.is_mounted {
            return Err(Error::invalid("only a disk of its own is filled"));
        }
        use std::io::Write;
        let mut file = File::create(self.filler()).map_err(|error| Error::io("filler", error))?;
        let zeros = vec![0; 64 << 10];
        // The last piece may fit in part: then byte by byte.
        for piece in [zeros.len(), 4096, 256, 1] {
            while file.write(&zeros[..piece]).is_ok_and(|written| written > 0) {}
        }
        Ok(())
    }

    /// Gives back what [`Process::fill_disk`] took.
    pub fn empty_disk(&self) {
        // It may not be there.
        let _ = std::fs::remove_file(self.filler());
    }

    fn filler(&self) -> PathBuf {
        self.data().join("filler")
    }

    /// Bytes of memory that it has, as the system counts them; 0 when it does not run.
    pub fn resident_len(&self) -> u64 {
        resident_len(self.pid())
    }
}

/// What a line of a log says of a revision, if it does.
fn applied(line: &str) -> Option<Applied> {
    #[derive(serde::Deserialize)]
    struct Line {
        timestamp: String,
        message: String,
        revision: u64,
    }
    let Line { timestamp, message, revision } = serde_json::from_str(line).ok()?;
    let (_, time) = timestamp.split_once('T').filter(|_| message == "applied")?;
    let mut parts = time.trim_end_matches('Z').split([':', '.']).map(str::parse::<u64>);
    let mut next = || parts.next()?.ok();
    let (hours, minutes, seconds, micros) = (next()?, next()?, next()?, next()?);
    let at_us = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros;
    Some(Applied { revision, at_us })
}

/// Bytes of memory that a process has, as the system counts them; 0 when it does not run.
pub fn resident_len(pid: u32) -> u64 {
    memory_len(pid, "VmRSS:")
}

/// The most that it had.
pub fn peak_resident_len(pid: u32) -> u64 {
    memory_len(pid, "VmHWM:")
}

fn memory_len(pid: u32, what: &str) -> u64 {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(what));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if self.is_mounted {
            let _ = run("umount", &["-l", &self.data().display().to_string()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_says_when_a_revision_was_applied() {
        let line = r#"{"timestamp":"2026-11-29T01:02:03.000456Z","level":"DEBUG",
            "message":"applied","revision":17,"target":"tyr_monitors::consensus::machine"}"#;
        let at_us = 3_723_000_456;
        assert_eq!(applied(line), Some(Applied { revision: 17, at_us }));
        assert_eq!(applied(&line.replace("applied", "other")), None);
        assert_eq!(applied("not JSON"), None);
    }
}
