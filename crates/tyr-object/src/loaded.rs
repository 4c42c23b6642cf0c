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

/// A class in Lua, and which script it is.
struct Compiled {
    sha256: String,
    class: Arc<LuaClass>,
}

/// Classes by name.
pub(crate) struct Loaded {
    clock: Clock,
    native: Mutex<HashMap<String, Arc<dyn Class>>>,
    /// The newest version of each that was called.
    compiled: Mutex<HashMap<String, Compiled>>,
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
            || Some(Arc::clone(&self.compiled.lock().get(name)?.class) as Arc<dyn Class>);
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
        let is_it = |compiled: &&Compiled| compiled.sha256 == version.sha256;
        if let Some(found) = self.compiled.lock().get(name).filter(is_it) {
            return Ok(Arc::clone(&found.class));
        }
        let class = Arc::new(self.compile(Some(name), &script()?)?);
        let compiled = Compiled { sha256: version.sha256.clone(), class: Arc::clone(&class) };
        self.compiled.lock().insert(name.to_owned(), compiled);
        Ok(class)
    }
}
