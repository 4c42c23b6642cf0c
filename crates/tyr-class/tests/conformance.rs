//! One suite for classes of every kind: a write-once register and a counter, in Lua and in Rust.

use std::sync::Arc;
use std::time::Duration;

use tyr_class::testing::MemoryContext;
use tyr_class::{
    Class, ClassInfo, Companion, Context, Failure, Limit, Limits, LuaClass, Map, MethodKind,
};
use tyr_types::{Bytes, ErrorKind, Number, Transform};

const LUA: &str = r#"
local methods = {}
methods.set = { kind = "call", run = function(cx, blob, input)
    if not blob:create() then cx:fail("AlreadyExists", "it is set", 17) end
    blob:write(0, input)
    blob.map:set("by", cx.caller)
end }
methods.get = { kind = "query", run = function(cx, blob)
    local size, exists = blob:size()
    if not exists then cx:fail("NotFound", "it is not set") end
    return blob:read(0, size)
end }
methods.by = { kind = "query", run = function(cx, blob) return blob.map:get("by") end }
methods.add = { kind = "call", run = function(cx, blob, input)
    return tostring(blob:transform(0, "add", "i64", tonumber(buffer.tostring(input))))
end }
methods.cheat = { kind = "query", run = function(cx, blob) pcall(blob.write, blob, 0, "x") end }
methods.large = { kind = "call", run = function(cx, blob)
    for _ = 1, 5 do pcall(blob.append, blob, string.rep("x", 2 ^ 20)) end
end }
methods.much = { kind = "query", run = function() return string.rep("x", 2 ^ 17) end }
return { name = "small", methods = methods }
"#;

/// The same in Rust.
struct Native {
    info: ClassInfo,
}

impl Native {
    fn new() -> Self {
        let calls = ["set", "add", "large"].map(|name| (name, MethodKind::Call));
        let queries = ["get", "by", "cheat", "much"].map(|name| (name, MethodKind::Query));
        let methods = calls.into_iter().chain(queries);
        let info = ClassInfo::new("small", methods, Limits::IN_PLACE);
        Self { info: info.expect("names and kinds are good") }
    }
}

fn set(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    if !context.create()? {
        return Err(Failure::method(ErrorKind::AlreadyExists, "it is set").with_code(17));
    }
    context.write(0, input)?;
    let caller = context.caller().to_owned();
    Map::new(&mut Companion(context)).set(b"by", caller.as_bytes())?;
    Ok(Bytes::new())
}

fn get(context: &mut dyn Context) -> Result<Bytes, Failure> {
    let size = context.size()?;
    let size = size.ok_or_else(|| Failure::method(ErrorKind::NotFound, "it is not set"))?;
    Ok(context.read(0, size)?)
}

fn add(context: &mut dyn Context, input: &[u8]) -> Result<Bytes, Failure> {
    let text = std::str::from_utf8(input).ok().and_then(|text| text.parse().ok());
    let operand = text.ok_or_else(|| Failure::broken("no number"))?;
    let value = context.transform(0, Transform::add(Number::I64(operand)))?;
    Ok(value.to_string().into())
}

impl Class for Native {
    fn info(&self) -> &ClassInfo {
        &self.info
    }

    fn run(
        &self,
        method: usize,
        context: &mut dyn Context,
        input: &[u8],
    ) -> Result<Bytes, Failure> {
        match self.info.methods()[method].name.as_str() {
            "set" => set(context, input),
            "get" => get(context),
            "by" => Ok(Map::new(&mut Companion(context)).get(b"by")?.unwrap_or_default()),
            "add" => add(context, input),
            "cheat" => {
                let _ = context.write(0, b"x");
                Ok(Bytes::new())
            }
            "large" => {
                for _ in 0..5 {
                    let _ = context.append(&vec![b'x'; 1 << 20]);
                }
                Ok(Bytes::new())
            }
            _ => Ok(vec![b'x'; 1 << 17].into()),
        }
    }
}

