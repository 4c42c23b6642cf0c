//! The nodes of a small cluster: processes of this program, watched and ended together.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tyr::Error;

use super::layout::{Layout, Place};
use crate::failure::Outcome;

/// How long nodes have to end: a fold of what a cache holds, on a slow disk.
const STOP_MAX: Duration = Duration::from_secs(15);

/// How often is looked whether a node has ended, and whether somebody wants all to.
const NAP: Duration = Duration::from_millis(50);

/// What nodes say of themselves.
pub enum News {
    /// It serves.
    Ready,
    /// It is gone.
    Ended {
        /// The node.
        node: u16,
        /// How it ended.
        how: String,
        /// Where to read more, and the last line there.
        words: String,
    },
}

/// What a node's output says.
enum Said {
    Event(Value),
    /// The process of this id says nothing any more.
    Closed(u32),
}

struct Node {
    number: u16,
    child: Child,
    log: PathBuf,
    /// Has the process's number, for who wants to kill it, as long as it runs.
    pid_file: PathBuf,
}

/// The nodes that run.
pub struct Children {
    nodes: Vec<Node>,
    layout: Layout,
    folder: PathBuf,
    sender: Sender<Said>,
    said: Receiver<Said>,
}

impl Children {
    /// Starts all of them.
    ///
    /// # Errors
    /// `Unavailable` when a process cannot be started.
    pub fn start(layout: &Layout, folder: &Path) -> Outcome<Self> {
        let (sender, said) = channel();
        let (layout, folder) = (layout.clone(), folder.to_owned());
        let mut children = Self { nodes: Vec::new(), layout, folder, sender, said };
        for number in 0..children.layout.nodes.len() {
            // Those that were started before end when this fails: their input does.
            children.begin(u16::try_from(number).expect("nodes are few"))?;
        }
        Ok(children)
    }

    /// Starts one that does not run.
    ///
    /// # Errors
    /// `Unavailable` when the process cannot be started.
    pub fn begin(&mut self, number: u16) -> Outcome {
        let Self { layout, folder, sender, .. } = self;
        let place = layout.nodes[usize::from(number)];
        self.nodes.push(Node::start(number, &place, layout, folder, sender)?);
        Ok(())
    }

    /// Kills one, as a loss of power would; answers whether it ran.
    pub fn kill(&mut self, number: u16) -> bool {
        let Some(at) = self.nodes.iter().position(|node| node.number == number) else {
            return false;
        };
        let mut node = self.nodes.remove(at);
        // It may have ended by itself just now.
        let _ = node.child.kill();
        let _ = node.child.wait();
        true
    }

    /// Waits until all that run have said that they take part.
    ///
    /// # Errors
    /// `Unavailable` when one ends, or they take too long.
    pub fn wait_until_ready(&mut self, patience: Duration) -> Outcome {
        self.wait_for_ready(self.nodes.len(), patience)
    }

    /// Waits until so many more have said so.
    ///
    /// # Errors
    /// As [`Children::wait_until_ready`].
    pub fn wait_for_ready(&mut self, count: usize, patience: Duration) -> Outcome {
        let deadline = Instant::now() + patience;
        let mut ready = 0;
        while ready < count {
            match self.next() {
                Some(News::Ready) => ready += 1,
                Some(News::Ended { node, how, words }) => {
                    let text = format!("node {node} ended ({how}); {words}");
                    return Err(Error::unavailable(text).into());
                }
                None if Instant::now() > deadline => {
                    let text = format!("the nodes are not ready; {}", self.last_words());
                    return Err(Error::unavailable(text).into());
                }
                None => {}
            }
        }
        Ok(())
    }

