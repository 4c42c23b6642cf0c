//! Scripts that mean no good: each ends in a failure that says why, and the next call goes well.

use super::{around, failure, of_body, quick, still};
use crate::failure::{Failure, Limit};
use crate::limits::{LOG_LINES_MAX, Limits};
use crate::lua::LuaClass;
use crate::testing::MemoryContext;

fn limit(body: &str) -> Limit {
    match failure(body) {
        Failure::Limit { limit, .. } => limit,
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn loops_end_whatever_they_catch() {
    let bodies = [
        "while true do end",
        "repeat until false",
        "for i = 1, 1 / 0 do end",
        "local function spin() while true do end end while true do pcall(spin) end",
        "local function f() while true do pcall(f) end end f()",
        "local function f() pcall(f) pcall(f) end f()",
        "local function spin() while true do end end while true do xpcall(spin, spin) end",
        "local f = coroutine.wrap(function() while true do end end) while true do pcall(f) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local f = coroutine.wrap(function() while true do coroutine.yield() end end) \
         while true do f() end",
        "local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }) \
         while true do pcall(function() return t[1] end) end",
        "local t = setmetatable({}, { __eq = function() while true do end end }) \
         return tostring(t == setmetatable({}, getmetatable(t)))",
        "return tostring(setmetatable({}, { __tostring = function() while true do end end }))",
        "table.sort({ 1, 2, 3 }, function() while true do end end)",
        "string.gsub('a', 'a', function() while true do end end)",
        "local function one() return 1 end \
         for _ in setmetatable({}, { __iter = function() return one end }) do end",
        "while true do cx:log('info', 'x') end",
        "while true do blob:read(0, 1) end",
    ];
    for body in bodies {
        let limits = Limits { fuel: 50_000, ..Limits::IN_PLACE };
        let class = LuaClass::compile(around(body).as_bytes(), limits, still()).unwrap();
        let mut context = MemoryContext::new();
        let failure = context.call(&class, "run", b"").unwrap_err();
        let is_fuel = matches!(failure, Failure::Limit { limit: Limit::Fuel, .. });
        assert!(is_fuel, "{body}: {failure:?}");
        assert_eq!(context.call(&class, "ok", b"").unwrap(), "ok", "after {body}");
    }
}

#[test]
fn an_error_that_is_no_text_is_not_asked_what_it_is() {
    let body = "error(setmetatable({}, { __tostring = function() while true do end end }))";
    assert!(failure(body).text().contains("raised a table"));
}

#[test]
fn patterns_that_would_take_for_ever_end() {
    assert_eq!(limit("return ('a'):rep(40):find(('a*'):rep(20) .. 'b')"), Limit::Fuel);
    assert_eq!(limit("return ('x'):rep(2 ^ 20):match('.-.-.-.-y')"), Limit::Fuel);
    let long = "local text = ('a'):rep(2 ^ 21) return text:find(('a'):rep(2 ^ 20) .. 'b', 1, true)";
    assert!(failure(long).text().contains("takes too long"));
    let split = "local text = ('a'):rep(2 ^ 21) return text:split(('a'):rep(2 ^ 20) .. 'b')";
    assert!(failure(split).text().contains("takes too long"));
    let sort = "local t = table.create(300000) local text = ('a'):rep(2 ^ 20)
                for i = 1, 300000 do t[i] = i end table.sort(t)";
    assert_eq!(limit(sort), Limit::Fuel);
}

#[test]
fn time_is_over_when_it_is() {
    for body in ["while true do end", "while true do pcall(function() while true do end end) end"] {
        let source = around(body);
        let class = LuaClass::compile(source.as_bytes(), Limits::IN_PLACE, quick()).unwrap();
        let mut context = MemoryContext::new();
        match context.call(&class, "run", b"").unwrap_err() {
            Failure::Limit { limit, text } => {
                assert_eq!(limit, Limit::Time);
                assert!(text.contains("100ms"), "{text}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(context.call(&class, "ok", b"").unwrap(), "ok");
    }
}

#[test]
fn moving_elements_of_a_table_takes_no_longer_than_a_call_may() {
    let moves = ["table.insert(t, 1, 1)", "table.remove(t, 1)", "table.move(t, 1, 2 ^ 30, 2, {})"];
    for moved in moves {
        let source = around(&format!(
            "local t = table.create(100) for i = 0, 30 do t[2 ^ i] = 1 end
             for _ = 1, 1e9 do {moved} end"
        ));
        let class = LuaClass::compile(source.as_bytes(), Limits::IN_PLACE, quick()).unwrap();
        let failure = MemoryContext::new().call(&class, "run", b"").unwrap_err();
        let is_good =
            matches!(failure, Failure::Broken { .. } | Failure::Limit { limit: Limit::Time, .. });
        assert!(is_good, "{moved}: {failure:?}");
    }
}

#[test]
fn memory_ends_where_it_ends_whatever_is_caught() {
    let bodies = [
        "return ('x'):rep(2 ^ 30)",
        "local t = {} while true do t[#t + 1] = ('x'):rep(2 ^ 16) .. #t end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local s = 'x' while true do s ..= s end",
        "return table.create(2 ^ 26)",
        "return buffer.create(2 ^ 29)",
        "while true do pcall(string.rep, 'x', 2 ^ 30) end",
        "while true do pcall(buffer.create, 2 ^ 29) end",
        "local f = coroutine.wrap(function() return ('x'):rep(2 ^ 30) end) pcall(f) return 'on'",
        "coroutine.resume(coroutine.create(function() return ('x'):rep(2 ^ 30) end)) return 'on'",
        "xpcall(string.rep, function() return 1 end, 'x', 2 ^ 30) return 'on'",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        "local t = {} for i = 1, 1e6 do t = { t } end local s = {} \
         for i = 1, 1e6 do s[i] = function() return t end end",
        "return table.concat(table.create(2 ^ 16, ('x'):rep(2 ^ 12)))",
        "blob:write(0, ('x'):rep(2 ^ 21)) local t = {} while true do \
         t[#t + 1] = blob:read(0, 2 ^ 21) end",
    ];
    for body in bodies {
        assert_eq!(limit(body), Limit::Memory, "{body}");
    }
}

#[test]
fn what_is_too_large_for_the_library_is_an_error_of_the_script() {
    for body in [
        "return buffer.create(2 ^ 40)",
        "return table.create(2 ^ 40)",
        "return table.unpack({}, 1, 1e8)",
        "return string.format('%9999d', 1)",
        "return ('x'):rep(100000):rep(100000)",
    ] {
        let failure = failure(body);
        assert!(!matches!(failure, Failure::Context(_)), "{body}: {failure:?}");
    }
}

#[test]
fn recursion_that_is_too_deep_is_an_error_of_the_script() {
    for body in [
        "local function f() return f() end return f()",
        "local function f(n) return 1 + f(n + 1) end return f(1)",
        "local meta = {} meta.__index = function(t, k) return t[k] .. '' end \
         return setmetatable({}, meta).x",
        "local function f() return ('x'):gsub('x', f) end return f()",
        "local function f() return table.sort({ 3, 2, 1 }, f) end return f()",
        "local function f() return coroutine.wrap(f)() end return f()",
        "local f; f = function() return xpcall(error, f) end local ok, e = f() error(type(e))",
        "coroutine.yield(1)",
        "return ('('):rep(100):find(('('):rep(100))",
        "return ('x'):rep(300000):match(('(x)'):rep(40))",
    ] {
        let failure = failure(body);
        let is_good = matches!(failure, Failure::Broken { .. } | Failure::Limit { .. });
        assert!(is_good, "{body}: {failure:?}");
    }
}

#[test]
fn input_answer_effect_and_reads_have_bounds() {
    assert_eq!(limit("return ('x'):rep(2 ^ 17)"), Limit::Answer);
    assert_eq!(limit("while true do blob:write(0, ('x'):rep(2 ^ 16)) end"), Limit::Effect);
    assert_eq!(limit("while true do pcall(blob.append, blob, '') end"), Limit::Effect);
    assert_eq!(limit("for i = 1, 1e6 do blob.map:set(tostring(i), '') end"), Limit::Effect);
    assert_eq!(limit("blob:truncate(2 ^ 24) blob:read(0, 2 ^ 53)"), Limit::Read);
    let class = of_body("");
    let failure = MemoryContext::new().call(&class, "run", &vec![0; (1 << 20) + 1]).unwrap_err();
    assert!(matches!(failure, Failure::Limit { limit: Limit::Input, .. }));
    MemoryContext::new().call(&class, "run", &vec![0; 1 << 20]).unwrap();
}

#[test]
fn what_is_logged_has_a_bound() {
    let class = of_body("for i = 1, 1000 do cx:log('info', ('x'):rep(10000)) end");
    let mut context = MemoryContext::new();
    context.call(&class, "run", b"").unwrap();
    assert_eq!(context.lines.len(), LOG_LINES_MAX);
    assert!(context.lines[0].1.len() < 5_000);
}

#[test]
fn a_failure_says_no_more_than_fits() {
    let failure = failure("cx:fail('Conflict', ('x'):rep(100000))");
    assert!(failure.text().len() < 5_000);
}

#[test]
fn fuel_is_counted_alike_in_each_run() {
    let source = around("local n = 0 while n < 200000 do n += 1 end return tostring(n)");
    for fuel in [199_000, 210_000] {
        let limits = Limits { fuel, ..Limits::IN_PLACE };
        let class = LuaClass::compile(source.as_bytes(), limits, still()).unwrap();
        for _ in 0..3 {
            let result = MemoryContext::new().call(&class, "run", b"");
            assert_eq!(result.is_ok(), fuel == 210_000);
        }
    }
}
