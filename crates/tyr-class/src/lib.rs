//! Object classes: named methods that run beside one blob, atomically, in Lua or in Rust.
//!
//! ```text
//!   call ──► Class::run      a method, within limits
//!              │  LuaClass      a script in a virtual machine
//!              │  others        in Rust
//!              ▼
//!            Context            the blob, as it stands still for the call
//!              ▼
//!            Map                keys and values, in the bytes of a companion blob
//! ```
//!
//! Who runs a call, where, and in which transaction is not said here: a node does it for clients, a
//! program in a transaction of its own, a test in memory. There is no clock, thread or file here
//! either.
//!
//! Reading order: [`class`] says what a class is, [`context`] what a method sees, [`failure`] how
//! it fails, [`call`](mod@call) how it is kept within [`limits`], [`draft`] how what a failed call
//! wrote is nowhere; [`object`] how what a call did becomes operations of a transaction, [`batch`]
//! how that is done for several at once; [`map`] has keys and values, [`lua`] the classes in Lua,
//! [`testing`] a blob in memory.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use tyr_class::testing::MemoryContext;
//! use tyr_class::{Limits, LuaClass};
//!
//! let script = br#"
//!     return { name = "register", methods = {
//!         set = { kind = "call", run = function(cx, blob, input)
//!             if blob:size() > 0 then cx:fail("AlreadyExists", "it is set") end
//!             blob:write(0, input)
//!         end } } }"#;
//! let clock = Arc::new(|| Duration::ZERO);
//! let class = LuaClass::compile(script, Limits::IN_PLACE, clock)?;
//! let mut blob = MemoryContext::new();
//! blob.call(&class, "set", b"one")?;
//! let failure = blob.call(&class, "set", b"two").unwrap_err();
//! assert_eq!(failure.text(), "it is set");
//! # Ok::<(), tyr_types::Error>(())
//! ```

pub mod batch;
pub mod call;
pub mod class;
pub mod context;
pub mod draft;
pub mod failure;
pub mod limits;
pub mod lua;
pub mod map;
pub mod object;
pub mod testing;

pub use batch::Batch;
pub use call::call;
pub use class::{Class, ClassInfo, MethodInfo, MethodKind};
pub use context::{Companion, Context, LogLevel};
pub use draft::Draft;
pub use failure::{Failure, Limit};
pub use limits::Limits;
pub use lua::{Clock, LuaClass};
pub use map::{Map, Region};
pub use object::{Access, Blobs, COMPANION, Object, Occasion};
pub use tyr_types::TransactionId;
