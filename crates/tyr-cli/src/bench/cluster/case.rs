//! What is measured: which operation, and with how many callers.

use serde_json::{Value, json};
use tyr::{KeyspaceConfig, PlacedBy};
use tyr_log::Options;

use super::files;
use crate::bench::calls;
use crate::bench::log;
use crate::bench::meter::Figures;
use crate::bench::workload::{READ_LEN, RECORD_LEN};

/// Blobs that are listed.
pub(super) const LISTED: usize = 1_000;
/// Leases that are held while their cost is measured.
pub(super) const HELD: usize = 1_000;
/// Bytes of a chunk, for pieces of 64 KiB and 4 MiB alike.
const LARGE_CHUNK: u64 = 64 << 20;

/// What each caller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The transaction of a monitoring store, in one minute.
    Hot,
    /// The same, by more than a node takes at a time: who is refused tries again after a moment.
    Crowd,
    /// The same, in any minute of a day.
    Spread,
    /// The same, in one minute, by reading and writing.
    ByReading,
    /// A file created: a blob of 4 KiB that must not be there, and two numbers added to in the
    /// header of its group, which must be.
    File,
    /// 800 bytes of one of 1000 series, zipf 0.99.
    Read,
    /// This many bytes at a random place that is a multiple of them.
    Write(u64),
    /// The same, read back.
    ReadLarge(u64),
    /// A page of the keys of one group with their attributes, and so many first bytes of each.
    Page(u64),
    /// As many keys of a keyspace whose blobs lie anywhere.
    PageOfAll,
    /// A lease of a key that nobody else wants, taken and given back.
    Lease,
    /// A second of [`HELD`] leases of three seconds, each of which is renewed each 0.75 s.
    Hold,
    /// A blob written of which another client holds a lease, which it gives back when it is asked.
    Recall,
    /// A blob written, until another client that watches it knows.
    Watch,
    /// Something done to a shared log.
    Log(log::Work),
    /// A call of a method, or the plain write that it becomes.
    Calls(calls::Work),
}

/// A case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What.
    pub work: Work,
    /// Callers in flight.
    pub callers: usize,
}

impl Case {
    /// All, in the order of the table.
    pub fn all() -> Vec<Self> {
        let of = |work: Work, callers: &[usize]| -> Vec<Self> {
            callers.iter().map(|callers| Self { work, callers: *callers }).collect()
        };
        [
            of(Work::Hot, &[1, 8, 32, 128]),
            of(Work::Crowd, &[128, 1024, 4096, 8192]),
            of(Work::Spread, &[1, 8, 32, 128]),
            of(Work::ByReading, &[32]),
            of(Work::File, &[1, 32, 128]),
            of(Work::Read, &[1, 32, 128]),
            of(Work::Write(64 << 10), &[16]),
            of(Work::Write(4 << 20), &[4]),
            of(Work::ReadLarge(4 << 20), &[4]),
            of(Work::Page(0), &[1, 8]),
            of(Work::Page(512), &[1, 8]),
            of(Work::PageOfAll, &[1, 8]),
            of(Work::Lease, &[1, 32]),
            of(Work::Hold, &[1]),
            of(Work::Recall, &[1, 32]),
            of(Work::Watch, &[1, 32]),
            of(Work::Log(log::Work::Append), &[1, 32, 128]),
            of(Work::Log(log::Work::Batches), &[1, 8]),
            of(Work::Log(log::Work::Pop), &[1, 8]),
            of(Work::Calls(calls::Work::Plain), &[1, 32]),
            of(Work::Calls(calls::Work::Call), &[1, 32]),
            of(Work::Calls(calls::Work::Hot), &[32, 128]),
        ]
        .concat()
    }

