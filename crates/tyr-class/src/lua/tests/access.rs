//! What scripts see of their blob, its map, and the call.

use tyr_types::ErrorKind;

use super::{answer, compile, failure, of_body};
use crate::context::LogLevel;
use crate::failure::Failure;
use crate::testing::MemoryContext;

#[test]
fn a_blob_is_read_and_written() {
    let body = r#"
        local size, version, exists = blob:stat()
        assert(size == 0 and version == string.rep("\0", 16) and exists == false)
        assert(blob:create(true) and not blob:create())
        blob:write(2, "cde")
        assert(blob:append(buffer.fromstring("f")) == 5)
        blob:truncate(8)
        assert(buffer.tostring(blob:read(0, 100)) == "\0\0cdef\0\0")
        assert(buffer.len(blob:read(100, 1)) == 0)
        assert(select(3, blob:stat()))
        local size, exists = blob:size()
        assert(size == 8 and exists)
        assert(blob:transform(0, "add", "u16", 258) == 258)
        assert(blob:transform(8, "add", "i64", "9007199254740993") == "9007199254740993")
        assert(blob:transform(8, "sub", "i64", 1) == 9007199254740992)
        assert(blob:transform(16, "max", "f64", 0.5) == 0.5)
        assert(blob:remove() and not blob:remove())
        return "good"#;
    assert_eq!(answer(&format!("{body}\"")), "good");
}