/// Runs `check` with each implementation and a blob that is not there.
fn each(check: impl Fn(&dyn Class, &mut MemoryContext)) {
    let clock = Arc::new(|| Duration::ZERO);
    let lua = LuaClass::compile(LUA.as_bytes(), Limits::IN_PLACE, clock).expect("it is a class");
    let classes: [&dyn Class; 2] = [&lua, &Native::new()];
    for class in classes {
        check(class, &mut MemoryContext::new());
    }
}

#[test]
fn a_register_is_set_once() {
    each(|class, context| {
        let failure = context.call(class, "get", b"").unwrap_err();
        assert_eq!((failure.kind(), failure.text()), (ErrorKind::NotFound, "it is not set"));
        assert_eq!(context.call(class, "set", b"one").unwrap(), "");
        match context.call(class, "set", b"two").unwrap_err() {
            Failure::Method { kind, code, text } => {
                assert_eq!((kind, code, &*text), (ErrorKind::AlreadyExists, 17, "it is set"));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(context.call(class, "get", b"").unwrap(), "one");
        assert_eq!(context.call(class, "by", b"").unwrap(), "tester");
    });
}

#[test]
fn a_counter_counts() {
    each(|class, context| {
        assert_eq!(context.call(class, "add", b"5").unwrap(), "5");
        assert_eq!(context.call(class, "add", b"-7").unwrap(), "-2");
    });
}

#[test]
fn both_have_the_same_methods() {
    each(|class, _| assert_eq!(class.info(), Native::new().info()));
}

#[test]
fn a_method_that_is_not_there_is_told() {
    each(|class, context| {
        let failure = context.call(class, "unset", b"").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NotFound);
        assert!(failure.text().contains("it has add, by, cheat"), "{failure}");
    });
}

/// A call of a method without what keeps it within bounds.
fn unbounded(class: &dyn Class, context: &mut MemoryContext, method: &str) -> usize {
    let method = class.info().method(method).expect("it has this method");
    class.run(method, context, b"").expect("nothing ends it").len()
}

/// O8.
#[test]
fn a_query_that_writes_fails_though_it_does_not_look() {
    each(|class, context| {
        let failure = context.call(class, "cheat", b"").unwrap_err();
        assert!(failure.text().contains("a query wrote"), "{failure}");
        assert_eq!(context.blob, None);
    });
}

#[test]
fn without_o8_a_query_writes() {
    each(|class, context| {
        unbounded(class, context, "cheat");
        assert_eq!(context.blob.as_deref(), Some(&b"x"[..]));
    });
}

/// O5.
#[test]
fn effect_and_answer_have_bounds() {
    each(|class, context| {
        let met = |context: &mut MemoryContext, method, wanted| match context
            .call(class, method, b"")
            .unwrap_err()
        {
            Failure::Limit { limit, .. } => assert_eq!(limit, wanted),
            other => panic!("{other:?}"),
        };
        met(context, "large", Limit::Effect);
        met(context, "much", Limit::Answer);
        assert_eq!(context.blob, None);
    });
}

#[test]
fn without_o5_a_method_writes_and_answers_as_much_as_it_likes() {
    each(|class, context| {
        unbounded(class, context, "large");
        assert_eq!(context.blob.as_ref().unwrap().len(), 5 << 20);
        assert_eq!(unbounded(class, context, "much"), 1 << 17);
    });
}

#[test]
fn without_o5_a_method_hides_what_has_ended_it() {
    let (class, mut context) = (Native::new(), MemoryContext::new());
    context.accesses_left = Some(0);
    let failure = context.call(&class, "large", b"").unwrap_err();
    assert!(matches!(failure, Failure::Context(_)), "{failure:?}");
    unbounded(&class, &mut context, "large");
    assert_eq!(context.blob, None, "though it says that all went well");
}

/// O5.
#[test]
fn an_error_of_the_context_is_that_of_the_call() {
    for left in 0..4 {
        each(|class, context| {
            context.accesses_left = Some(left);
            match context.call(class, "set", b"one").unwrap_err() {
                Failure::Context(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
                other => panic!("{other:?}"),
            }
        });
    }
}
