//! CPU time of the nodes' processes, as Linux tells it: in hundredths of a second.

use std::fs;
use std::time::Duration;

/// The processes of a cluster's nodes.
pub struct Processes {
    nodes: Vec<u32>,
}

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
