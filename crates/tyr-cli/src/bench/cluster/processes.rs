//! The nodes' processes: their CPU time, as Linux tells it, in hundredths of a second; and all but
//! the first held up for a moment.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The processes of a cluster's nodes.
pub struct Processes {
    nodes: Vec<u32>,
}

/// All nodes but the first are paused until this goes.
pub struct Paused<'p>(&'p Processes);

impl Processes {
    /// Those of nodes, in their order.
    pub fn new(nodes: Vec<u32>) -> Self {
        Self { nodes }
    }

    /// CPU time of the nodes so far, user and kernel.
    pub fn nodes_cpu(&self) -> Duration {
        self.nodes.iter().map(|id| cpu(*id)).sum()
    }

    /// The same, with that of this process.
    pub fn cpu(&self) -> Duration {
        self.nodes_cpu() + cpu(std::process::id())
    }

    /// Pauses all nodes but the first: what begins there is not finished, and soon it is full.
    pub fn pause_others(&self) -> Paused<'_> {
        self.signal_others(Signal::STOP);
        Paused(self)
    }

    fn signal_others(&self, signal: Signal) {
        for id in self.nodes.iter().skip(1) {
            let process = i32::try_from(*id).ok().and_then(Pid::from_raw);
            // One that has ended shows when it is asked for something.
            let _ = process.map(|process| kill_process(process, signal));
        }
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.signal_others(Signal::CONT);
    }
}

fn cpu(id: u32) -> Duration {
    let stat = fs::read_to_string(stat(id)).ok();
    stat.and_then(|stat| cpu_of(&stat)).unwrap_or_default()
}

fn stat(id: u32) -> String {
    format!("/proc/{id}/stat")
}

/// User and system time of a `stat` file: fields 14 and 15, counted behind the name in brackets.
fn cpu_of(stat: &str) -> Option<Duration> {
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    let mut times = fields.skip(11).map_while(|field| field.parse::<u64>().ok());
    Some(Duration::from_millis(10 * (times.next()? + times.next()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 50 25 0 0 20";
        assert_eq!(cpu_of(stat), Some(Duration::from_millis(750)));
        assert_eq!(cpu_of("garbage"), None);
        assert!(Processes::new(Vec::new()).cpu() < Duration::from_secs(3600));
        assert_eq!(Processes::new(Vec::new()).nodes_cpu(), Duration::ZERO);
    }
}
