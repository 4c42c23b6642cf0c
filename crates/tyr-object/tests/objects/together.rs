//! Calls that wait for their object, and what they are to each other when they are run together.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use parking_lot::Mutex;
use tyr::{Bytes, ErrorKind, Number, Transform};
use tyr_class::{Class, ClassInfo, Context, MethodKind};
use tyr_object::{Begun, Call, Failure, Limits};

use crate::place::{Place, on_each};

const SCRIPT: &str = r#"
local function value(blob) return tonumber(buffer.tostring(blob:read(0, 20))) or 0 end
return { name = "NAME", methods = {
  add = { kind = "call", run = function(cx, blob, input)
    local sum = value(blob) + tonumber(buffer.tostring(input))
    blob:truncate(0)
    blob:write(0, tostring(sum))
    if sum % 5 == 0 then cx:fail("QuotaExceeded", "no five", sum) end
    return cx.caller .. " " .. sum
  end },
  swap = { kind = "call", run = function(cx, blob, input)
    local _, version = blob:stat()
    if version ~= buffer.tostring(input) then cx:fail("AlreadyExists", "it has changed") end
    blob:write(0, "swapped")
  end },
  version = { kind = "query", run = function(cx, blob) return select(2, blob:stat()) end },
  scatter = { kind = "call", run = function(cx, blob, input)
    local from = tonumber(buffer.tostring(input))
    for place = from, from + 79999, 2 do blob:write(place, "x") end
  end },
  once_there = { kind = "call", run = function(cx, blob, input)
    if blob:size() == 0 then cx:fail("Conflict", "not yet") end
    return "there"
  end },
  count = { kind = "call", run = function(cx, blob)
    return tostring(blob:transform(0, "add", "u64", 1))
  end },
} }"#;

/// A method that says when it runs, and goes on when it is let.
struct Gate {
    info: ClassInfo,
    entered: Sender<()>,
    open: Mutex<Receiver<()>>,
}

impl Class for Gate {
    fn info(&self) -> &ClassInfo {
        &self.info
    }

    fn run(&self, _: usize, _: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
        assert_ne!(input, b"panic", "as the test wants it");
        self.entered.send(()).unwrap();
        self.open.lock().recv().unwrap();
        Ok(Bytes::new())
    }
}

/// Has these calls wait for object `a` until all are there; answers them when they were run, and
/// how many transactions that took.
fn together<T>(place: &Place, wait: impl FnOnce() -> Vec<T>) -> (Vec<T>, u64) {
    let (entered, is_entered) = channel();
    let (opener, open) = channel();
    let name = format!("{}_gate", place.class);
    let info = ClassInfo::new(name.clone(), [("pass", MethodKind::Call)], Limits::IN_PLACE);
    let gate = Gate { info: info.unwrap(), entered, open: Mutex::new(open) };
    place.classes.register(Arc::new(gate)).unwrap();
    let pass = Call::new(name, "pass", "");
    let passing = place.classes.begin(&place.keyspace, "a", pass, "gate").unwrap();
    is_entered.recv().unwrap();
    let before = place.store.statistics().commits;
    let waiting = wait();
    opener.send(()).unwrap();
    passing.wait().unwrap();
    (waiting, before)
}

fn begin(place: &Place, method: &str, input: &[u8], user: &str) -> Begun {
    let call = Call::new(place.class.clone(), method, input.to_vec());
    place.classes.begin(&place.keyspace, "a", call, user).unwrap()
}

/// The answers, as texts; of failures too.
fn answers(begun: Vec<Begun>) -> Vec<String> {
    let text = |begun: Begun| match begun.wait() {
        Ok(answer) => String::from_utf8(answer.to_vec()).unwrap(),
        Err(failure) => failure.to_string(),
    };
    begun.into_iter().map(text).collect()
}

/// O4, O3.
#[test]
fn calls_that_wait_for_another_are_one_transaction_and_each_sees_those_before() {
    on_each(|place| {
        place.install(SCRIPT);
        let (waiting, before) = together(&place, || {
            (0..40).map(|n| begin(&place, "add", b"1", &format!("user{n}"))).collect()
        });
        let answers = answers(waiting);
        // Each fifth fails, and leaves the number as it was: then it stays at four.
        let right = |n: usize| match n {
            0..4 => format!("user{n} {}", n + 1),
            _ => "no five (code 5)".to_owned(),
        };
        assert_eq!(answers, (0..40).map(right).collect::<Vec<_>>());
        assert_eq!(place.keyspace.get("a").unwrap(), "4");
        // The first only looked; the others wrote.
        let commits = place.store.statistics().commits - before;
        assert!(commits <= 2, "{commits} transactions for 40 calls");
    });
}

