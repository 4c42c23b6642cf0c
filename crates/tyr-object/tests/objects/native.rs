//! Classes in Rust: one and the same in Lua do the same, and one knows how often it was run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tyr::blocking::Tyr;
use tyr::{Bytes, ErrorKind};
use tyr_class::{Class, ClassInfo, Context, MethodKind};
use tyr_object::blocking::Classes;
use tyr_object::{Call, Failure, Limits, keyspace_config};

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

/// A method that does something else each time.
struct Numbered {
    info: ClassInfo,
    runs: AtomicU32,
}

impl Numbered {
    fn new(name: &str) -> Arc<Self> {
        let info = ClassInfo::new(name, [("run", MethodKind::Call)], Limits::IN_PLACE).unwrap();
        Arc::new(Self { info, runs: AtomicU32::new(0) })
    }

    fn runs(&self) -> u32 {
        self.runs.load(Ordering::Acquire)
    }
}

impl Class for Numbered {
    fn info(&self) -> &ClassInfo {
        &self.info
    }

    fn run(&self, _: usize, context: &mut dyn Context, _: &[u8]) -> Result<Bytes, Failure> {
        let number = self.runs.fetch_add(1, Ordering::AcqRel) + 1;
        context.append(number.to_string().as_bytes())?;
        Ok(Bytes::new())
    }
}

#[test]
fn a_method_is_not_run_to_apply_what_it_did_o3() {
    on_each(|place| {
        let class = Numbered::new(&place.class);
        place.classes.register(Arc::clone(&class) as Arc<dyn Class>).unwrap();
        (0..5).for_each(|_| drop(place.call("a", "run", "").unwrap()));
        // In a cluster three nodes have it by now.
        assert_eq!((place.keyspace.get("a").unwrap(), class.runs()), (Bytes::from("12345"), 5));
    });
}

#[test]
fn a_method_is_not_run_to_replay_what_it_did_o3() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = Tyr::open(folder.path()).unwrap();
        let keyspace = store.create_keyspace("objects", keyspace_config()).unwrap();
        let classes = Classes::of(&store);
        classes.register(Numbered::new("numbered")).unwrap();
        classes.call(&keyspace, "a", &Call::new("numbered", "run", "")).unwrap();
    }
    // This program has no such class.
    let store = Tyr::open(folder.path()).unwrap();
    assert_eq!(store.keyspace("objects").unwrap().get("a").unwrap(), "1");
}
