//! How the command line reaches the monitors of a cluster.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tyr::{Error, ErrorKind};
use tyr_client::TlsOptions;
use tyr_control::{ClientOptions, MetadataClient, Sender};
use tyr_metadata::{self as metadata, Expected, Transaction};
use tyr_net::Dialer;
use tyr_net::access::{self, Key};

use crate::failure::{Failure, Outcome};
use crate::session::{Session, address};

/// How long the monitors have to answer, unless the address says otherwise: longer than it takes
/// them to find a new leader.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often a change is tried that met another one.
const ATTEMPTS: usize = 8;

/// A way to the monitors.
pub struct Connection {
    runtime: Runtime,
    client: MetadataClient,
}

/// Who asks where.
#[derive(Debug, Default, PartialEq, Eq)]
struct Target {
    addresses: Vec<String>,
    user: Option<String>,
    key_file: Option<String>,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    tls: TlsOptions,
}

impl Connection {
    /// To the cluster that `--data` names.
    ///
    /// # Errors
    /// `Usage` when it names none.
    pub fn open(session: &Session) -> Outcome<Self> {
        let data = session.data()?;
        let Some(target) = address(&data) else {
            return Err(Failure::Usage(format!(
                "{} is a directory, and this is about a cluster: say --data tyr://HOST:PORT, or \
                 set TYR_DATA to that",
                data.display()
            )));
        };
        let target = Target::parse(target)?;
        let patience = target.patience();
        let user = target.user.unwrap_or_default();
        let token = match &target.key_file {
            Some(file) => access::token(&user, &read_key(Path::new(file))?),
            None => String::new(),
        };
        let options = ClientOptions {
            sender: Sender::User(user),
            token,
            patience,
            ..ClientOptions::at(&target.addresses)
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::io("cannot wait for answers", error))?;
        let tls = target.tls.or(TlsOptions::from_environment()).config()?;
        let client = MetadataClient::new(options, Arc::new(Dialer::new(tls.as_ref())?))?;
        Ok(Self { runtime, client })
    }

    /// Asks.
    ///
    /// # Errors
    /// What the monitors answer, or that they do not.
    pub fn ask<T, F>(&self, ask: impl FnOnce(MetadataClient) -> F) -> Outcome<T>
    where
        F: Future<Output = tyr::Result<T>>,
    {
        Ok(self.runtime.block_on(ask(self.client.clone()))?)
    }

    /// Changes an entry, whatever others change meanwhile: `change` sees what is there, and answers
    /// what is to be there (`None`: nothing), and what the caller wants to know.
    ///
    /// # Errors
    /// As [`Connection::ask`], and what `change` says.
    pub fn change<T>(
        &self,
        path: &metadata::Path,
        change: impl Fn(Option<&[u8]>) -> Outcome<(Option<Vec<u8>>, T)>,
    ) -> Outcome<T> {
        let mut attempt = 1;
        loop {
            let place = path.clone();
            let entry = self.ask(|client| async move { client.get(place).await })?;
            let (value, answer) = change(entry.as_ref().map(|entry| &entry.value[..]))?;
            let expected =
                entry.map_or(Expected::Absent, |entry| Expected::Revision(entry.changed));
            let transaction = Transaction::new().when(path.clone(), expected);
            let transaction = match value {
                Some(value) => transaction.put(path.clone(), value),
                None => transaction.delete(path.clone()),
            };
            let changed = self.ask(|client| async move { client.transact(transaction).await });
            match changed {
                Err(Failure::Store(error))
                    if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                }
                other => return other.map(|_| answer),
            }
        }
    }
}

impl Target {
    /// How long the monitors have to answer: as for connections that data goes over.
    fn patience(&self) -> Duration {
        let least = self.timeout.map_or(PATIENCE, |timeout| timeout.min(PATIENCE));
        self.connect_timeout.unwrap_or(least)
    }

    /// `host:port,host:port/?user=alice&key_file=alice.key`
    fn parse(text: &str) -> Outcome<Self> {
        let (places, options) = text.split_once('?').unwrap_or((text, ""));
        let places = places.strip_suffix('/').unwrap_or(places).split(',');
        let addresses: Vec<String> = places.map(|place| place.trim().to_owned()).collect();
        let is_place = |place: &String| {
            let parts = place.rsplit_once(':');
            parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        if let Some(wrong) = addresses.iter().find(|place| !is_place(place)) {
            return Err(Failure::Usage(format!(
                "\"{}\" is not HOST:PORT; a cluster is named tyr://HOST:PORT,HOST:PORT",
                wrong.escape_debug()
            )));
        }
        let mut target = Self { addresses, ..Self::default() };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "user" => target.user = Some(value.to_owned()),
                "key_file" => target.key_file = Some(value.to_owned()),
                "timeout" => target.timeout = Some(read_time(name, value)?),
                "connect_timeout" => target.connect_timeout = Some(read_time(name, value)?),
                _ if target.tls.take(name, value) => {}
                other => {
                    return Err(Failure::Usage(format!(
                        "an address has the options user, key_file, timeout, connect_timeout, \
                         tls_ca, tls_certificate, tls_key and tls_domain, not \"{}\"",
                        other.escape_debug()
                    )));
                }
            }
        }
        match (&target.user, &target.key_file) {
            (Some(_), Some(_)) | (None, None) => Ok(target),
            (Some(_), None) | (None, Some(_)) => Err(Failure::Usage(
                "an address has user and key_file, or neither; with the cluster's own secret the \
                 user is root"
                    .to_owned(),
            )),
        }
    }
}

/// A time as the addresses of the library have it.
fn read_time(name: &str, text: &str) -> Outcome<Duration> {
    let units = [("ms", 1), ("s", 1000)];
    let read = units.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*ms).map(Duration::from_millis)
    });
    read.ok_or_else(|| {
        let text = text.escape_debug();
        Failure::Usage(format!("{name} is a time like 500ms or 10s, not \"{text}\""))
    })
}

fn read_key(path: &Path) -> Outcome<Key> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::io(format!("the key in {}", path.display()), error))?;
    Ok(Key::of(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_nodes_and_perhaps_a_user_with_a_key() {
        let target = Target::parse("a:7070,b:7070/?user=alice&key_file=k&timeout=5s").unwrap();
        assert_eq!(target.addresses, ["a:7070", "b:7070"]);
        assert_eq!(
            (target.user.as_deref(), target.key_file.as_deref()),
            (Some("alice"), Some("k"))
        );
        assert_eq!(target.patience(), Duration::from_secs(5));
        assert!(matches!(Target::parse("a:7070?timeout=soon"), Err(Failure::Usage(_))));
        assert_eq!(Target::parse("[::1]:7070").unwrap().patience(), PATIENCE);
        assert_eq!(Target::parse("[::1]:7070").unwrap().addresses, ["[::1]:7070"]);
        let target = Target::parse("a:7070/?tls_ca=ca.pem&tls_domain=example.org").unwrap();
        assert_eq!(target.tls.authorities.as_deref(), Some(Path::new("ca.pem")));
        assert_eq!(target.tls.domain.as_deref(), Some("example.org"));
        for bad in ["", "a", "a:b", ":7", "a:7,,b:7", "a:7?user=alice", "a:7?key_file=k", "a:7?x=1"]
        {
            assert!(matches!(Target::parse(bad), Err(Failure::Usage(_))), "{bad}");
        }
    }
}