    /// What happens next, if it happens soon.
    pub fn next(&mut self) -> Option<News> {
        match self.said.recv_timeout(NAP).ok()? {
            Said::Event(event) => (event["event"] == "ready").then_some(News::Ready),
            Said::Closed(process) => {
                // One that was killed is not among them any more; its number may be, anew.
                let at = self.nodes.iter().position(|node| node.child.id() == process)?;
                let mut node = self.nodes.remove(at);
                let how = node.child.wait().map_or_else(|error| error.to_string(), describe);
                Some(News::Ended { node: node.number, how, words: node.words() })
            }
        }
    }

    /// Whether none runs any more.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where to read more, and the last line there, of all that run.
    pub fn last_words(&self) -> String {
        self.nodes.iter().map(Node::words).collect::<Vec<_>>().join("; ")
    }

    /// The processes.
    pub fn ids(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.child.id()).collect()
    }

    /// The nodes as text, one a line.
    pub fn list(&self) -> String {
        let line = |node: &Node| {
            let Place { listen, .. } = self.layout.nodes[usize::from(node.number)];
            format!("  node {}  {listen}  process {}", node.number, node.child.id())
        };
        self.nodes.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The nodes in JSON.
    pub fn describe(&self, layout: &Layout) -> Value {
        let describe = |node: &Node| {
            let Place { listen, http } = layout.nodes[usize::from(node.number)];
            json!({
                "node": node.number,
                "listen": listen.to_string(),
                "http": http.to_string(),
                "pid": node.child.id(),
                "log": node.log.display().to_string(),
            })
        };
        self.nodes.iter().map(describe).collect()
    }

    /// Ends all; answers how many had to be killed.
    pub fn stop(mut self) -> usize {
        for node in &mut self.nodes {
            drop(node.child.stdin.take());
        }
        let deadline = Instant::now() + STOP_MAX;
        let mut unwilling = 0;
        for node in &mut self.nodes {
            while matches!(node.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(NAP);
            }
            if matches!(node.child.try_wait(), Ok(None)) {
                unwilling += 1;
                // It may end by itself just now.
                let _ = node.child.kill();
                let _ = node.child.wait();
            }
        }
        unwilling
    }
}

impl Node {
    fn start(
        number: u16,
        place: &Place,
        layout: &Layout,
        folder: &Path,
        sender: &Sender<Said>,
    ) -> Outcome<Self> {
        let log = folder.join(format!("node-{number}.log"));
        let opened = File::options().create(true).append(true).open(&log);
        let opened = opened.map_err(|error| Error::io(log.display().to_string(), error))?;
        let failed = |error| Error::io(format!("node {number} cannot be started"), error);
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--until-input-ends", "--json", "--insecure", "--log-format", "text"])
            .args(["--node", &number.to_string(), "--nodes", &layout.formation()])
            .args(["--listen", &place.listen.to_string(), "--http", &place.http.to_string()])
            .arg("--folder")
            .arg(folder.join(format!("node-{number}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(opened)
            // Ctrl-C is for this process; it tells the nodes in its own way.
            .process_group(0);
        // What is set for other programs must not set these up.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TYR_") {
                command.env_remove(name);
            }
        }
        let mut child = command.spawn().map_err(failed)?;
        let output = child.stdout.take().expect("it was piped");
        listen(child.id(), output, sender.clone());
        let pid_file = folder.join(format!("node-{number}.pid"));
        let node = Self { number, child, log, pid_file };
        fs::write(&node.pid_file, format!("{}\n", node.child.id()))
            .map_err(|error| Error::io(node.pid_file.display().to_string(), error))?;
        Ok(node)
    }

    fn words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("");
        format!("{}: {last}", self.log.display())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Another process may get the number. The folder may be gone.
        let _ = fs::remove_file(&self.pid_file);
    }
}

/// Hears what a node says, on a thread of its own, until it ends.
fn listen(process: u32, output: ChildStdout, sender: Sender<Said>) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(event) = serde_json::from_str(&line)
                && sender.send(Said::Event(event)).is_err()
            {
                return;
            }
        }
        // Nobody hears it when all are being ended.
        let _ = sender.send(Said::Closed(process));
    });
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}