    /// In words.
    pub fn label(&self) -> String {
        let work = match self.work {
            Work::Hot => "transactions, one minute".to_owned(),
            Work::Crowd => "transactions of a crowd, one minute".to_owned(),
            Work::Spread => "transactions, a day".to_owned(),
            Work::ByReading => "transactions by reading, one minute".to_owned(),
            Work::File => "files created in a group".to_owned(),
            Work::Read => "reads of 800 B, zipf".to_owned(),
            Work::Write(len) => format!("writes of {} KiB", len >> 10),
            Work::ReadLarge(len) => format!("reads of {} KiB", len >> 10),
            Work::Page(0) => format!("pages of {LISTED} keys of a group"),
            Work::Page(first) => {
                format!("pages of {LISTED} keys of a group with {first} B of each")
            }
            Work::PageOfAll => format!("pages of {LISTED} keys of all groups"),
            Work::Lease => "leases taken and given back".to_owned(),
            Work::Hold => format!("seconds of {HELD} leases held"),
            Work::Recall => "writes of what another holds".to_owned(),
            Work::Watch => "writes until a watcher knows".to_owned(),
            Work::Log(work) => format!("log: {}", work.name()),
            Work::Calls(work) => work.name().to_owned(),
        };
        format!("{work}, {} in flight", self.callers)
    }

    /// The keyspace that suits it.
    pub fn config(&self) -> KeyspaceConfig {
        if let Work::Log(_) = self.work {
            return Options::default().keyspace_config;
        }
        if let Work::Calls(_) = self.work {
            return calls::config();
        }
        let placed_by = match self.work {
            Work::Page(_) | Work::File => PlacedBy::UpTo(b'/'),
            Work::Hot
            | Work::Crowd
            | Work::Spread
            | Work::ByReading
            | Work::Read
            | Work::Write(_)
            | Work::ReadLarge(_)
            | Work::PageOfAll
            | Work::Lease
            | Work::Hold
            | Work::Recall
            | Work::Watch
            | Work::Log(_)
            | Work::Calls(_) => PlacedBy::Key,
        };
        let is_guarded = self.work == Work::Recall;
        let chunk_size = LARGE_CHUNK;
        KeyspaceConfig { chunk_size, placed_by, is_guarded, ..KeyspaceConfig::default() }
    }

    /// Payload bytes of one operation.
    fn len(&self) -> u64 {
        match self.work {
            Work::Hot | Work::Crowd | Work::Spread | Work::ByReading => RECORD_LEN as u64,
            Work::Read => READ_LEN,
            Work::File => files::FILE_LEN as u64,
            Work::Write(len) | Work::ReadLarge(len) => len,
            Work::Page(first) => LISTED as u64 * first,
            Work::Recall | Work::Watch => RECORD_LEN as u64,
            Work::PageOfAll | Work::Lease | Work::Hold => 0,
            Work::Log(work) => log::len_of(work),
            Work::Calls(_) => calls::WRITTEN as u64,
        }
    }

    /// The medians of all runs as a row of the table.
    pub fn as_row(&self, runs: &[Figures]) -> Vec<String> {
        let label = self.label();
        let (what, _) = label.rsplit_once(',').unwrap_or((&label, ""));
        let of = |name: &str| median(runs, name);
        vec![
            what.to_owned(),
            self.callers.to_string(),
            format!("{:.0}", of("per_s")),
            format!("{:.1}", of("per_s") * self.len() as f64 / 1e6),
            format!("{:.1}", of("cpu_us")),
            format!("{:.1}", of("nodes_cpu_us")),
            format!("{:.2}", of("p50_us") / 1e3),
            format!("{:.2}", of("p99_us") / 1e3),
            format!("{:.0}", of("aborts")),
        ]
    }

    /// The medians of all runs, and each run.
    pub fn as_json(&self, runs: &[Figures]) -> Value {
        let mut medians = serde_json::Map::new();
        for name in runs.first().into_iter().flat_map(Figures::names) {
            medians.insert(name.to_owned(), json!(median(runs, name)));
        }
        let each: Vec<Value> = runs.iter().map(Figures::as_json).collect();
        json!({"case": self.label(), "in_flight": self.callers, "medians": medians, "runs": each})
    }
}

fn median(runs: &[Figures], name: &str) -> f64 {
    let mut values: Vec<f64> = runs.iter().filter_map(|figures| figures.get(name)).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
