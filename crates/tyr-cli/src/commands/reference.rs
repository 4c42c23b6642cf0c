//! `tyr reference`: prints the reference pages that are made from tables.

use clap::{Args, ValueEnum};

use crate::configuration::page;
use crate::failure::Outcome;
use crate::metrics;
use crate::session::Session;

/// `tyr reference`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr reference metrics > docs/reference/metrics.md")]
pub struct ReferenceArguments {
    /// Which page
    page: Page,
}

/// A page.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Page {
    /// Settings of a node
    Configuration,
    /// Metrics of a node and of the monitoring store
    Metrics,
}

/// Prints the page.
pub fn run(session: &mut Session, arguments: &ReferenceArguments) -> Outcome {
    let text = match arguments.page {
        Page::Configuration => page::page(),
        Page::Metrics => metrics::page::page(),
    };
    session.output.bytes(text.as_bytes())
}
