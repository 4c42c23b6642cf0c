//! How the network is started: bounds, each with its derivation, and what TLS goes by.
//!
//! Must not know: what a connection does with them.

use std::path::PathBuf;
use std::time::Duration;

use tyr_types::{Error, Result, limits};

/// How the network is started. The defaults suit a node as well as a client.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// Threads that read, decode and connect; connections are spread over them. Default 1: it
    /// moves some 400,000 small messages a second, more than a node can commit.
    pub threads: usize,
    /// A message is taken for a connection while at most this many bytes wait on it; else it is
    /// dropped. Default 64 MiB, the largest answer to a read, so that two of them fit, and at most
    /// this and one frame wait.
    pub outbox_len_max: usize,
    /// The same for all connections of clients together, who may be many and slow. Default 1 GiB.
    pub client_outboxes_len_max: usize,
    /// Connections at most, of the control plane too; beyond it clients are refused and nodes are
    /// not. Default 4,096: each holds a read buffer of 64 KiB, which makes 256 MiB.
    pub connections_max: usize,
    /// Connections at most that have not said hello yet; the oldest goes first. Default 1,024, each
    /// with 2 KiB for its hello and some 40 KiB for TLS: about 40 MiB.
    pub waiting_max: usize,
    /// The same from one IP address. Default 128: a rack of clients behind one address may come
    /// back at once, and no address takes more than an eighth of all.
    pub waiting_per_address_max: usize,
    /// How long TLS and hello may take together, on either side. Default 5 s: three repeated
    /// packets on a bad line.
    pub greeting_timeout: Duration,
    /// A peer that does not answer for this long, or does not take what is sent, is given up, be
    /// there traffic or not. Default 10 s; whole seconds.
    pub silence_timeout: Duration,
    /// Who cannot be reached is tried again after this long, then after twice as long, and so on,
    /// each time by chance up to a half more or less. Default 50 ms.
    pub backoff_min: Duration,
    /// The longest such wait. Default 1 s.
    pub backoff_max: Duration,
    /// TLS; without it nothing is encrypted. Default none.
    pub tls: Option<TlsConfig>,
}

/// What nodes are named after in certificates when nobody says otherwise.
pub const TLS_DOMAIN: &str = "tyr.internal";

/// TLS: whose certificates are taken, and which one is shown. All files are PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The certificate that is shown. Who is called has one; who only calls may have none, and is
    /// then refused by nodes that want to see one.
    pub own: Option<OwnCertificate>,
    /// Certificates of the authorities; a peer's certificate is signed by one of them.
    pub authorities: PathBuf,
    /// What node 3's certificate names, unless its address says otherwise: `node-3.` and this; and
    /// this alone too, for the control plane.
    pub domain: String,
    /// Whether who calls may show no certificate. One that is shown has to hold all the same.
    pub may_callers_be_unnamed: bool,
}

/// Files of a certificate to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCertificate {
    /// The certificate, followed by those between it and the authority's, if there are any.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            threads: 1,
            outbox_len_max: limits::READ_LEN_MAX as usize,
            client_outboxes_len_max: 1 << 30,
            connections_max: 4096,
            waiting_max: 1024,
            waiting_per_address_max: 128,
            greeting_timeout: Duration::from_secs(5),
            silence_timeout: Duration::from_secs(10),
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(1),
            tls: None,
        }
    }
}

/// More threads than this only get in each other's way.
const THREADS_MAX: usize = 64;

impl NetworkConfig {
    /// # Errors
    /// `InvalidArgument`, with the range.
    pub(super) fn validate(&self) -> Result<()> {
        if self.threads == 0 || self.threads > THREADS_MAX {
            return Err(Error::invalid(format!(
                "the network has 1 to {THREADS_MAX} threads, not {}",
                self.threads
            )));
        }
        let bounds = [self.connections_max, self.waiting_max, self.waiting_per_address_max];
        if bounds.contains(&0) || self.outbox_len_max == 0 || self.client_outboxes_len_max == 0 {
            return Err(Error::invalid("the network's bounds are at least 1, each"));
        }
        if self.silence_timeout < Duration::from_secs(1) {
            return Err(Error::invalid("a peer is given up after at least 1 s of silence"));
        }
        if self.backoff_min.is_zero() || self.backoff_max < self.backoff_min {
            return Err(Error::invalid(
                "who cannot be reached is tried again after a while: backoff_min is above 0, and \
                 backoff_max not below it",
            ));
        }
        Ok(())
    }
}
