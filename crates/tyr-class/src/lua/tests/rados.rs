//! Scripts as they are written for RADOS.

use tyr_types::ErrorKind;

use super::still;
use crate::class::Class;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::lua::LuaClass;
use crate::testing::MemoryContext;

/// A class of these handlers: names and bodies, functions of (input, output).
fn handlers(bodies: &[(&str, &str)]) -> LuaClass {
    let define = |(name, body): &(&str, &str)| {
        format!("function {name}(input, output) {body} end objclass.register({name})\n")
    };
    let source: String = bodies.iter().map(define).collect();
    LuaClass::compile_handlers("old", source.as_bytes(), Limits::IN_PLACE, still()).unwrap()
}

fn run(context: &mut MemoryContext, body: &str, input: &[u8]) -> Result<String, Failure> {
    let answer = context.call(&handlers(&[("run", body)]), "run", input)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn code(context: &mut MemoryContext, body: &str) -> (ErrorKind, i32) {
    match run(context, body, b"").unwrap_err() {
        Failure::Method { kind, code, .. } => (kind, code),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn handlers_that_are_registered_are_the_methods() {
    let class = handlers(&[("write", ""), ("read", "")]);
    let names: Vec<_> = class.info().methods().iter().map(|it| &*it.name).collect();
    assert_eq!((class.info().name(), names), ("old", vec!["read", "write"]));
}

#[test]
fn a_blob_is_read_and_written_by_the_old_names() {
    let context = &mut MemoryContext::new();
    assert_eq!(code(context, "objclass.stat()"), (ErrorKind::NotFound, -2));
    assert_eq!(code(context, "objclass.read(0, 1)"), (ErrorKind::NotFound, -2));
    run(context, "objclass.write(0, #input, input)", b"hello").unwrap();
    let read = "size, mtime = objclass.stat() bl = objclass.read(0, size) \
                output:append(bl:str()) output:append(size .. ',' .. mtime)";
    assert_eq!(run(context, read, b"").unwrap(), "hello5,1");
    assert_eq!(run(context, "output:append(objclass.read(1, 0))", b"").unwrap(), "ello");
    run(context, "objclass.write_full(input)", b"all").unwrap();
    assert_eq!(context.blob.as_deref(), Some(&b"all"[..]));
    assert_eq!(code(context, "objclass.create(true)"), (ErrorKind::AlreadyExists, -17));
    run(context, "objclass.create(false)", b"").unwrap();
    run(context, "objclass.remove()", b"").unwrap();
    assert_eq!(code(context, "objclass.remove()"), (ErrorKind::NotFound, -2));
}

#[test]
fn pcall_gives_the_error_number() {
    let body = "ok, ret = pcall(objclass.stat) assert(ok == false and ret == -objclass.ENOENT)
                ok, ret = pcall(objclass.map_get_val, 'x') assert(ret == -objclass.ENOENT)
                return -9999";
    assert_eq!(code(&mut MemoryContext::new(), body), (ErrorKind::InvalidArgument, -9999));
}

#[test]
fn a_handler_returns_an_error_number_or_nothing() {
    let context = &mut MemoryContext::new();
    for good in ["", "return 0", "return 1", "return '1'"] {
        run(context, good, b"").unwrap();
    }
    assert_eq!(code(context, "return -1").1, -1);
    assert_eq!(code(context, "return '-1'").1, -1);
    for bad in ["return nil", "return {}", "return 'asdf'", "error('no')", "return 0 / 0 < 0"] {
        assert!(matches!(run(context, bad, b"").unwrap_err(), Failure::Broken { .. }), "{bad}");
    }
}

#[test]
fn a_map_and_attributes_by_the_old_names() {
    let context = &mut MemoryContext::new();
    run(context, "objclass.map_set_val('foo', input)", b"bar").unwrap();
    assert!(context.blob.is_some());
    run(context, "objclass.map_set_vals({ a = 'a_val', [1] = '1_val' })", b"").unwrap();
    assert_eq!(code(context, "objclass.map_set_vals({ a = {} })").1, -22);
    let read = "output:append(objclass.map_get_val('foo'):str())";
    assert_eq!(run(context, read, b"").unwrap(), "bar");
    let keys = "arr = {} for n in pairs(objclass.map_get_keys('', 5)) do table.insert(arr, n) end
                table.sort(arr) output:append(table.concat(arr, '/'))";
    assert_eq!(run(context, keys, b"").unwrap(), "1/a/foo");
    let values = "for k, v in pairs(objclass.map_get_vals('1', 'a', 5)) do
                    output:append(k .. '=' .. v:str()) end";
    assert_eq!(run(context, values, b"").unwrap(), "a=a_val");
    run(context, "objclass.setxattr('x', input)", b"1").unwrap();
    run(context, "objclass.map_write_header(input)", b"head").unwrap();
    run(context, "objclass.map_remove_key('a')", b"").unwrap();
    run(context, "objclass.map_clear()", b"").unwrap();
    assert_eq!(code(context, "objclass.map_get_val('foo')").1, -2);
    let attributes =
        "output:append(objclass.getxattr('x'):str() .. objclass.map_read_header():str())
                      for n, v in pairs(objclass.getxattrs()) do output:append(n .. v:str()) end";
    assert_eq!(run(context, attributes, b"").unwrap(), "1headx1");
    assert_eq!(code(context, "objclass.getxattr('y')").1, -61);
}

#[test]
fn lists_of_bytes_compare_and_join() {
    let body = "a, b, ab = bufferlist.new(), bufferlist.new(), bufferlist.new()
                assert(a == b and #a == 0)
                a:append('A') b:append('B') ab:append('AB')
                assert(a < b and a <= b and a ~= b and a .. b == ab and b .. a ~= ab and #ab == 2)
                x = a .. b b:append('C') assert(x == ab and b:str() == 'BC')
                output:append(objclass.log(0, 'said', x))
                objclass.cls_log('quiet')";
    let mut context = MemoryContext::new();
    assert_eq!(run(&mut context, body, b"").unwrap(), "said AB");
    assert_eq!(context.lines.len(), 2);
}

#[test]
fn a_context_that_fails_is_no_error_number() {
    let mut context = MemoryContext { accesses_left: Some(0), ..MemoryContext::new() };
    let failure = run(&mut context, "pcall(objclass.stat) return 0", b"").unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Unavailable);
}
