//! Nodes as processes, and a word with them over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tyr_testing::free_address;

use crate::shell::Shell;

/// How long anything may take on a machine that has much else to do.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A process that says what happens to it, a JSON object a line.
pub struct Process {
    pub child: Child,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it; its log goes to a file.
    pub fn start(shell: &Shell, log: &str, arguments: &[&str]) -> Self {
        Self::start_with(shell, log, arguments, &[])
    }

    /// The same with these environment variables.
    pub fn start_with(
        shell: &Shell,
        log: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let log = std::fs::File::create(shell.path(log)).expect("the folder is there");
        let mut command = shell.command(arguments);
        command.arg("--json").envs(variables.iter().copied());
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.stderr(log).spawn().expect("the binary starts");
        let output = BufReader::new(child.stdout.take().expect("it was piped"));
        Self { child, output }
    }

    /// Waits for the next line that says this.
    pub fn wait_for(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            let len = self.output.read_line(&mut line).expect("lines are text");
            assert!(len > 0, "it ended before it was {event}");
            let said: Value = serde_json::from_str(&line).expect("with --json lines are JSON");
            if said["event"] == event {
                return said;
            }
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the child is ours and not reaped");
    }

    /// Waits for its end.
    pub fn end(mut self) -> ExitStatus {
        self.child.wait().expect("it was not waited for")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // When a test fails nobody else ends it. It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Nodes of one cluster.
pub struct Nodes {
    pub processes: Vec<Process>,
    pub listen: Vec<SocketAddr>,
    pub http: Vec<SocketAddr>,
}

impl Nodes {
    /// Starts a cluster, and waits until all of it is ready.
    pub fn form(shell: &Shell, count: usize, more: &[&str]) -> Self {
        let addresses = || (0..count).map(|_| free_address()).collect();
        let mut nodes = Self { processes: Vec::new(), listen: addresses(), http: addresses() };
        for number in 0..count {
            let process = nodes.start(shell, number, more);
            nodes.processes.push(process);
        }
        for process in &mut nodes.processes {
            process.wait_for("ready");
        }
        nodes
    }

    /// Starts one of them.
    pub fn start(&self, shell: &Shell, number: usize, more: &[&str]) -> Process {
        let listed = self.listen.iter().enumerate().map(|(node, at)| format!("{node}={at}"));
        let listed = listed.collect::<Vec<_>>().join(",");
        let [listen, http] = [self.listen[number], self.http[number]].map(|it| it.to_string());
        let folder = shell.path(&format!("node-{number}")).display().to_string();
        let name = number.to_string();
        let mut arguments = vec!["serve", "--node", &name, "--folder", &folder];
        arguments.extend(["--listen", &listen, "--nodes", &listed]);
        if !more.contains(&"--http") {
            arguments.extend(["--http", &http]);
        }
        arguments.extend(more);
        Process::start(shell, &format!("node-{number}.log"), &arguments)
    }
}

/// What a node answers over HTTP: the status, and the body.
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(DEADLINE)).expect("a minute is a time-out");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head, and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), body.to_owned())
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
