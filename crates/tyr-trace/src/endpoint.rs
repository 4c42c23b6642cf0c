//! Where a collector takes traces: the base address, as exporters of OpenTelemetry have it.

use tyr_types::{Error, Result};

/// The path at which a collector takes traces, after that of its base address.
const TRACES_PATH: &str = "/v1/traces";

/// The base address of a collector that takes OTLP over HTTP: `http://host:port`, perhaps with a
/// path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    authority: String,
    /// Begins with a slash.
    path: String,
}

impl Endpoint {
    /// Reads `http://host:port` or `http://host:port/path`.
    ///
    /// # Errors
    /// `InvalidArgument` when it is neither; the text is to follow what was given.
    pub fn parse(text: &str) -> Result<Self> {
        if text.starts_with("https://") {
            return Err(Error::invalid(
                "has TLS, which a node does not speak to a collector: run one beside the node, \
                 and let that one pass the traces on",
            ));
        }
        let bad = || Error::invalid("is not http://host:port");
        let rest = text.strip_prefix("http://").ok_or_else(bad)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = authority.rsplit_once(':').ok_or_else(bad)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
        let host = match host.strip_prefix('[') {
            Some(address) => address.strip_suffix(']').filter(|it| is_made_of(it, ":.")),
            None => Some(host).filter(|it| is_made_of(it, "-._")),
        };
        let host = host.ok_or_else(bad)?.to_owned();
        let path = path.trim_end_matches('/');
        if !path.is_empty() && !is_made_of(path, "/-._~%") {
            return Err(bad());
        }
        let (authority, path) = (authority.to_owned(), format!("{path}{TRACES_PATH}"));
        Ok(Self { host, port, authority, path })
    }

    /// The host, a name or an address without brackets.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Host and port, as HTTP wants them.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// The path for traces.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

/// Whether it is not empty, and has letters, digits and these signs only.
fn is_made_of(text: &str, signs: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_address_gets_the_path_for_traces() {
        let parts = |text| {
            let it = Endpoint::parse(text).unwrap();
            (it.host, it.port, it.authority, it.path)
        };
        let own = |host: &str, port, authority: &str, path: &str| {
            (host.to_owned(), port, authority.to_owned(), path.to_owned())
        };
        let plain = own("otel.lan", 4318, "otel.lan:4318", "/v1/traces");
        assert_eq!(parts("http://otel.lan:4318"), plain);
        assert_eq!(parts("http://otel.lan:4318/"), plain);
        assert_eq!(parts("http://[::1]:80/a/b/"), own("::1", 80, "[::1]:80", "/a/b/v1/traces"));
    }

    #[test]
    fn what_is_no_base_address_is_refused() {
        let kind = |text| Endpoint::parse(text).unwrap_err().kind();
        for text in [
            "",
            "otel:4318",
            "http://",
            "http://otel",
            "http://otel:0",
            "http://otel:99999",
            "http://:4318",
            "http://::1:4318",
            "http://[::1:4318",
            "http://me@otel:4318",
            "http://otel:4318/a?b",
            "http://otel:4318/a b",
            "grpc://otel:4317",
        ] {
            assert_eq!(kind(text), tyr_types::ErrorKind::InvalidArgument, "{text}");
        }
        let error = Endpoint::parse("https://otel:4318").unwrap_err();
        assert!(error.message().contains("TLS"), "{error}");
    }
}
