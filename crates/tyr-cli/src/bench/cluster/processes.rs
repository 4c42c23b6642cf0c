//! CPU time of several processes, as Linux tells it: in hundredths of a second.

use std::fs;
use std::time::Duration;

/// Processes whose CPU time is added up, this one among them.
pub struct Processes {
    ids: Vec<u32>,
}

impl Processes {
    /// This process and those.
    pub fn new(mut ids: Vec<u32>) -> Self {
        ids.push(std::process::id());
        Self { ids }
    }

    /// CPU time of all so far, user and kernel.
    pub fn cpu(&self) -> Duration {
        self.ids.iter().filter_map(|id| cpu_of(&fs::read_to_string(stat(*id)).ok()?)).sum()
    }
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
    }
}
