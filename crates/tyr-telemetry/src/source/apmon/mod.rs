//! ApMon: what MonALISA's clients send, XDR in UDP datagrams.
//!
//! The datagram's cluster and node become cluster and host; site and job are the receiver's to
//! say, because the format has neither.

mod datagram;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::net::UdpSocket;

pub use datagram::{Datagram, MalformedDatagram, Parameter, Value, decode};

use super::now_us;
use crate::intake::Intake;
use crate::series::Measurement;

/// The port that MonALISA's receivers listen on.
pub const PORT: u16 = 8884;

/// Datagrams being recorded at once; further ones wait in the socket's buffer.
const RECEIVERS: usize = 16;

/// The largest UDP datagram.
const DATAGRAM_LEN_MAX: usize = 65_535;

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

/// Records what arrives at the socket, until it is dropped.
pub async fn serve(socket: UdpSocket, intake: Arc<Intake>, options: ApmonOptions) {
    join_all((0..RECEIVERS).map(|_| receive(&socket, &intake, &options))).await;
}

async fn receive(socket: &UdpSocket, intake: &Intake, options: &ApmonOptions) {
    let mut buffer = vec![0; DATAGRAM_LEN_MAX];
    loop {
        match socket.recv_from(&mut buffer).await {
            Ok((len, sender)) => {
                record(&buffer[..len], intake, options, now_us(), &sender).await;
            }
            Err(error) => {
                intake.fail(1, format_args!("cannot receive: {error}"));
                // A broken socket must not turn this loop into a hot one.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn record(
    bytes: &[u8],
    intake: &Intake,
    options: &ApmonOptions,
    now_us: i64,
    sender: &std::net::SocketAddr,
) {
    let datagram = match decode(bytes, options.password.as_deref()) {
        Ok(datagram) => datagram,
        Err(error) => return intake.refuse(1, format_args!("datagram from {sender}: {error}")),
    };
    let measurements = measurements(&datagram, options, now_us);
    intake.ignore((datagram.parameters.len() - measurements.len()) as u64);
    intake.record(&measurements).await;
}

/// The datagram's numbers, as measurements.
fn measurements<'a>(
    datagram: &'a Datagram,
    options: &'a ApmonOptions,
    now_us: i64,
) -> Vec<Measurement<'a>> {
    let parameters = datagram.parameters.iter().filter_map(|parameter| match parameter.value {
        Value::Number(value) => Some((parameter.name.as_str(), value)),
        Value::Text => None,
    });
    parameters
        .map(|(parameter, value)| Measurement {
            site: &options.site,
            cluster: &datagram.cluster,
            host: &datagram.node,
            parameter,
            job: &options.job,
            time_us: datagram.time_us.unwrap_or(now_us),
            value,
        })
        .collect()
}

#[cfg(test)]
mod tests;
