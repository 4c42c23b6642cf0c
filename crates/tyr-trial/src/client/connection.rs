//! The product's client, as any program has it.

use std::sync::Arc;
use std::time::Duration;

use tyr_client::{Client, ClientConfig, ConnectOptions};
use tyr_protocol::wire::LEVEL;
use tyr_types::Result;

use crate::cluster::Control;

/// How long a call of a trial's client may take.
pub const TIMEOUT: Duration = Duration::from_secs(8);

/// A client of the cluster that the control asks.
///
/// # Errors
/// `Unavailable` when nobody answers.
pub fn connect(control: &Control) -> Result<Arc<Client>> {
    connect_speaking(LEVEL, control)
}

/// The same of a client that speaks this feature level.
///
/// # Errors
/// As [`connect`].
pub fn connect_speaking(level: u8, control: &Control) -> Result<Arc<Client>> {
    let mut options = ConnectOptions::at(control.addresses().to_vec());
    options.config = ClientConfig { timeout: TIMEOUT, ..ClientConfig::default() };
    options.level = level;
    Client::connect(&options)
}
