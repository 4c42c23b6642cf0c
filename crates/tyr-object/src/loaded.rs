//! Classes that can be called here: compiled from their scripts, or part of the program.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr::{Error, ErrorKind, Result};
use tyr_class::{Class, Clock, Limits, LuaClass};

use crate::record::VersionRecord;

/// What a call may take. It waits for reads of a cluster, and so may take longer than one that runs
/// where its object lies.
pub(crate) const LIMITS: Limits = Limits { time: Duration::from_secs(5), ..Limits::IN_PLACE };

/// Classes that are kept compiled, and bytes of their scripts: as many as all of the service
/// metadata has. Above either the one that was not called for longest is compiled anew when it is.
const COMPILED_MAX: usize = 1_024;
const COMPILED_BYTES_MAX: u64 = 64 << 20;

/// A class in Lua, and which script it is.
struct Compiled {
    sha256: String,
    bytes: u64,
    /// When it was called last, as a number that grows.
    called: u64,
    class: Arc<LuaClass>,
}

/// The newest version of each class that was called.
#[derive(Default)]
struct Scripts {
    by_name: HashMap<String, Compiled>,
    bytes: u64,
    calls: u64,
}

impl Scripts {
    /// The class of this name, if that is its script.
    fn find(&mut self, name: &str, sha256: &str) -> Option<Arc<LuaClass>> {
        let found = self.by_name.get_mut(name).filter(|it| it.sha256 == sha256)?;
        self.calls += 1;
        found.called = self.calls;
        Some(Arc::clone(&found.class))
    }

    /// Keeps a class. Answers what goes for it, which is dropped outside of any lock.
    fn keep(&mut self, name: &str, version: &VersionRecord, class: Arc<LuaClass>) -> Vec<Compiled> {
        self.calls += 1;
        let VersionRecord { sha256, bytes, .. } = version.clone();
        self.bytes += bytes;
        let compiled = Compiled { sha256, bytes, called: self.calls, class };
        let mut gone: Vec<_> = self.by_name.insert(name.to_owned(), compiled).into_iter().collect();
        self.bytes -= gone.iter().map(|it| it.bytes).sum::<u64>();
        while self.by_name.len() > COMPILED_MAX || self.bytes > COMPILED_BYTES_MAX {
            let oldest = self.by_name.iter().min_by_key(|(_, it)| it.called);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else { break };
            gone.extend(self.by_name.remove(&oldest).inspect(|it| self.bytes -= it.bytes));
        }
        gone
    }
}

/// Classes by name.
pub(crate) struct Loaded {
    clock: Clock,
    native: Mutex<HashMap<String, Arc<dyn Class>>>,
    compiled: Mutex<Scripts>,
}

impl Default for Loaded {
    fn default() -> Self {
        let begin = Instant::now();
        let clock: Clock = Arc::new(move || begin.elapsed());
        Self { clock, native: Mutex::default(), compiled: Mutex::default() }
    }
}

impl Loaded {
    /// A class that is part of this program.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name.
    pub fn register(&self, class: Arc<dyn Class>) -> Result<()> {
        let name = class.info().name().to_owned();
        let mut native = self.native.lock();
        if native.contains_key(&name) {
            let text = format!("this program has registered a class {name} already");
            return Err(Error::new(ErrorKind::AlreadyExists, text));
        }
        native.insert(name, class);
        Ok(())
    }

    /// The class of this program that has this name.
    pub fn native(&self, name: &str) -> Option<Arc<dyn Class>> {
        self.native.lock().get(name).cloned()
    }

    /// The class of this name that was called last.
    pub fn last(&self, name: &str) -> Option<Arc<dyn Class>> {
        let compiled =
            || Some(Arc::clone(&self.compiled.lock().by_name.get(name)?.class) as Arc<dyn Class>);
        self.native(name).or_else(compiled)
    }

    /// The class that a script is; `name` for one that does not say it.
    ///
    /// # Errors
    /// `InvalidArgument`, with the line and what to do.
    pub fn compile(&self, name: Option<&str>, script: &[u8]) -> Result<LuaClass> {
        let clock = Arc::clone(&self.clock);
        match name {
            Some(name) => LuaClass::compile_handlers(name, script, LIMITS, clock),
            None => LuaClass::compile(script, LIMITS, clock),
        }
    }

    /// The same of a script that nobody has installed yet: what is in it and means nothing is
    /// refused.
    ///
    /// # Errors
    /// As [`Loaded::compile`].
    pub fn compile_new(&self, name: Option<&str>, script: &[u8]) -> Result<LuaClass> {
        let class = self.compile(name, script)?;
        match class.others() {
            [] => Ok(class),
            [first, ..] => Err(Error::invalid(format!(
                "the class has \"{}\", which means nothing: it is a table of \"name\", \
                 \"methods\" and \"tests\"",
                first.escape_debug()
            ))),
        }
    }

    /// This version of a class; `script` answers its script, if it is not compiled yet.
    ///
    /// # Errors
    /// Those of `script`, and as [`Loaded::compile`].
    pub fn version(
        &self,
        name: &str,
        version: &VersionRecord,
        script: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<Arc<LuaClass>> {
        if let Some(found) = self.compiled.lock().find(name, &version.sha256) {
            return Ok(found);
        }
        let class = Arc::new(self.compile(Some(name), &script()?)?);
        let gone = self.compiled.lock().keep(name, version, Arc::clone(&class));
        drop(gone);
        Ok(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls a version whose script is said to have so many bytes; whether it was compiled for it.
    fn call(loaded: &Loaded, name: &str, sha256: &str, bytes: u64) -> bool {
        let sha256 = sha256.to_owned();
        let version = VersionRecord { number: 1, sha256, bytes, is_retired: false };
        let mut is_compiled = false;
        let script = || {
            is_compiled = true;
            let methods = "{ run = { kind = 'call', run = function() end } }";
            Ok(format!("return {{ name = '{name}', methods = {methods} }}").into_bytes())
        };
        loaded.version(name, &version, script).unwrap();
        is_compiled
    }

    #[test]
    fn a_version_is_compiled_once_and_another_takes_its_place() {
        let loaded = Loaded::default();
        assert!(call(&loaded, "one", "a", 100));
        assert!(!call(&loaded, "one", "a", 100));
        assert!(call(&loaded, "one", "b", 70));
        let scripts = loaded.compiled.lock();
        assert_eq!((scripts.by_name.len(), scripts.bytes), (1, 70));
    }

    #[test]
    fn what_is_compiled_has_a_bound_and_what_is_called_stays() {
        let loaded = Loaded::default();
        let large = COMPILED_BYTES_MAX / 3;
        for name in ["one", "two", "three"] {
            assert!(call(&loaded, name, "a", large));
        }
        assert!(!call(&loaded, "one", "a", large));
        assert!(call(&loaded, "four", "a", large));
        assert!(!call(&loaded, "one", "a", large), "it was called after `two`");
        assert!(call(&loaded, "two", "a", large));
        assert_eq!(loaded.compiled.lock().by_name.len(), 3);
    }
}
