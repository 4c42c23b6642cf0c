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

    /// CPU time of all that this process has started and that have ended.
    pub fn ended_cpu() -> Duration {
        times(std::process::id()).map_or(Duration::ZERO, |[_, of_ended]| of_ended)
    }

    /// The same, with that of this process.
    pub fn cpu(&self) -> Duration {
        self.nodes_cpu() + cpu(std::process::id())
    }
}

fn cpu(id: u32) -> Duration {
    times(id).map_or(Duration::ZERO, |[own, _]| own)
}

fn times(id: u32) -> Option<[Duration; 2]> {
    times_of(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// User and system time of a `stat` file, and that of the children that have ended: fields 14 to
/// 17, counted behind the name in brackets.
fn times_of(stat: &str) -> Option<[Duration; 2]> {
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    let mut times = fields.skip(11).map_while(|field| field.parse::<u64>().ok());
    let mut both = || Some(Duration::from_millis(10 * (times.next()? + times.next()?)));
    Some([both()?, both()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_a_name_with_spaces_and_brackets() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 50 25 3 1 20";
        assert_eq!(times_of(stat), Some([750, 40].map(Duration::from_millis)));
        assert_eq!(times_of("garbage"), None);
        assert!(Processes::new(Vec::new()).cpu() < Duration::from_secs(3600));
        assert_eq!(Processes::new(Vec::new()).nodes_cpu(), Duration::ZERO);
    }
}
