//! A blob in memory to try classes with, and the tests that a class brings.
//!
//! ```text
//!   MemoryContext ── a blob and its companion; a call that fails leaves it as it was
//!   run_tests     ── each test of a class beside a blob of its own
//! ```

mod memory;
mod outcome;

pub use memory::MemoryContext;
pub use outcome::{TestOutcome, run_tests};
