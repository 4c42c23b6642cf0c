//! A class in Rust and the same in Lua do the same.

use std::sync::Arc;

use tyr::{Bytes, ErrorKind};
use tyr_class::{Class, ClassInfo, Context, MethodKind};
use tyr_object::{Failure, Limits};

use crate::place::{Place, on_each};

/// A register that is set once, in Lua.
const SCRIPT: &str = r#"
return { name = "NAME", methods = {
  set = { kind = "call", run = function(cx, blob, input)
    if blob:size() > 0 then cx:fail("AlreadyExists", "it is set") end
    blob:write(0, input)
    return tostring(buffer.len(input))
  end },
  get = { kind = "query", run = function(cx, blob) return blob:read(0, 4096) end },
} }"#;

/// The same in Rust.
struct Register(ClassInfo);

impl Class for Register {
    fn info(&self) -> &ClassInfo {
        &self.0
    }

    fn run(
        &self,
        method: usize,
        context: &mut dyn Context,
        input: &[u8],
    ) -> Result<Bytes, Failure> {
        match self.0.methods()[method].name.as_str() {
            "get" => Ok(context.read(0, 4096)?),
            _ if context.size()?.is_some_and(|size| size > 0) => {
                Err(Failure::method(ErrorKind::AlreadyExists, "it is set"))
            }
            _ => {
                context.write(0, input)?;
                Ok(input.len().to_string().into())
            }
        }
    }
}

fn is_a_register(place: &Place) {
    assert_eq!(place.call("a", "get", "").unwrap(), "");
    assert_eq!(place.call("a", "set", "first").unwrap(), "5");
    let failure = place.call("a", "set", "second").unwrap_err();
    assert_eq!((failure.kind(), failure.text()), (ErrorKind::AlreadyExists, "it is set"));
    assert_eq!(place.call("a", "get", "").unwrap(), "first");
}

#[test]
fn a_class_in_rust_and_one_in_lua_do_the_same() {
    on_each(|mut place| {
        place.install(SCRIPT);
        is_a_register(&place);

        place.class.push_str("_native");
        let methods = [("set", MethodKind::Call), ("get", MethodKind::Query)];
        let info = ClassInfo::new(place.class.clone(), methods, Limits::IN_PLACE).unwrap();
        let class = Arc::new(Register(info));
        place.classes.register(Arc::clone(&class) as Arc<dyn Class>).unwrap();
        let again = place.classes.register(class).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        place.keyspace.delete("a").unwrap();
        is_a_register(&place);
    });
}
