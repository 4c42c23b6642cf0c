//! One suite for the classes in Lua and in Rust, against a model: what a method answers, how it
//! fails, and what it leaves in the blob, byte for byte.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use tyr::Bytes;
use tyr_class::testing::{MemoryContext, run_tests};
use tyr_class::{Class, Limits, LuaClass};
use tyr_zlog::class::{Fields, OBJECT_SCRIPT, Refusal, VIEW_SCRIPT, object_class, view_class};

fn in_lua(script: &str) -> LuaClass {
    let clock = Arc::new(|| Duration::ZERO);
    LuaClass::compile(script.as_bytes(), Limits::IN_PLACE, clock).unwrap()
}

/// A class in Lua and in Rust, each beside a blob of its own.
struct Twins<'a> {
    lua: (&'a dyn Class, MemoryContext),
    rust: (&'a dyn Class, MemoryContext),
}

impl<'a> Twins<'a> {
    fn new(lua: &'a dyn Class, rust: &'a dyn Class) -> Self {
        Self { lua: (lua, MemoryContext::new()), rust: (rust, MemoryContext::new()) }
    }

    /// Runs a method in both; what it came to, which is the same.
    fn call(&mut self, method: &str, input: Fields) -> Result<Bytes, Refusal> {
        let input = Bytes::from(input);
        let [lua, rust] = [&mut self.lua, &mut self.rust].map(|(class, blob)| {
            blob.call(*class, method, &input).map_err(|failure| {
                let refusal = Refusal::of(&failure).unwrap_or_else(|| panic!("{failure:?}"));
                assert_eq!(failure.kind(), refusal.kind(), "{failure}");
                refusal
            })
        });
        assert_eq!(lua, rust, "{method}");
        assert_eq!((&self.lua.1.blob, &self.lua.1.map), (&self.rust.1.blob, &self.rust.1.map));
        rust
    }
}

#[test]
fn the_scripts_own_tests_pass() {
    for script in [OBJECT_SCRIPT, VIEW_SCRIPT] {
        let outcomes = run_tests(&in_lua(script));
        assert!(!outcomes.is_empty());
        for outcome in outcomes {
            assert!(outcome.failure.is_none(), "{outcome:?}");
        }
    }
}

#[test]
fn both_kinds_have_the_same_methods() {
    assert_eq!(in_lua(OBJECT_SCRIPT).info(), object_class().info());
    assert_eq!(in_lua(VIEW_SCRIPT).info(), view_class().info());
}

/// What is to be done with an object.
#[derive(Clone, Debug)]
enum Step {
    Init,
    Read(u64, u64),
    Write(u64, u64, usize),
    Fill(u64, u64),
    Trim(u64, u64, u64),
    Seal(u64),
    MaxPosition(u64),
    /// A method with an input that is cut off.
    Cut(&'static str, usize),
}

/// The objects of the suite have positions 3, 5, 7, 9 and 11.
const FIRST: u64 = 3;
const WIDTH: u64 = 2;
const SLOTS: u64 = 5;

fn step() -> impl Strategy<Value = Step> {
    let epoch = || 0..6_u64;
    let position = || {
        prop_oneof![8 => (0..6_u64).prop_map(|n| FIRST + WIDTH * n), 1 => 0..16_u64,
        1 => select(vec![u64::MAX, 1 << 53, (1 << 53) - 1])]
    };
    let len = prop_oneof![4 => 0..9_usize, 1 => select(vec![65_536_usize, 65_537])];
    let methods = vec!["init", "read", "write", "fill", "trim", "seal", "max_position"];
    prop_oneof![
        1 => Just(Step::Init),
        6 => (epoch(), position()).prop_map(|(e, p)| Step::Read(e, p)),
        6 => (epoch(), position(), len).prop_map(|(e, p, len)| Step::Write(e, p, len)),
        4 => (epoch(), position()).prop_map(|(e, p)| Step::Fill(e, p)),
        2 => (epoch(), position(), 0..7_u64).prop_map(|(e, p, n)| Step::Trim(e, p, n)),
        2 => epoch().prop_map(Step::Seal),
        2 => epoch().prop_map(Step::MaxPosition),
        1 => (select(methods), 0..32_usize).prop_map(|(method, len)| Step::Cut(method, len)),
    ]
}

/// What an object is: positions with data, `None` where filled or trimmed.
#[derive(Default)]
struct Model {
    epoch: u64,
    next: u64,
    slots: BTreeMap<u64, Option<Bytes>>,
}

impl Model {
    fn check(&self, epoch: u64, position: u64) -> Result<u64, Refusal> {
        self.check_epoch(epoch)?;
        let is_of_it = (0..SLOTS).any(|slot| FIRST + WIDTH * slot == position);
        if is_of_it { Ok(position) } else { Err(Refusal::Wrong) }
    }

    fn check_epoch(&self, epoch: u64) -> Result<(), Refusal> {
        if epoch < self.epoch { Err(Refusal::Stale) } else { Ok(()) }
    }

    fn read(&self, epoch: u64, position: u64) -> Result<Bytes, Refusal> {
        match self.slots.get(&self.check(epoch, position)?) {
            None => Err(Refusal::NotWritten),
            Some(None) => Err(Refusal::Invalid),
            Some(Some(data)) => Ok(data.clone()),
        }
    }

    fn write(&mut self, epoch: u64, position: u64, data: &[u8]) -> Result<Bytes, Refusal> {
        if data.len() > 65_536 && position < 1 << 53 {
            return Err(Refusal::Wrong);
        }
        if self.slots.contains_key(&self.check(epoch, position)?) {
            return Err(Refusal::ReadOnly);
        }
        self.slots.insert(position, Some(Bytes::copy_from_slice(data)));
        self.next = self.next.max(position + 1);
        Ok(Bytes::new())
    }

    fn fill(&mut self, epoch: u64, position: u64) -> Result<Bytes, Refusal> {
        match self.slots.entry(self.check(epoch, position)?).or_insert(None) {
            Some(_) => Err(Refusal::ReadOnly),
            None => Ok(Bytes::new()),
        }
    }

    fn trim(&mut self, epoch: u64, position: u64, count: u64) -> Result<Bytes, Refusal> {
        self.check(epoch, position)?;
        let positions = (0..count).map(|n| position + WIDTH * n);
        if count == 0 || positions.clone().any(|it| self.check(epoch, it).is_err()) {
            return Err(Refusal::Wrong);
        }
        self.slots.extend(positions.map(|it| (it, None)));
        Ok(Bytes::new())
    }

    fn seal(&mut self, epoch: u64) -> Result<Bytes, Refusal> {
        if epoch <= self.epoch {
            return Err(Refusal::Stale);
        }
        self.epoch = epoch;
        self.max_position(epoch)
    }

    fn max_position(&self, epoch: u64) -> Result<Bytes, Refusal> {
        self.check_epoch(epoch)?;
        Ok(Fields::of([self.epoch, self.next]).into())
    }
}

fn init(epoch: u64) -> Fields {
    Fields::of([epoch, FIRST, WIDTH, SLOTS])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tyr_chance::part(64)))]

    #[test]
    fn an_object_is_as_its_model_has_it(steps in prop::collection::vec(step(), 1..60)) {
        let (lua, rust) = (in_lua(OBJECT_SCRIPT), object_class());
        let mut twins = Twins::new(&lua, &rust);
        let mut model = Model::default();
        prop_assert_eq!(twins.call("read", Fields::of([9, FIRST])), Err(Refusal::NoObject));
        prop_assert_eq!(twins.call("init", init(0)), Ok(Bytes::new()));
        for step in steps {
            let (done, wanted) = match step {
                Step::Init => (twins.call("init", init(7)), Err(Refusal::Exists)),
                Step::Read(e, p) => (twins.call("read", Fields::of([e, p])), model.read(e, p)),
                Step::Write(e, p, len) => {
                    let data = vec![len as u8; len];
                    (twins.call("write", Fields::of([e, p]).and(&data)), model.write(e, p, &data))
                }
                Step::Fill(e, p) => (twins.call("fill", Fields::of([e, p])), model.fill(e, p)),
                Step::Trim(e, p, n) => {
                    (twins.call("trim", Fields::of([e, p, n])), model.trim(e, p, n))
                }
                Step::Seal(e) => (twins.call("seal", Fields::of([e])), model.seal(e)),
                Step::MaxPosition(e) => {
                    (twins.call("max_position", Fields::of([e])), model.max_position(e))
                }
                Step::Cut(method, len) => {
                    let wanted = match method {
                        "init" => 4,
                        "trim" => 3,
                        "seal" | "max_position" => 1,
                        _ => 2,
                    };
                    let len = len.min(8 * wanted - 1);
                    let cut = Fields::default().and(&vec![0; len]);
                    (twins.call(method, cut), Err(Refusal::Wrong))
                }
            };
            // A number that is none is refused before the epoch is looked at.
            let is_wrong = |it: &Result<_, _>| *it == Err(Refusal::Wrong);
            let is_number = !matches!(step, Step::Read(_, p) | Step::Write(_, p, _)
                | Step::Fill(_, p) | Step::Trim(_, p, _) if p >= 1 << 53);
            let is_right = done == wanted || !is_number && is_wrong(&done);
            prop_assert!(is_right, "{:?} instead of {:?}", done, wanted);
        }
    }

    #[test]
    fn views_have_epochs_without_a_gap(
        steps in prop::collection::vec((0..4_u64, 0..8_u64, 0..40_000_usize), 1..30)
    ) {
        let (lua, rust) = (in_lua(VIEW_SCRIPT), view_class());
        let mut twins = Twins::new(&lua, &rust);
        let mut views: Vec<Vec<u8>> = Vec::new();
        for (ahead, number, len) in steps {
            let (next, view) = (views.len() as u64, vec![number as u8; len]);
            let epoch = (next + ahead).saturating_sub(1);
            let wanted = match () {
                () if len > 32_768 => Err(Refusal::Wrong),
                () if epoch < next => Err(Refusal::Exists),
                () if epoch > next => Err(Refusal::Wrong),
                () => {
                    views.push(view.clone());
                    Ok(Bytes::new())
                }
            };
            prop_assert_eq!(twins.call("create_view", Fields::of([epoch]).and(&view)), wanted);
            let mut wanted = Fields::of([views.len() as u64]);
            let mut room = 65_536 - 8;
            for (epoch, view) in views.iter().enumerate().skip(number as usize).take(3) {
                if view.len() + 16 > room {
                    break;
                }
                room -= view.len() + 16;
                wanted = wanted.and(&Bytes::from(Fields::of([epoch as u64, view.len() as u64])));
                wanted = wanted.and(view);
            }
            let read = twins.call("read_views", Fields::of([number, 3]));
            prop_assert_eq!(read, Ok(Bytes::from(wanted)));
        }
    }
}