#[test]
fn of_calls_that_go_by_one_version_one_succeeds() {
    on_each(|place| {
        place.install(SCRIPT);
        place.keyspace.put("a", "begun").unwrap();
        let version = place.keyspace.stat("a").unwrap().version.to_stamp();
        let (waiting, _) = together(&place, || {
            (0..10).map(|_| begin(&place, "swap", &version, "anybody")).collect()
        });
        let answers = answers(waiting);
        let swapped = answers.iter().filter(|answer| answer.is_empty()).count();
        assert_eq!(swapped, 1, "{answers:?}");
        assert_eq!(place.keyspace.get("a").unwrap(), "swapped");
    });
}

/// O5.
#[test]
fn calls_that_are_too_much_for_one_transaction_are_several() {
    on_each(|place| {
        place.install(SCRIPT);
        // 40,000 writes each, and a transaction has 65,536.
        let (waiting, _) = together(&place, || {
            let scatter =
                |n: u64| begin(&place, "scatter", (n * 80_000).to_string().as_bytes(), "a");
            let mut waiting: Vec<Begun> = (0..3).map(scatter).collect();
            waiting.insert(1, begin(&place, "fly", b"", "a"));
            waiting
        });
        let answers = answers(waiting);
        assert!(answers[1].contains("no method \"fly\""), "{answers:?}");
        assert_eq!([&answers[0], &answers[2], &answers[3]], [""; 3]);
        assert_eq!(place.keyspace.stat("a").unwrap().size, 239_999);
        assert_eq!(place.keyspace.read("a", 159_998, 4).unwrap(), "x\0x\0");
    });
}

#[test]
fn a_call_that_wants_to_run_again_runs_behind_those_that_wait() {
    on_each(|place| {
        place.install(SCRIPT);
        let (waiting, _) = together(&place, || {
            vec![begin(&place, "once_there", b"", "a"), begin(&place, "add", b"1", "a")]
        });
        assert_eq!(answers(waiting), ["there", "a 1"]);
        place.keyspace.delete("a").unwrap();
        let failure = begin(&place, "once_there", b"", "a").wait().unwrap_err();
        assert_eq!((failure.kind(), failure.text()), (ErrorKind::Conflict, "not yet"));
    });
}

#[test]
fn more_calls_than_a_host_has_in_hand_are_refused_and_the_others_run() {
    on_each(|place| {
        place.install(SCRIPT);
        let call = || Call::new(place.class.clone(), "count", "");
        let (waiting, _) = together(&place, || {
            // One is at the gate.
            let waiting = (0..1_023).map(|_| begin(&place, "count", b"", "a")).collect();
            let refused = place.classes.begin(&place.keyspace, "b", call(), "a").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unavailable);
            assert!(refused.message().contains("as many calls"), "{refused}");
            waiting
        });
        let mut counted: Vec<u64> =
            answers(waiting).iter().map(|answer| answer.parse().unwrap()).collect();
        counted.sort_unstable();
        assert_eq!(counted, (1..=1_023).collect::<Vec<u64>>());
        assert!(place.classes.call(&place.keyspace, "b", &call()).is_ok(), "there is room again");
    });
}

/// O2.
#[test]
fn what_others_write_meanwhile_is_not_lost() {
    on_each(|place| {
        place.install(SCRIPT);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        place.call("a", "count", "").unwrap();
                    }
                });
            }
            for _ in 0..20 {
                let one = Transform::add(Number::U64(1));
                place.keyspace.apply("a", 0, one).unwrap();
            }
        });
        assert_eq!(place.keyspace.get("a").unwrap(), 60_u64.to_le_bytes().to_vec());
    });
}

#[test]
fn a_method_that_panics_takes_nothing_with_it_but_what_waited_for_it() {
    on_each(|place| {
        let (entered, _held) = channel();
        let name = format!("{}_gate", place.class);
        let info = ClassInfo::new(name.clone(), [("pass", MethodKind::Call)], Limits::IN_PLACE);
        let gate = Gate { info: info.unwrap(), entered, open: Mutex::new(channel().1) };
        place.classes.register(Arc::new(gate)).unwrap();
        place.install(SCRIPT);
        let panicking = Call::new(name, "pass", "panic");
        let begun = place.classes.begin(&place.keyspace, "a", panicking, "a").unwrap();
        let failure = begun.wait().unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::TimedOut, "{failure}");
        assert_eq!(begin(&place, "add", b"1", "a").wait().unwrap(), "a 1");
    });
}
