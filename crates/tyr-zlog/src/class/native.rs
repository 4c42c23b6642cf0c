//! A class of this crate in Rust: a name, and a table of methods.

use tyr::Bytes;
use tyr_class::{Class, ClassInfo, Context, Failure, Limits, MethodKind};

/// A method: its name, its kind, and what it does.
pub(super) type Method =
    (&'static str, MethodKind, fn(&mut dyn Context, &[u8]) -> Result<Bytes, Failure>);

/// A class of this crate in Rust.
#[derive(Debug)]
pub struct NativeClass {
    info: ClassInfo,
    /// Sorted by name, as those of the info are.
    methods: &'static [Method],
}

impl NativeClass {
    pub(super) fn new(name: &str, methods: &'static [Method]) -> Self {
        assert!(methods.is_sorted_by_key(|(name, ..)| name), "those of the info are");
        let named = methods.iter().map(|(name, kind, _)| (*name, *kind));
        let info = ClassInfo::new(name, named, Limits::IN_PLACE);
        Self { info: info.expect("names and methods are as they have to be"), methods }
    }
}

impl Class for NativeClass {
    fn info(&self) -> &ClassInfo {
        &self.info
    }

    fn run(
        &self,
        method: usize,
        context: &mut dyn Context,
        input: &[u8],
    ) -> Result<Bytes, Failure> {
        let (_, _, run) = self.methods[method];
        run(context, input)
    }
}
