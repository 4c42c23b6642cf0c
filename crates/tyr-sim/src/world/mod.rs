//! The run itself: what happens next, in simulated time.

use crate::report::Report;
use crate::setup::Setup;

/// Runs it to its end.
pub fn run(setup: Setup) -> Report {
    let _ = setup;
    Report::default()
}
