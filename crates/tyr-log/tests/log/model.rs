//! Anything done to a log in any order, against a list that does the same.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tyr::Tyr;
use tyr_log::{Batch, Cut, Entry, Group, Log, Options, Start};

use crate::place::{Place, all, on};
use tyr_testing::Kind;

/// Something done to a log.
#[derive(Clone, Debug)]
enum Step {
    /// Appends entries of these lengths, to the partition of this number or the next in turn.
    Append(Vec<usize>, Option<u16>),
    /// Appends in a transaction of its own, and drops it or commits it.
    AppendIn(Vec<usize>, bool),
    /// Reads one of the entries, counted from the first that is left.
    Read(usize),
    /// Reads on from one of them.
    ReadFrom(usize),
    /// Forgets what is before one of them.
    Trim(usize),
    /// Gives so many entries to the group.
    Pop(usize),
    /// Moves the group to one of them.
    Seek(usize),
    /// Forgets what this handle knows.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let lens = || prop::collection::vec(0_usize..400, 1..6);
    prop_oneof![
        6 => (lens(), prop::option::of(0_u16..3)).prop_map(|(lens, to)| Step::Append(lens, to)),
        2 => (lens(), any::<bool>()).prop_map(|(lens, commits)| Step::AppendIn(lens, commits)),
        2 => any::<usize>().prop_map(Step::Read),
        2 => any::<usize>().prop_map(Step::ReadFrom),
        1 => any::<usize>().prop_map(Step::Trim),
        2 => (1_usize..20).prop_map(Step::Pop),
        1 => any::<usize>().prop_map(Step::Seek),
        1 => Just(Step::Reopen),
    ]
}

/// A log beside what it is to have.
struct Pair {
    store: Tyr,
    log: Log,
    group: Group,
    /// All entries ever, in their order; with the cut before each.
    entries: Vec<(Entry, Cut)>,
    /// How many of them are trimmed.
    trimmed: usize,
    /// How many of each partition the group has got.
    cursor: Vec<usize>,
    appended: u64,
}

impl Pair {
    async fn new(place: &Place, name: &str, options: &Options) -> Self {
        let log = Log::create(&place.store, name, options).await.unwrap();
        let group = log.group("g", &Start::Oldest).await.unwrap();
        Self {
            store: place.store.clone(),
            cursor: vec![0; usize::from(log.partitions())],
            log,
            group,
            entries: Vec::new(),
            trimmed: 0,
            appended: 0,
        }
    }

    fn batch(&mut self, lens: &[usize], to: Option<u16>) -> Batch {
        let mut batch = Batch::new();
        for len in lens {
            batch.push(format!("{} {}", self.appended, "x".repeat(*len))).unwrap();
            self.appended += 1;
        }
        match to {
            Some(partition) => batch.in_partition(partition % self.log.partitions()),
            None => batch,
        }
    }

    /// Takes in what was appended, and checks that it is that and at the end.
    async fn learn(&mut self, appended: &[(tyr_log::Appended, Batch)]) {
        let mut reader = match self.entries.last() {
            Some((_, before)) => self.log.reader(&Start::At(before.clone())).await.unwrap(),
            None => self.log.reader(&Start::Oldest).await.unwrap(),
        };
        if !self.entries.is_empty() {
            assert_eq!(reader.next(1).await.unwrap()[0], self.entries.last().unwrap().0);
        }
        for (told, batch) in appended {
            for index in 0..told.count {
                let before = reader.cut();
                let entry = reader.next(1).await.unwrap().remove(0);
                let at = tyr_log::Position { index, ..told.position };
                assert_eq!((entry.position, entry.stamp), (at, told.stamp));
                let number = told.number.map(|first| first + u64::from(index));
                assert_eq!(entry.number, number);
                if number.is_some() {
                    assert_eq!(number, Some(self.entries.len() as u64));
                }
                self.entries.push((entry, before));
            }
            assert_eq!(batch.len() as u32, told.count);
        }
        assert!(reader.next(1).await.unwrap().is_empty());
    }

    /// One of the entries that are left, by any number.
    fn choose(&self, n: usize) -> Option<usize> {
        let left = self.entries.len() - self.trimmed;
        (left > 0).then(|| self.trimmed + n % left)
    }

