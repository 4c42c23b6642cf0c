//! Nothing is left of a call for the next, and nothing of a class for another.

use super::{answer, compile, failure, of_body};
use crate::failure::Failure;
use crate::testing::MemoryContext;

#[test]
fn what_a_call_leaves_behind_is_not_seen_by_the_next() {
    let class = compile(
        r#"local count, seen = 0, {}
           shared = {}
           return { name = "c", methods = { run = { kind = "call", run = function(cx, blob, input)
             count += 1
             table.insert(seen, count)
             table.insert(shared, count)
             global = (global or 0) + 1
             _G.other = (_G.other or 0) + 1
             return `{count} {#seen} {#shared} {global} {other}`
           end } } }"#,
    );
    for _ in 0..3 {
        assert_eq!(MemoryContext::new().call(&class, "run", b"").unwrap(), "1 1 1 1 1");
    }
}

#[test]
fn what_all_calls_share_cannot_be_changed() {
    let changes = [
        "string.rep = nil",
        "table.insert(string, 1)",
        "getmetatable('').__index = {}",
        "getmetatable('').x = 1",
        "setmetatable(string, {})",
        "setmetatable(getmetatable(_G) or {}, { __index = nil }) rawset(getmetatable(_G), 'a', 1)",
        "rawset(math, 'pi', 3)",
        "blob.read = nil",
        "blob.map.get = nil",
        "setmetatable(blob, {})",
        "cx.now = 1",
        "cx.fail = 1",
        "objclass.stat = nil",
        "bufferlist.new = nil",
        "rawset(objclass, 'EIO', 1)",
        "bufferlist.new().str = nil; getmetatable(bufferlist.new()).__len = nil",
        "coroutine.resume = nil",
    ];
    for change in changes {
        assert!(matches!(failure(change), Failure::Broken { .. }), "{change}");
    }
    // A global of the same name is the call's own.
    assert_eq!(answer("string = nil; pcall = 1; return type(('x').rep)"), "function");
}

#[test]
fn what_could_reach_out_is_not_there() {
    let names = [
        "os",
        "io",
        "debug",
        "package",
        "load",
        "loadstring",
        "loadfile",
        "dofile",
        "getfenv",
        "setfenv",
        "collectgarbage",
        "gcinfo",
        "newproxy",
        "vector",
        "integer",
    ];
    for name in names {
        assert_eq!(answer(&format!("return type({name})")), "nil", "{name}");
    }
    assert_eq!(answer("return type(require('objclass').stat)"), "function");
    let text = failure("require('os')").to_string();
    assert!(text.contains("there is no module \"os\""), "{text}");
}

#[test]
fn random_numbers_are_those_of_the_transaction() {
    let class = of_body("return `{math.random(2 ^ 30)} {math.random()}`");
    let of = |transaction: u128| {
        let mut context = MemoryContext::new();
        context.transaction = tyr_types::TransactionId(transaction);
        context.call(&class, "run", b"").unwrap()
    };
    let first = of(7 << 64);
    assert_ne!(first, of(8 << 64));
    assert_ne!(first, of(7));
    assert_eq!(first, of(7 << 64));
}

#[test]
fn a_call_within_a_call_has_its_own_machine() {
    let class = compile(
        r#"x = 0
           return { name = "c", methods = { inner = { kind = "call", run = function()
               x += 1
               return tostring(x)
             end } },
             tests = { nested = function(blob, call)
               x += 10
               assert(buffer.tostring(call("inner")) == "1")
               assert(x == 10)
             end } }"#,
    );
    assert!(crate::testing::run_tests(&class)[0].failure.is_none());
}
