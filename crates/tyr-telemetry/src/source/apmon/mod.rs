//! ApMon: what MonALISA's clients send, XDR in UDP datagrams.
//!
//! The datagram's cluster and node become cluster and host; site and job are the receiver's to
//! say, because the format has neither.
//!
//! Nobody hears of a datagram that is lost, so everything is counted: [`socket`] is where the
//! kernel drops, [`receiver`] carries what it does not drop to the intake, [`datagram`] reads it,
//! and [`counts`] says what became of all.

mod counts;
mod datagram;
mod receiver;
mod socket;

pub use counts::{DatagramCounts, Meter, RefusedDatagrams, RefusedValues};
pub use datagram::{Datagram, MalformedDatagram, Parameter, Value, decode};
pub use receiver::Receiver;
pub use socket::ReceiveBuffer;

/// The port that MonALISA's receivers listen on.
pub const PORT: u16 = 8884;

/// How datagrams are named and admitted.
#[derive(Clone, Debug)]
pub struct ApmonOptions {
    /// The site of all senders. Default `apmon`.
    pub site: String,
    /// The job of all senders. Default `apmon`.
    pub job: String,
    /// What senders must know; default nothing. It travels in the clear, as in MonALISA: it keeps
    /// strays out, not attackers.
    pub password: Option<String>,
}

impl Default for ApmonOptions {
    fn default() -> Self {
        Self { site: "apmon".to_owned(), job: "apmon".to_owned(), password: None }
    }
}

#[cfg(test)]
mod tests;
