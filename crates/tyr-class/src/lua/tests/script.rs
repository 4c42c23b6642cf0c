//! What is a class, and what is said of a script that is none.

use super::{compile, still};
use crate::class::{Class, MethodKind};
use crate::limits::{Limits, SOURCE_LEN_MAX};
use crate::lua::LuaClass;
use crate::testing::run_tests;

#[test]
fn a_script_returns_its_name_and_methods() {
    let class = compile(
        r#"return { name = "zlog", methods = {
             write = { kind = "call", scope = "head", run = function() end },
             read = { kind = "query", run = function() end },
             all = { kind = "gather", run = function() end } } }"#,
    );
    assert_eq!(class.info().name(), "zlog");
    let methods: Vec<_> = class.info().methods().iter().map(|it| (&*it.name, it.kind)).collect();
    let wanted =
        [("all", MethodKind::Gather), ("read", MethodKind::Query), ("write", MethodKind::Call)];
    assert_eq!(methods, wanted);
}

#[test]
fn what_is_no_class_is_told_with_line_and_remedy() {
    let cases = [
        ("return {\n name = }", ":2:"),
        ("local x = nil\nreturn x.y", ":2:"),
        ("return 1", "returned a number: return the class"),
        ("", "returned a nil: return the class"),
        ("return {}", "no table \"methods\""),
        ("return { methods = { a = { kind = 'call', run = print } } }", "name is not there"),
        ("return { name = 'a b', methods = { a = { kind = 'call', run = print } } }", "1 to 64"),
        ("return { name = 'a', methods = {} }", "1 to 1024"),
        ("return { name = 'a', methods = { a = 1 } }", "a function \"run\""),
        ("return { name = 'a', methods = { a = { kind = 'call' } } }", "a function \"run\""),
        ("return { name = 'a', methods = { a = { run = print } } }", "\"kind\" is a string"),
        (
            "return { name = 'a', methods = { a = { kind = 'x', run = print } } }",
            "one of call, query, gather, not \"x\"",
        ),
        (
            "return { name = 'a', methods = { a = { kind = 'call', scope = 'x', run = print } } }",
            "one of head",
        ),
        ("return { name = 'a', methods = { function() end } }", "a function \"run\""),
        ("objclass.stat()", "while the class is made"),
        ("while true do end", "safepoints"),
        ("objclass.register(function() end)", "has no name"),
        ("function h() end objclass.register(h)", "has no name"),
    ];
    for (source, wanted) in cases {
        let error = LuaClass::compile(source.as_bytes(), Limits::IN_PLACE, still()).err().unwrap();
        assert_eq!(error.kind(), tyr_types::ErrorKind::InvalidArgument, "{source}");
        assert!(error.to_string().contains(wanted), "{source}: {error}");
    }
}

#[test]
fn compiled_code_and_what_is_no_text_are_not_taken() {
    let long = vec![b' '; SOURCE_LEN_MAX + 1];
    let cases: [(&[u8], &str); 6] = [
        (b"\x1bLua", "compiled code"),
        (b"\x05\x03\x01", "compiled code"),
        (b"\x0areturn 1\x00", "returned a number"),
        (b"\x00", "compiled code"),
        (b"return '\xff'", "no text in UTF-8 from byte 8 on"),
        (&long, "1 MiB"),
    ];
    for (source, wanted) in cases {
        let error = LuaClass::compile(source, Limits::IN_PLACE, still()).err().unwrap();
        assert!(error.to_string().contains(wanted), "{source:?}: {error}");
    }
}

#[test]
fn sources_that_are_deep_or_long_are_errors() {
    let deep = |open: &str, close: &str, count: usize| {
        format!("return {}1{}", open.repeat(count), close.repeat(count))
    };
    let sources = [
        deep("(", ")", 100_000),
        deep("{", "}", 100_000),
        deep("-", "", 100_000),
        deep("not ", "", 100_000),
        deep("function() return ", " end", 20_000),
        format!("return {}1", "1+".repeat(200_000)),
        format!("return {}''", "''..".repeat(100_000)),
        format!("return a{}", ".a".repeat(100_000)),
        format!("return a{}", "()".repeat(100_000)),
        "do ".repeat(100_000),
        "if a then ".repeat(50_000),
        format!("local {}a", "a,".repeat(300)),
    ];
    for source in sources {
        let error = LuaClass::compile(source.as_bytes(), Limits::IN_PLACE, still()).err().unwrap();
        assert_eq!(error.kind(), tyr_types::ErrorKind::InvalidArgument, "{}", &source[..40]);
    }
}

#[test]
fn tables_that_misbehave_are_not_asked() {
    let traps = "local trap = { __index = function() while true do end end,
                   __iter = function() while true do end end,
                   __len = function() while true do end end,
                   __tostring = function() while true do end end }";
    let bad = format!("{traps} return setmetatable({{}}, trap)");
    let error = LuaClass::compile(bad.as_bytes(), Limits::IN_PLACE, still()).err().unwrap();
    assert!(error.to_string().contains("no table \"methods\""), "{error}");
    let good = format!(
        "{traps} local run = function() return 'ok' end
         return setmetatable({{ name = 'a', methods = setmetatable({{
           run = setmetatable({{ kind = 'call', run = run }}, trap) }}, trap) }}, trap)"
    );
    let mut context = crate::testing::MemoryContext::new();
    assert_eq!(context.call(&compile(&good), "run", b"").unwrap(), "ok");
}

#[test]
fn a_test_lets_time_pass() {
    let class = compile(
        r#"return { name = "lease",
             methods = { now = { kind = "query", run = function(cx) return tostring(cx.now) end } },
             tests = { passes = function(blob, call, pass)
               local function now() return tonumber(buffer.tostring((call("now")))) end
               local begun = now()
               pass(30000000)
               assert(now() == begun + 30000001)
               assert(not pcall(pass, -1))
             end } }"#,
    );
    let outcomes = run_tests(&class);
    assert!(outcomes[0].failure.is_none(), "{:?}", outcomes[0].failure);
}

#[test]
fn what_means_nothing_in_a_class_is_told() {
    let class = compile(
        r#"return { name = "a", test = {}, [7] = true, tests = {},
             methods = { m = { kind = "call", run = function() end } } }"#,
    );
    assert_eq!(class.others(), ["7", "test"]);
}

#[test]
fn a_class_brings_its_tests() {
    let class = compile(
        r#"local function set(cx, blob, input)
             if blob:stat() > 0 then cx:fail("AlreadyExists", "it is set", 7) end
             cx:log("info", "set")
             blob:write(0, input)
           end
           return { name = "register",
             methods = { set = { kind = "call", run = set } },
             tests = {
               is_set_once = function(blob, call)
                 assert(call("set", "one"))
                 local answer, kind, text, code = call("set", "two")
                 assert(answer == nil and kind == "AlreadyExists" and code == 7, text)
                 assert(buffer.tostring(blob:read(0, 10)) == "one")
               end,
               goes_wrong = function(blob) error("no") end,
               writes_itself = function(blob, call)
                 blob:write(0, "x")
                 assert(select(2, call("set", "two")) == "AlreadyExists")
               end } }"#,
    );
    let outcomes = run_tests(&class);
    let names: Vec<_> = outcomes.iter().map(|it| (&*it.name, it.failure.is_none())).collect();
    assert_eq!(names, [("goes_wrong", false), ("is_set_once", true), ("writes_itself", true)]);
    assert_eq!(outcomes[1].lines.len(), 1);
    assert!(outcomes[0].failure.as_ref().unwrap().text().contains("no"));
}