    async fn run(&mut self, step: &Step) {
        match step {
            Step::Append(lens, to) => {
                let batch = self.batch(lens, *to);
                let told = self.log.append_batch(&batch).await.unwrap();
                self.learn(&[(told, batch)]).await;
            }
            Step::AppendIn(lens, commits) => {
                let batch = self.batch(lens, None);
                let mut transaction = self.store.begin();
                let appending = self.log.append_in(&mut transaction, &batch).await.unwrap();
                if *commits {
                    let committed = transaction.commit().await.unwrap();
                    let told = appending.finish(&committed).await.unwrap();
                    self.learn(&[(told, batch)]).await;
                }
            }
            Step::Read(n) => {
                if let Some(n) = self.choose(*n) {
                    let expected = Entry { number: None, ..self.entries[n].0.clone() };
                    assert_eq!(self.log.read(expected.position).await.unwrap(), expected);
                }
            }
            Step::ReadFrom(n) => {
                if let Some(n) = self.choose(*n) {
                    let from = Start::At(self.entries[n].1.clone());
                    let mut reader = self.log.reader(&from).await.unwrap();
                    for (expected, _) in &self.entries[n..] {
                        assert_eq!(&reader.next(1).await.unwrap()[0], expected);
                    }
                }
            }
            Step::Trim(n) => {
                if let Some(n) = self.choose(*n) {
                    self.log.trim(&self.entries[n].1, |_| Ok(())).await.unwrap();
                    self.trimmed = n;
                }
            }
            Step::Pop(max) => self.pop(*max).await,
            Step::Seek(n) => {
                if let Some(n) = self.choose(*n) {
                    self.group.seek(&Start::At(self.entries[n].1.clone())).await.unwrap();
                    for (partition, cursor) in self.cursor.iter_mut().enumerate() {
                        let before = self.entries[..n].iter();
                        *cursor = before
                            .filter(|(it, _)| usize::from(it.position.partition) == partition)
                            .count();
                    }
                }
            }
            Step::Reopen => {
                let keyspace = self.log.keyspace().name().to_owned();
                self.log = Log::open_in(&self.store, &keyspace, self.log.name()).await.unwrap();
                self.group = self.log.open_group("g").await.unwrap();
            }
        }
    }

    /// Entries of one partition come, in order, up to so many; what was trimmed is told.
    async fn pop(&mut self, max: usize) {
        let entries = match self.group.pop(max).await {
            Ok(entries) => entries,
            Err(error) => {
                assert!(error.message().contains("seek to go on"), "{error}");
                let is_behind = (0..self.cursor.len()).any(|it| self.is_trimmed_at_cursor(it));
                assert!(is_behind, "{error}");
                return;
            }
        };
        let Some(first) = entries.first() else {
            assert!((0..self.cursor.len()).all(|it| self.of(it).len() == self.cursor[it]));
            return;
        };
        let partition = usize::from(first.position.partition);
        let cursor = self.cursor[partition];
        let of = self.of(partition);
        let expected: Vec<Entry> = of[cursor..cursor + entries.len()]
            .iter()
            .map(|entry| Entry { number: None, ..(*entry).clone() })
            .collect();
        assert_eq!(entries, expected);
        assert!(entries.len() <= max);
        self.cursor[partition] += entries.len();
    }

    fn of(&self, partition: usize) -> Vec<&Entry> {
        let entries = self.entries.iter().map(|(entry, _)| entry);
        entries.filter(|it| usize::from(it.position.partition) == partition).collect()
    }

    fn is_trimmed_at_cursor(&self, partition: usize) -> bool {
        let trimmed = self.entries[..self.trimmed].iter();
        let trimmed = trimmed.filter(|(it, _)| usize::from(it.position.partition) == partition);
        self.cursor[partition] < trimmed.count()
    }
}

/// Runs so many lists of steps on a store; each list has a log of its own.
fn check(kind: Kind, cases: u32) {
    on(kind, |place| async move {
        let mut runner = TestRunner::new(Config { cases, ..Config::default() });
        let numbers = std::sync::atomic::AtomicU32::new(0);
        let steps = (1_u16..4, any::<bool>(), prop::collection::vec(step(), 1..40));
        let outcome = runner.run(&steps, |(partitions, is_strict, steps)| {
            let n = numbers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            // On a cluster the order is that of acknowledgements only in one partition or strictly.
            let is_strict = is_strict || (kind == Kind::Cluster && partitions > 1);
            let options = Options { is_strict, ..place.options(partitions) };
            tokio::task::block_in_place(|| {
                tokio::runtime::Handle::current().block_on(async {
                    let mut pair = Pair::new(&place, &format!("log-{n}"), &options).await;
                    for step in &steps {
                        pair.run(step).await;
                    }
                    let left: Vec<Entry> =
                        pair.entries[pair.trimmed..].iter().map(|(it, _)| it.clone()).collect();
                    assert_eq!(all(&pair.log).await, left);
                });
            });
            Ok(())
        });
        outcome.unwrap();
    });
}

#[test]
fn a_log_is_as_its_model_has_it() {
    check(Kind::Embedded, 60);
}

#[test]
fn a_log_of_a_cluster_is_as_its_model_has_it() {
    check(Kind::Cluster, 12);
}
