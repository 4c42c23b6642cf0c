//! The classes of a log, each in Lua and in Rust: `zlog` of its storage objects, and `zlog_view` of
//! its head.
//!
//! ```text
//!   zlog        init, read, write, fill, trim, seal, max_position     zlog.lua │ object.rs
//!   zlog_view   create_view, read_views                          zlog_view.lua │ views.rs
//! ```
//!
//! Both kinds do the same with the same bytes, so that some clients of a log may call the installed
//! scripts, and others what is in their program. Here is what they say to each other; what epochs
//! and views are for is not known here.

mod input;
mod native;
mod object;
mod refusal;
mod views;

use std::sync::Arc;

use tyr_class::Class;

pub use self::input::Fields;
pub use self::native::NativeClass;
pub use self::object::object_class;
pub use self::refusal::Refusal;
pub use self::views::view_class;

/// The script of the class of storage objects.
pub const OBJECT_SCRIPT: &str = include_str!("zlog.lua");

/// The script of the class of heads.
pub const VIEW_SCRIPT: &str = include_str!("zlog_view.lua");

/// The name of the class of storage objects.
pub const OBJECT_CLASS: &str = "zlog";

/// The name of the class of heads.
pub const VIEW_CLASS: &str = "zlog_view";

/// Bytes of an entry: what a method may answer.
pub const ENTRY_LEN_MAX: usize = 64 << 10;

/// Bytes of a view: two of them fit an answer.
pub const VIEW_LEN_MAX: usize = 32 << 10;

/// Positions, epochs and offsets are below it: a number of Lua is exact up to there.
pub const NUMBER_END: u64 = 1 << 53;

/// Slots of an object, and the step between positions of two of them.
pub const SLOTS_MAX: u64 = 65_536;

/// Both classes, in Rust.
pub fn native() -> [Arc<dyn Class>; 2] {
    [Arc::new(object_class()), Arc::new(view_class())]
}
