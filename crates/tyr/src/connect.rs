//! Connecting to a cluster: its address as text, and what else can be said.

use std::path::PathBuf;
use std::time::Duration;

use tyr_client::{Client, ClientConfig, TlsOptions};
use tyr_net::access::Key;
use tyr_types::{Error, Result};

use crate::backend::Backend;
use crate::offload::offload;
use crate::{Tyr, blocking};

/// How an address may begin.
const SCHEME: &str = "tyr://";

/// How a cluster is connected to; see [`Tyr::connect_options`].
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    user: Option<String>,
    key: Option<Secret>,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    tls: TlsOptions,
}

/// Where a user's key is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Secret {
    Known(Key),
    In(PathBuf),
}

impl ConnectOptions {
    /// Who connects, with the key that an administrator gave out (`tyr user add`). Default nobody:
    /// a cluster without a secret asks for none.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, key: impl AsRef<str>) -> Self {
        self.user = Some(name.into());
        self.key = Some(Secret::Known(Key::of(key.as_ref())));
        self
    }

    /// The same with the key in a file.
    #[must_use]
    pub fn user_with_key_file(mut self, name: impl Into<String>, key: impl Into<PathBuf>) -> Self {
        self.user = Some(name.into());
        self.key = Some(Secret::In(key.into()));
        self
    }

    /// How long a call may take; default and most 30 s. A read that takes longer is `Unavailable`;
    /// a commit is `TimedOut`, and [`Tyr::outcome`] tells what became of it.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long to try to connect; default 15 s, or what a call may take, if that is less.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// Encrypts everything, and speaks only to nodes whose certificate an authority in this file
    /// signed (PEM). Default none: nothing is encrypted. In an address `tls_ca`.
    #[must_use]
    pub fn tls_ca(mut self, authorities: impl Into<PathBuf>) -> Self {
        self.tls.authorities = Some(authorities.into());
        self
    }

    /// The certificate that nodes are shown, with its private key (PEM); nodes want to see one
    /// unless they are told otherwise. In an address `tls_certificate` and `tls_key`.
    #[must_use]
    pub fn tls_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.tls.certificate = Some(certificate.into());
        self.tls.key = Some(key.into());
        self
    }

    /// What the certificates of nodes name, the nodes' setting `tls_domain`; default
    /// `tyr.internal`. In an address `tls_domain`.
    #[must_use]
    pub fn tls_domain(mut self, domain: impl Into<String>) -> Self {
        self.tls.domain = Some(domain.into());
        self
    }

    /// Takes from the environment what was not said of TLS before: `TYR_TLS_CA`,
    /// `TYR_TLS_CERTIFICATE`, `TYR_TLS_KEY` and `TYR_TLS_DOMAIN`. What the address says counts
    /// before all.
    #[must_use]
    pub fn tls_from_environment(mut self) -> Self {
        self.tls = self.tls.or(TlsOptions::from_environment());
        self
    }

    /// Connects to the cluster at this address.
    ///
    /// # Errors
    /// As [`Tyr::connect`].
    pub async fn connect(self, address: impl AsRef<str>) -> Result<Tyr> {
        let address = address.as_ref().to_owned();
        offload(move || self.connect_blocking(address)).await.map(Tyr::from_blocking)
    }

    /// The same for threads.
    ///
    /// # Errors
    /// As [`Tyr::connect`].
    pub fn connect_blocking(self, address: impl AsRef<str>) -> Result<blocking::Tyr> {
        let (options, addresses) = self.read(address.as_ref())?;
        let client = Client::connect(&options.of_client(addresses)?)?;
        Ok(blocking::Tyr { backend: Backend::Remote(client) })
    }

    /// The addresses in `text`, and the options with those in it, which come first.
    fn read(mut self, text: &str) -> Result<(Self, Vec<String>)> {
        let bare = text.strip_prefix(SCHEME).unwrap_or(text);
        let (places, options) = bare.split_once('?').unwrap_or((bare, ""));
        let places = places.strip_suffix('/').unwrap_or(places);
        let addresses: Vec<String> = places.split(',').map(|it| it.trim().to_owned()).collect();
        if let Some(wrong) = addresses.iter().find(|address| !is_address(address)) {
            return Err(Error::invalid(format!(
                "\"{wrong}\" in \"{text}\" is no address: write tyr://host:port, or several with \
                 commas between, tyr://one:7070,other:7070"
            )));
        }
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match name {
                "user" => self.user = Some(value.to_owned()),
                "key_file" => self.key = Some(Secret::In(value.into())),
                "timeout" => self.timeout = Some(duration(name, value)?),
                "connect_timeout" => self.connect_timeout = Some(duration(name, value)?),
                _ if self.tls.take(name, value) => {}
                _ => {
                    return Err(Error::invalid(format!(
                        "an address has the options user, key_file, timeout, connect_timeout, \
                         tls_ca, tls_certificate, tls_key and tls_domain, not \"{name}\""
                    )));
                }
            }
        }
        Ok((self, addresses))
    }

    fn of_client(self, addresses: Vec<String>) -> Result<tyr_client::ConnectOptions> {
        let mut options = tyr_client::ConnectOptions::at(addresses);
        options.tls = self.tls.config()?;
        options.user = match (self.user, self.key) {
            (None, None) => None,
            (Some(user), Some(key)) => Some((user, key.read()?)),
            (Some(user), None) => {
                return Err(Error::invalid(format!("user {user} has no key; give it too")));
            }
            (None, Some(_)) => return Err(Error::invalid("a key is of a user; give both")),
        };
        let timeout = self.timeout.unwrap_or(options.config.timeout);
        options.config = ClientConfig { timeout, ..options.config };
        let connect_timeout = options.connect_timeout.min(timeout);
        options.connect_timeout = self.connect_timeout.unwrap_or(connect_timeout);
        Ok(options)
    }
}

