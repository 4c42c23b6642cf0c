//! Classes in Lua: what they are, what they see, and what they cannot do.

mod access;
mod hostile;
mod isolation;
mod rados;
mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Clock, LuaClass};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::testing::MemoryContext;

/// A clock that stands still.
fn still() -> Clock {
    Arc::new(|| Duration::ZERO)
}

/// A clock that moves by a millisecond whenever it is looked at.
fn quick() -> Clock {
    let looks = AtomicU64::new(0);
    Arc::new(move || Duration::from_millis(looks.fetch_add(1, Ordering::Relaxed)))
}

fn compile(source: &str) -> LuaClass {
    LuaClass::compile(source.as_bytes(), Limits::IN_PLACE, still()).unwrap()
}

/// A class with the methods `run`, of this body, and `ok`, which answers "ok".
fn of_body(body: &str) -> LuaClass {
    compile(&around(body))
}

fn around(body: &str) -> String {
    format!(
        "return {{ name = \"c\", methods = {{
           run = {{ kind = \"call\", run = function(cx, blob, input) {body} end }},
           ok = {{ kind = \"call\", run = function() return \"ok\" end }} }} }}"
    )
}

/// What a body answers, beside a blob that is not there.
fn answer(body: &str) -> String {
    let answer = MemoryContext::new().call(&of_body(body), "run", b"input").unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// How a body fails; the next call of its class goes well.
fn failure(body: &str) -> Failure {
    let class = of_body(body);
    let mut context = MemoryContext::new();
    let failure = context.call(&class, "run", b"input").unwrap_err();
    assert_eq!(context.call(&class, "ok", b"").unwrap(), "ok", "after {body}");
    failure
}
