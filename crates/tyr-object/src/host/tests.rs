//! What a batch of calls keeps: rules O2 and O4, each taken away in turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr::blocking::{Keyspace, Tyr};
use tyr::{Bytes, Key, Number, Transform};
use tyr_class::{Class, ClassInfo, Context, Failure, Limits, MethodKind};

use super::batch::Batches;
use super::queue::{Queues, Waiting};
use crate::access::Object;
use crate::call::Call;
use crate::keyspace_config;
use crate::library::Library;
use crate::rule::{Rule, Rules};

/// A number that is counted up.
struct Counter {
    info: ClassInfo,
    /// What another one does while `add` runs, once.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Class for Counter {
    fn info(&self) -> &ClassInfo {
        &self.info
    }

    fn run(&self, _: usize, context: &mut dyn Context, _: &[u8]) -> Result<Bytes, Failure> {
        let sum = context.transform(0, one())?;
        let meanwhile = self.meanwhile.lock().take();
        meanwhile.into_iter().for_each(|act| act());
        Ok(sum.to_string().into())
    }
}

fn one() -> Transform {
    Transform::add(Number::U64(1))
}

/// A store with an object `a`, which is a counter.
struct Place {
    store: Tyr,
    keyspace: Keyspace,
    library: Library,
    class: Arc<Counter>,
    _folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Tyr::open(folder.path()).unwrap();
        let keyspace = store.create_keyspace("counters", keyspace_config()).unwrap();
        let methods = [("add", MethodKind::Call)];
        let info = ClassInfo::new("counter", methods, Limits::IN_PLACE).unwrap();
        let class = Arc::new(Counter { info, meanwhile: Mutex::default() });
        let library = Library::of(&store);
        library.loaded.register(Arc::clone(&class) as Arc<dyn Class>).unwrap();
        Self { store, keyspace, library, class, _folder: folder }
    }

    /// Runs so many calls that have waited together, without a rule; what each is answered.
    fn run(&self, missing: Option<Rule>, calls: usize) -> Vec<String> {
        let (rules, queues) = (Rules { missing }, Queues::default());
        let object = Object::new(self.keyspace.clone(), Key::new("a").unwrap()).unwrap();
        let (store, library, object) = (&self.store, &self.library, &object);
        let batches = Batches { store, library, object, permits: None, rules };
        let wait = |_| {
            let (answer, answered) = oneshot::channel();
            let (wanted, caller) = (Call::new("counter", "add", ""), "anybody".into());
            let until = Instant::now() + Duration::from_secs(60);
            let _place = queues.place(0).unwrap();
            (Waiting { wanted, caller, until, tries: 0, answer, _place }, answered)
        };
        let (mut waiting, answered): (Vec<_>, Vec<_>) = (0..calls).map(wait).unzip();
        while !waiting.is_empty() {
            waiting = batches.run(waiting);
        }
        let text = |answer: Bytes| String::from_utf8(answer.to_vec()).unwrap();
        answered.into_iter().map(|it| text(it.recv().unwrap().unwrap())).collect()
    }

    fn count(&self) -> Vec<u8> {
        self.keyspace.get("a").unwrap().to_vec()
    }
}

/// What a counter is at that somebody else has added to while a call of it was under way.
fn counted_by_two(missing: Option<Rule>) -> Vec<u8> {
    let place = Place::new();
    let keyspace = place.keyspace.clone();
    *place.class.meanwhile.lock() = Some(Box::new(move || {
        keyspace.apply("a", 0, one()).unwrap();
    }));
    place.run(missing, 1);
    place.count()
}

#[test]
fn a_call_whose_object_has_changed_meanwhile_runs_again_o2() {
    assert_eq!(counted_by_two(None), 2_u64.to_le_bytes());
}

#[test]
fn without_o2_a_call_undoes_what_another_has_written_meanwhile() {
    assert_eq!(counted_by_two(Some(Rule::O2)), 1_u64.to_le_bytes());
}

/// How many transactions ten calls are that have waited together.
fn transactions_of_ten(missing: Option<Rule>) -> u64 {
    let place = Place::new();
    let before = place.store.statistics().commits;
    let answers = place.run(missing, 10);
    assert_eq!(answers, (1..=10).map(|sum| sum.to_string()).collect::<Vec<_>>());
    place.store.statistics().commits - before
}

#[test]
fn calls_that_have_waited_together_are_one_transaction_o4() {
    // One, unless the machine stands still for a while: a batch takes no new call then.
    let transactions = transactions_of_ten(None);
    assert!(transactions <= 3, "{transactions} of 10 calls");
}

#[test]
fn without_o4_each_call_waits_for_the_transaction_of_the_one_before() {
    assert_eq!(transactions_of_ten(Some(Rule::O4)), 10);
}
