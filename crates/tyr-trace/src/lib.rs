//! Traces of transactions through their chains, as OpenTelemetry has them: an option of a node.
//!
//! ```text
//!   engine ──what passes──► Watch ──spans that ended──► Outbox ──batches──► Exporter ──► collector
//!                             │                        (bounded)          (its own thread)
//!                          Sampling: is it one of those?
//! ```
//!
//! Nothing of it travels between nodes, and nothing waits for it. The id of a trace is the
//! transaction's, the id of a span is computed from node and transaction, and which transactions
//! are traced is a hash of their ids: so all nodes trace the same ones, and each knows the head's
//! span without being told. Whatever is too much is dropped and counted.
//!
//! Reading order: [`sampling`], [`span`], [`watch`] are pure; [`outbox`] is where a span leaves the
//! engine's lock; [`endpoint`] says where the collector is, [`otlp`] how spans look to it,
//! [`collector`] speaks HTTP with it, [`exporter`] does so again and again.

mod collector;
pub mod endpoint;
mod exporter;
mod otlp;
mod outbox;
mod sampling;
mod span;
mod watch;

use std::sync::Arc;

use tyr_types::{NodeId, Result};

pub use self::endpoint::Endpoint;
pub use self::exporter::Exporter;
pub use self::outbox::Outbox;
pub use self::outbox::TraceStatistics;
use self::sampling::Sampling;
pub use self::watch::Watch;

/// Which transactions a node traces, and where to.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceOptions {
    /// The collector.
    pub endpoint: Endpoint,
    /// The part of all transactions that is traced, 0 to 1; the same at all nodes, or chains are
    /// seen in part.
    pub ratio: f64,
}

impl TraceOptions {
    /// Whether they make sense.
    ///
    /// # Errors
    /// `InvalidArgument` when the ratio is out of its range.
    pub fn validate(&self) -> Result<()> {
        Sampling::new(self.ratio).map(drop)
    }
}

/// What watches the engine of a node, and the thread that sends what it saw.
///
/// # Errors
/// `InvalidArgument` as [`TraceOptions::validate`] has it; `Unavailable` when there is no thread.
pub fn start(node: NodeId, options: &TraceOptions) -> Result<(Watch, Exporter)> {
    let outbox = Arc::new(Outbox::new());
    let watch = Watch::new(node, Sampling::new(options.ratio)?, Arc::clone(&outbox));
    Ok((watch, Exporter::start(node, options, outbox)?))
}

#[cfg(test)]
mod tests;
