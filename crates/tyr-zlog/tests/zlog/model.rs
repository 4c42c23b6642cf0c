//! Any list of steps, by two programs of which each may die, against a model of positions.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tyr::{Bytes, ErrorKind};
use tyr_zlog::{Given, Log, Slot};

use crate::place::{Place, all_from, hasty, on, patient};
use tyr_testing::Kind;

#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    /// Takes a position, and writes none.
    Take(usize),
    /// Writes a position that was taken before.
    Write(usize, prop::sample::Index),
    /// The program dies, with or without the sequencer, and starts again.
    Die(usize),
    /// It ends in peace.
    Close(usize),
    Fill(usize, prop::sample::Index),
    TrimOne(usize, prop::sample::Index),
    Trim(usize, prop::sample::Index),
    Look(usize),
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..2_usize;
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => who().prop_map(Step::Append),
        3 => who().prop_map(Step::Take),
        2 => (who(), index()).prop_map(|(who, n)| Step::Write(who, n)),
        2 => who().prop_map(Step::Die),
        1 => who().prop_map(Step::Close),
        1 => (who(), index()).prop_map(|(who, n)| Step::Fill(who, n)),
        1 => (who(), index()).prop_map(|(who, n)| Step::TrimOne(who, n)),
        1 => (who(), index()).prop_map(|(who, n)| Step::Trim(who, n)),
        2 => who().prop_map(Step::Look),
        1 => who().prop_map(Step::Read),
    ]
}

/// What a log is: its slots up to what was ever touched, and its counter.
#[derive(Default)]
struct Model {
    slots: Vec<Slot>,
    /// Behind the highest position that is written.
    tail: u64,
    begin: u64,
    next: u64,
    /// Where each counter but the first began.
    starts: Vec<u64>,
    /// Who has the sequencer.
    holder: Option<usize>,
    /// Whether the counter was lost with its holder.
    is_lost: bool,
    /// What was taken, and how many counters had been lost before.
    taken: Vec<(Given, usize)>,
    appended: u64,
}

impl Model {
    fn slot(&mut self, position: u64) -> &mut Slot {
        let at = position as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Slot::Unwritten);
        }
        &mut self.slots[at]
    }

    /// A position for a program, which gets the sequencer for it.
    fn give(&mut self, who: usize) -> u64 {
        if self.is_lost {
            (self.next, self.is_lost) = (self.tail.max(self.begin), false);
            self.starts.push(self.next);
        }
        self.holder = Some(who);
        self.next += 1;
        self.next - 1
    }

    /// Writes a position; whether it could be.
    fn write(&mut self, position: u64, data: &Bytes) -> bool {
        let begin = self.begin;
        let slot = self.slot(position);
        if *slot != Slot::Unwritten || position < begin {
            return false;
        }
        *slot = Slot::Data(data.clone());
        self.tail = self.tail.max(position + 1);
        true
    }

    fn leave(&mut self, who: usize, is_dead: bool) {
        if self.holder == Some(who) {
            self.holder = None;
            self.is_lost |= is_dead;
        }
    }

    fn seen(&mut self, position: u64) -> Slot {
        match position < self.begin {
            true => Slot::Invalid,
            false => self.slot(position).clone(),
        }
    }

    fn data(&mut self) -> Bytes {
        self.appended += 1;
        format!("entry {}", self.appended).into()
    }
}

/// The log as two programs have it open, and its model.
struct Run {
    place: Place,
    name: String,
    logs: [Option<Log>; 2],
    model: Model,
}