impl Secret {
    fn read(self) -> Result<Key> {
        match self {
            Self::Known(key) => Ok(key),
            Self::In(path) => match std::fs::read_to_string(&path) {
                Ok(text) => Ok(Key::of(&text)),
                Err(error) => {
                    Err(Error::io(format!("cannot read the key in {}", path.display()), error))
                }
            },
        }
    }
}

/// Whether it is a host, a colon and a port.
fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| {
        let is_host =
            !host.is_empty() && !host.contains(|it: char| it == '/' || it.is_whitespace());
        is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

/// A time: digits, then `ms` or `s`.
fn duration(name: &str, text: &str) -> Result<Duration> {
    let units = [("ms", 1), ("s", 1000)];
    let parsed = units.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*ms).map(Duration::from_millis)
    });
    parsed.ok_or_else(|| {
        Error::invalid(format!("{name} is a time like 500ms or 10s, not \"{text}\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_types::ErrorKind;

    fn read(text: &str) -> (ConnectOptions, Vec<String>) {
        ConnectOptions::default().timeout(Duration::from_secs(9)).read(text).unwrap()
    }

    #[test]
    fn addresses_are_read_with_and_without_scheme_and_options() {
        let three = ["one:7070", "10.0.0.2:7071", "[::1]:7072"];
        for text in
            ["tyr://one:7070,10.0.0.2:7071,[::1]:7072/", "one:7070, 10.0.0.2:7071,[::1]:7072"]
        {
            let (options, addresses) = read(text);
            assert_eq!(addresses, three);
            assert_eq!(options.timeout, Some(Duration::from_secs(9)));
        }
        let text = "tyr://one:1/?user=ann&key_file=/k&timeout=500ms&connect_timeout=3s";
        let (options, addresses) = read(text);
        assert_eq!(addresses, ["one:1"]);
        assert_eq!(options.user.as_deref(), Some("ann"));
        assert_eq!(options.key, Some(Secret::In("/k".into())));
        assert_eq!(options.timeout, Some(Duration::from_millis(500)));
        assert_eq!(options.connect_timeout, Some(Duration::from_secs(3)));
    }

    #[test]
    fn what_an_address_says_of_tls_counts_before_the_options() {
        let options = ConnectOptions::default().tls_ca("/ca").tls_certificate("/c", "/k");
        let address = "tyr://one:1/?tls_ca=/other&tls_domain=example.org";
        let (options, addresses) = options.read(address).unwrap();
        let tls = options.of_client(addresses).unwrap().tls.unwrap();
        assert_eq!((tls.authorities, tls.domain), ("/other".into(), "example.org".to_owned()));
        assert_eq!(tls.own.unwrap().key, PathBuf::from("/k"));
    }

    #[test]
    fn what_is_no_address_or_option_is_refused_by_name() {
        for (text, named) in [
            ("", "\"\""),
            ("tyr://host", "host"),
            ("one:1,,two:2", "\"\""),
            ("one:99999", "one:99999"),
            ("http://one:80", "http"),
            ("one:1?colour=red", "colour"),
            ("one:1?timeout=soon", "soon"),
        ] {
            let error = ConnectOptions::default().read(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.message().contains(named), "{error}");
        }
    }

    #[test]
    fn connecting_takes_no_longer_than_a_call_unless_that_is_said() {
        let waits = |text: &str| {
            let (options, addresses) = ConnectOptions::default().read(text).unwrap();
            options.of_client(addresses).unwrap().connect_timeout.as_secs()
        };
        assert_eq!(waits("one:1"), 15);
        assert_eq!(waits("one:1?timeout=5s"), 5);
        assert_eq!(waits("one:1?timeout=20s"), 15);
        assert_eq!(waits("one:1?timeout=5s&connect_timeout=9s"), 9);
    }

    #[test]
    fn a_user_needs_a_key_and_a_key_a_user() {
        let one = || vec!["one:1".to_owned()];
        let (alone, _) = read("one:1?user=ann");
        assert!(alone.of_client(one()).is_err());
        let (missing, _) = read("one:1?user=ann&key_file=/nowhere/key");
        let error = missing.of_client(one()).unwrap_err();
        assert!(error.message().contains("/nowhere/key"), "{error}");
        let both = ConnectOptions::default().user("ann", "0123").of_client(one()).unwrap();
        assert_eq!(both.user, Some(("ann".to_owned(), Key::of("0123"))));
    }
}