#[test]
fn a_map_is_sorted_and_does_not_see_attributes() {
    let body = r#"
        local map = blob.map
        assert(map:get("a") == nil and map:remove("a") == false)
        blob:xattr("owner"):set("me")
        for _, key in { "b", "a", "\0z", "ab" } do map:set(key, key .. "!") end
        local keys, values = map:next()
        assert(table.concat(keys, " ") == "\0z a ab b")
        assert(buffer.tostring(values[3]) == "ab!")
        assert(table.concat(map:next(nil, 2), " ") == "\0z a")
        assert(table.concat(map:next("a", 2), " ") == "ab b")
        assert(table.concat(map:prefix("a"), " ") == "a ab")
        assert(table.concat(map:prefix("a", "a", 1), " ") == "ab")
        for index = 1, 300 do blob:xattr("many" .. index):set("") end
        assert(table.concat(map:next("", 3), " ") == "\0z a ab")
        assert(table.concat(map:prefix("", "\0z", 1), " ") == "a")
        assert(#map:prefix("\1") == 0)
        for _, key in { "\2", "\1owner", "\1", "\2\1" } do map:set(key, key) end
        assert(table.concat(map:next("\0z", 5), " ") == "\1 \1owner \2 \2\1 a")
        assert(table.concat(map:prefix("\1"), " ") == "\1 \1owner")
        assert(table.concat(map:prefix("\2", "\2"), " ") == "\2\1")
        assert(buffer.tostring(map:get("\1owner")) == "\1owner" and map:remove("\1owner"))
        for index = 1, 300 do blob:xattr("many" .. index):remove() end
        assert(map:remove("a") and map:get("a") == nil)
        map:header("head")
        map:clear()
        assert(#map:next() == 0 and buffer.tostring(map:header()) == "head")
        local owner = blob:xattr("owner")
        assert(buffer.tostring(owner:get()) == "me" and owner:remove() and owner:get() == nil)
        return "good"#;
    assert_eq!(answer(&format!("{body}\"")), "good");
}

#[test]
fn a_call_knows_who_and_when_and_can_say_something() {
    let class = of_body(
        "cx:log('warn', 'hm') print(1, true)
         return `{cx.now} {cx.caller} {cx.transaction} {buffer.tostring(input)}`",
    );
    let mut context = MemoryContext::new();
    let answer = context.call(&class, "run", b"in").unwrap();
    assert_eq!(answer, "1000000 tester 00000000000000010000000000000001 in");
    let lines = [(LogLevel::Warn, "hm".to_owned()), (LogLevel::Debug, "1\ttrue".to_owned())];
    assert_eq!(context.lines, lines);
}

#[test]
fn a_failure_of_its_own_ends_the_call_and_is_not_caught() {
    let body = "blob:write(0, 'x') pcall(cx.fail, cx, 'NotFound', 'nothing here', -3)
                while true do end";
    let Failure::Method { kind, code, text } = failure(body) else { panic!() };
    assert_eq!((kind, code, &*text), (ErrorKind::NotFound, -3, "nothing here"));
    let text = failure("cx:fail('Corrupt', 'x')").to_string();
    assert!(text.contains("one of NotFound, AlreadyExists"), "{text}");
}

#[test]
fn mistakes_are_told_with_their_line() {
    let cases = [
        ("\n\nlocal a = nil + 1", ":4: attempt to perform arithmetic"),
        ("\nblob:read('a', 1)", ":3: the offset is a number, not a string"),
        ("blob:read(-1, 1)", "from 0 to 2^53"),
        ("blob:read(0.5, 1)", "from 0 to 2^53"),
        ("blob:read(2 ^ 54, 1)", "from 0 to 2^53"),
        ("blob:read(0 / 0, 1)", "from 0 to 2^53"),
        ("blob:read(1 / 0, 1)", "from 0 to 2^53"),
        ("blob:write(0)", "is a string or a buffer, not nil"),
        ("blob:write(0, {})", "is a string or a buffer, not a table"),
        ("blob:transform(0, 'plus', 'u8', 1)", "one of add, sub"),
        ("blob:transform(0, 'add', 'u128', 1)", "one of i8"),
        ("blob:transform(0, 'add', 'u8', 256)", "not a number of type u8"),
        ("blob:transform(0, 'div', 'u8', 0)", "division by zero"),
        ("blob.map:set('', 'x')", "1 to 1000 bytes"),
        ("blob.map:set('a', string.rep('x', 70000))", "65536 bytes"),
        ("cx:log('loud', 'x')", "one of debug, info"),
        ("error('own words')", "own words"),
        ("error({})", "raised a table as an error"),
        ("return 1", "not an integer"),
        ("return {}", "not a table"),
        ("return print", "not a function"),
    ];
    for (body, wanted) in cases {
        let failure = failure(body);
        assert!(matches!(failure, Failure::Broken { .. }), "{body}: {failure:?}");
        assert!(failure.text().contains(wanted), "{body}: {failure}");
    }
    // What a script did wrong in asking it may catch.
    assert_eq!(answer("return tostring(pcall(blob.read, blob, -1, 1))"), "false");
}

#[test]
fn an_error_of_the_context_ends_the_call_as_it_is_and_is_not_swallowed() {
    for left in 0..3 {
        let class = of_body(
            "pcall(function() blob:read(0, 1) blob.map:get('a') blob:write(0, 'x') end)
             pcall(blob.write, blob, 0, 'y') return 'went on'",
        );
        let mut context = MemoryContext { accesses_left: Some(left), ..MemoryContext::new() };
        match context.call(&class, "run", b"").unwrap_err() {
            Failure::Context(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                assert_eq!(error.message(), "the blob is away, as the test wants it");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(context.blob, None);
    }
}

#[test]
fn a_damaged_map_is_an_error_of_the_context() {
    let mut context = MemoryContext { map: vec![7; 4096], ..MemoryContext::new() };
    let class = of_body("pcall(blob.map.get, blob.map, 'a') return 'went on'");
    let failure = context.call(&class, "run", b"").unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_query_writes_nothing() {
    let writes = [
        "blob:write(0, 'x')",
        "blob:append('x')",
        "blob:truncate(0)",
        "blob:create()",
        "blob:remove()",
        "blob:transform(0, 'add', 'u8', 1)",
        "blob.map:set('a', 'b')",
        "blob:xattr('a'):set('b')",
    ];
    for write in writes {
        let class = compile(&format!(
            "return {{ name = 'c', methods = {{ look = {{ kind = 'query',
               run = function(cx, blob) pcall(function() {write} end) return 'went on' end }} }} }}"
        ));
        let mut context = MemoryContext::new();
        let failure = context.call(&class, "look", b"").unwrap_err();
        assert!(failure.text().contains("a query wrote"), "{write}: {failure}");
        assert_eq!((context.blob, context.map), (None, Vec::new()));
    }
}