impl Run {
    fn log(&self, who: usize) -> &Log {
        self.logs[who].as_ref().unwrap()
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Append(who) => {
                let data = self.model.data();
                let position = loop {
                    let position = self.model.give(who);
                    if self.model.write(position, &data) {
                        break position;
                    }
                };
                assert_eq!(self.log(who).append(data).await.unwrap(), position);
            }
            Step::Take(who) => {
                let position = self.model.give(who);
                let given = self.log(who).next_position().await.unwrap();
                assert_eq!(given.position, position);
                self.model.taken.push((given, self.model.starts.len()));
            }
            Step::Write(who, n) => {
                if self.model.taken.is_empty() {
                    return;
                }
                let n = n.index(self.model.taken.len());
                let (given, term) = self.model.taken.swap_remove(n);
                let data = self.model.data();
                let is_written = self.log(who).write(given, data.clone()).await.unwrap();
                // Where the next counter began behind it, whoever knows nothing of that yet may
                // write to a stripe that was not sealed: nobody else is given the position.
                let next = self.model.starts.get(term).copied();
                let may = next.is_none_or(|start| given.position < start && is_written);
                let wanted = may && self.model.write(given.position, &data);
                assert_eq!(is_written, wanted, "{given:?}, and then from {next:?}");
            }
            Step::Die(who) => self.end(who, true).await,
            Step::Close(who) => self.end(who, false).await,
            Step::Fill(who, n) => {
                let position = n.index(self.model.next as usize + 1) as u64;
                let is_filled = match self.model.seen(position) {
                    Slot::Data(_) => Ok(false),
                    Slot::Unwritten | Slot::Invalid => Ok(true),
                };
                self.settle(who, position, is_filled, "fill").await;
            }
            Step::TrimOne(who, n) => {
                let position = n.index(self.model.next as usize + 1) as u64;
                self.settle(who, position, Ok(true), "trim").await;
            }
            Step::Trim(who, n) => {
                let before = n.index(self.model.tail as usize + 1) as u64;
                self.log(who).trim(before, |_| Ok(())).await.unwrap();
                self.model.begin = self.model.begin.max(before);
                let late = self.log(who).trim(self.model.tail.max(before) + 1, |_| Ok(())).await;
                assert_eq!(late.unwrap_err().kind(), ErrorKind::InvalidArgument);
            }
            Step::Look(who) => {
                let tail = self.model.tail.max(self.model.begin);
                assert_eq!(self.log(who).tail().await.unwrap(), tail);
                for position in self.model.next.saturating_sub(10)..self.model.next + 2 {
                    let slot = self.log(who).slot(position).await.unwrap();
                    assert_eq!(slot, self.model.seen(position), "{position}");
                }
            }
            Step::Read(who) => self.read(who).await,
        }
    }

    /// A program ends, and starts again.
    async fn end(&mut self, who: usize, is_dead: bool) {
        let log = self.logs[who].take().unwrap();
        match is_dead {
            true => drop(log),
            false => log.close().await.unwrap(),
        }
        self.model.leave(who, is_dead);
        self.logs[who] = Some(self.place.open(&self.name, who, patient()).await);
    }

    async fn settle(&mut self, who: usize, position: u64, wanted: Result<bool, ()>, what: &str) {
        let log = self.log(who);
        let done = match what {
            "fill" => log.fill(position).await,
            _ => log.trim_one(position).await.map(|()| true),
        };
        match done {
            // No object is there for it yet.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                assert!(position >= self.model.tail, "{error}");
            }
            done => {
                assert_eq!(Ok(done.unwrap()), wanted);
                if wanted == Ok(true) && position >= self.model.begin {
                    *self.model.slot(position) = Slot::Invalid;
                }
            }
        }
    }

    /// All entries, by a reader who fills what nobody wrote.
    async fn read(&mut self, who: usize) {
        let reader = self.place.open(&self.name, who, hasty()).await;
        let found = all_from(&reader, 0).await;
        let mut wanted = Vec::new();
        for position in 0..self.model.tail {
            match self.model.seen(position) {
                Slot::Data(data) => wanted.push((position, data)),
                Slot::Unwritten => *self.model.slot(position) = Slot::Invalid,
                Slot::Invalid => {}
            }
        }
        let found: Vec<_> = found.into_iter().map(|it| (it.position, it.data)).collect();
        assert_eq!(found, wanted);
    }
}

/// Runs one list of steps on a log of its own.
async fn check(place: &Place, name: String, steps: Vec<Step>) {
    let first = place.log(&name).await;
    let second = place.open(&name, 1, patient()).await;
    let logs = [Some(first), Some(second)];
    let mut run = Run { place: place.clone(), name, logs, model: Model::default() };
    for step in steps {
        run.step(step).await;
    }
    run.read(0).await;
}

fn run(kind: Kind, cases: u32) {
    on(kind, |place| async move {
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| {
            let number = Cell::new(0);
            let steps = prop::collection::vec(step(), 1..60);
            let done =
                TestRunner::new(Config { cases, ..Config::default() }).run(&steps, |steps| {
                    number.set(number.get() + 1);
                    handle.block_on(check(&place, format!("model-{}", number.get()), steps));
                    Ok(())
                });
            done.unwrap();
        });
    });
}

#[test]
fn a_log_is_as_its_model_has_it() {
    run(Kind::Embedded, 24);
    run(Kind::Cluster, 3);
}
