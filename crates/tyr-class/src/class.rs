//! A class: a name, and named methods that run beside one blob.

use tyr_types::{Bytes, Error, Result};

use crate::context::Context;
use crate::failure::Failure;
use crate::limits::{Limits, METHODS_MAX, NAME_LEN_MAX};

/// Methods that run beside one blob, atomically: in Lua, or in Rust.
///
/// Who has one to run does so by [`call`](crate::call()), which keeps it within its limits.
pub trait Class: Send + Sync {
    /// What it is called, and which methods it has.
    fn info(&self) -> &ClassInfo;

    /// Runs a method, by its place in [`ClassInfo::methods`].
    ///
    /// # Errors
    /// The method's own failure, or that of what its blob is on.
    fn run(&self, method: usize, context: &mut dyn Context, input: &[u8])
    -> Result<Bytes, Failure>;
}

/// What a method may do, and so where it can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount)]
pub enum MethodKind {
    /// Reads and writes its blob.
    Call,
    /// Only reads: a write is refused.
    Query,
    /// Reads and writes what need not lie together; it runs as any transaction of a client does.
    Gather,
}

impl MethodKind {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Call, Self::Query, Self::Gather];

    /// Its name, as a script gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Query => "query",
            Self::Gather => "gather",
        }
    }

    /// Whether it may change its blob.
    pub fn is_writing(self) -> bool {
        match self {
            Self::Call | Self::Gather => true,
            Self::Query => false,
        }
    }
}

/// A method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodInfo {
    /// Its name in its class.
    pub name: String,
    /// What it may do.
    pub kind: MethodKind,
}

/// A class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassInfo {
    name: String,
    methods: Vec<MethodInfo>,
    limits: Limits,
}

impl ClassInfo {
    /// A class of this name with these methods, each call of which may take `limits`.
    ///
    /// # Errors
    /// `InvalidArgument` for names that are none, for two methods of one name, and for none or too
    /// many.
    pub fn new(
        name: impl Into<String>,
        methods: impl IntoIterator<Item = (impl Into<String>, MethodKind)>,
        limits: Limits,
    ) -> Result<Self> {
        let name = name.into();
        check_name("class", &name)?;
        let mut methods: Vec<MethodInfo> = methods
            .into_iter()
            .map(|(name, kind)| MethodInfo { name: name.into(), kind })
            .collect();
        methods.sort_by(|a, b| a.name.cmp(&b.name));
        if methods.is_empty() || methods.len() > METHODS_MAX {
            return Err(Error::invalid(format!(
                "class {name} has {} methods: give it 1 to {METHODS_MAX}",
                methods.len()
            )));
        }
        for (index, method) in methods.iter().enumerate() {
            check_name("method", &method.name).map_err(|it| it.context(format!("class {name}")))?;
            if index > 0 && methods[index - 1].name == method.name {
                let what = format!("class {name} has two methods {}: rename one", method.name);
                return Err(Error::invalid(what));
            }
        }
        Ok(Self { name, methods, limits })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its methods, sorted by name.
    pub fn methods(&self) -> &[MethodInfo] {
        &self.methods
    }

    /// What one call may take.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The place of the method of this name.
    ///
    /// # Errors
    /// `NotFound`, with those there are.
    pub fn method(&self, name: &str) -> Result<usize> {
        let found = self.methods.binary_search_by(|method| method.name.as_str().cmp(name));
        found.map_err(|_| {
            let names: Vec<&str> = self.methods.iter().map(|it| it.name.as_str()).collect();
            Error::not_found(format!(
                "class {} has no method \"{}\": it has {}",
                self.name,
                name.escape_debug(),
                names.join(", ")
            ))
        })
    }
}

/// That `text` can be the name of a class or a method; `what` of these it is.
fn check_name(what: &str, text: &str) -> Result<()> {
    let is_fit = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    let begins = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    if begins && text.len() <= NAME_LEN_MAX && text.chars().all(is_fit) {
        return Ok(());
    }
    let shown: String = text.chars().take(NAME_LEN_MAX).collect();
    Err(Error::invalid(format!(
        "\"{}\" cannot be the name of a {what}: give 1 to {NAME_LEN_MAX} letters, digits, dots, \
         hyphens and underscores, a letter or an underscore first",
        shown.escape_debug()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, methods: &[&str]) -> Result<ClassInfo> {
        let methods = methods.iter().map(|name| (*name, MethodKind::Call));
        ClassInfo::new(name, methods, Limits::IN_PLACE)
    }

    #[test]
    fn methods_are_found_by_name_and_else_those_there_are_told() {
        let info = class("zlog", &["write", "fill"]).unwrap();
        assert_eq!(info.methods()[info.method("write").unwrap()].name, "write");
        let error = info.method("trim").unwrap_err();
        assert_eq!(error.kind(), tyr_types::ErrorKind::NotFound);
        assert!(error.message().contains("it has fill, write"), "{error}");
    }

    #[test]
    fn names_that_are_none_are_refused_with_what_is_allowed() {
        for bad in ["", "a/b", "1a", "ä", &"a".repeat(NAME_LEN_MAX + 1)] {
            assert!(class(bad, &["a"]).unwrap_err().message().contains("1 to 64 letters"));
            assert!(class("a", &[bad]).unwrap_err().message().contains("1 to 64 letters"));
        }
        assert!(class("a", &[]).unwrap_err().message().contains("1 to 1024"));
        assert!(class("a", &["b", "b"]).unwrap_err().message().contains("two methods b"));
    }
}
