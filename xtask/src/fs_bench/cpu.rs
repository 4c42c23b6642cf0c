//! Whose CPU a step takes: this program, the servers of the place, the kernel's threads.
//!
//! From `/proc`, in ticks of 10 ms, so a step has to last a second or more. Threads of the kernel
//! work for everybody; what else runs on the machine is told, and stays out of the figures.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use crate::processes::{TICKS, times};

/// The processes that serve a place.
pub enum Servers {
    /// The kernel alone does.
    None,
    /// This one.
    One(u32),
    /// Those that a file has, a number at the begin of each line.
    Listed(PathBuf),
}

/// The parent of the kernel's threads.
const KERNEL: u32 = 2;

/// CPU seconds up to now.
#[derive(Clone, Default)]
pub struct Sample {
    program: f64,
    servers: f64,
    kernel: HashMap<u32, f64>,
    machine: f64,
}

/// CPU seconds between two samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    pub program: f64,
    pub servers: f64,
    pub kernel: f64,
    /// By whoever else was at work.
    pub others: f64,
}

impl Spent {
    pub fn all(self) -> f64 {
        self.program + self.servers + self.kernel
    }
}

impl Servers {
    fn numbers(&self) -> Vec<u32> {
        match self {
            Self::None => Vec::new(),
            Self::One(number) => vec![*number],
            Self::Listed(file) => {
                let text = fs::read_to_string(file).unwrap_or_default();
                let first = |line: &str| line.split_whitespace().next()?.parse().ok();
                text.lines().filter_map(first).collect()
            }
        }
    }
}

impl Sample {
    pub fn now(servers: &Servers) -> Self {
        let mut sample = Self { machine: machine(), ..Self::default() };
        sample.program = times(std::process::id()).map_or(0.0, |(_, seconds)| seconds);
        sample.servers =
            servers.numbers().into_iter().filter_map(times).map(|(_, seconds)| seconds).sum();
        let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = folders.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
        for number in numbers {
            if let Some((KERNEL, seconds)) = times(number) {
                sample.kernel.insert(number, seconds);
            }
        }
        sample
    }

    /// What was spent since this sample was taken. A thread of the kernel that has come since
    /// counts as a whole, one that has gone not at all.
    pub fn until(&self, later: &Self) -> Spent {
        let kernel = later.kernel.iter().map(|(number, seconds)| {
            (seconds - self.kernel.get(number).copied().unwrap_or_default()).max(0.0)
        });
        let mut spent = Spent {
            program: later.program - self.program,
            servers: later.servers - self.servers,
            kernel: kernel.sum(),
            others: 0.0,
        };
        spent.others = (later.machine - self.machine - spent.all()).max(0.0);
        spent
    }
}

/// What all processors have worked.
fn machine() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> =
        line.split_whitespace().skip(1).filter_map(|it| it.parse().ok()).collect();
    // All but the fourth and fifth, in which they were idle, and those behind the seventh, which
    // are in the first ones already.
    let is_work = |at: usize| !matches!(at, 3 | 4) && at < 7;
    ticks.iter().enumerate().filter(|(at, _)| is_work(*at)).map(|(_, it)| it).sum::<f64>() / TICKS
}
