//! What somebody who connects says of TLS: by options, in an address, or by variables.
//!
//! TLS is spoken as soon as an authority is named. Must not know: what is in the files.

use std::ffi::OsString;
use std::path::PathBuf;

use tyr_types::{Error, Result};

use tyr_net::{OwnCertificate, TLS_DOMAIN, TlsConfig};

/// What is said of TLS, as far as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificates of the authorities, one of which signed those of the nodes; PEM.
    pub authorities: Option<PathBuf>,
    /// The certificate that nodes are shown, PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
    /// What certificates of nodes name; by default [`TLS_DOMAIN`].
    pub domain: Option<String>,
}

impl TlsOptions {
    /// Takes an option of an address; false when it is about something else.
    pub fn take(&mut self, name: &str, value: &str) -> bool {
        match name {
            "tls_ca" => self.authorities = Some(value.into()),
            "tls_certificate" => self.certificate = Some(value.into()),
            "tls_key" => self.key = Some(value.into()),
            "tls_domain" => self.domain = Some(value.to_owned()),
            _ => return false,
        }
        true
    }

    /// What the environment says: `TYR_TLS_CA`, `TYR_TLS_CERTIFICATE`, `TYR_TLS_KEY` and
    /// `TYR_TLS_DOMAIN`. Empty ones say nothing.
    pub fn from_environment() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(read: impl Fn(&str) -> Option<OsString>) -> Self {
        let read = |name| read(name).filter(|value| !value.is_empty());
        let path = |name| read(name).map(PathBuf::from);
        Self {
            authorities: path("TYR_TLS_CA"),
            certificate: path("TYR_TLS_CERTIFICATE"),
            key: path("TYR_TLS_KEY"),
            domain: read("TYR_TLS_DOMAIN").and_then(|name| name.into_string().ok()),
        }
    }

    /// What this says, and of what it does not say anything about, the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            authorities: self.authorities.or(other.authorities),
            certificate: self.certificate.or(other.certificate),
            key: self.key.or(other.key),
            domain: self.domain.or(other.domain),
        }
    }

    /// How TLS is to be spoken; `None` when it is not.
    ///
    /// # Errors
    /// `InvalidArgument` when something else is said and no authority, or a certificate without
    /// its key: nobody who meant to encrypt goes on in the clear.
    pub fn config(self) -> Result<Option<TlsConfig>> {
        let Self { authorities, certificate, key, domain } = self;
        let own = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(OwnCertificate { certificate, key }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err(Error::invalid(
                    "a certificate is shown with its key: give tls_certificate and tls_key \
                     (TYR_TLS_CERTIFICATE and TYR_TLS_KEY), or neither",
                ));
            }
        };
        let Some(authorities) = authorities else {
            return match (own, domain) {
                (None, None) => Ok(None),
                (Some(_), _) | (None, Some(_)) => Err(Error::invalid(
                    "TLS needs to know whom to trust: give tls_ca (TYR_TLS_CA), the certificate of \
                     the authority that signed those of the nodes",
                )),
            };
        };
        let domain = domain.unwrap_or_else(|| TLS_DOMAIN.to_owned());
        Ok(Some(TlsConfig { own, authorities, domain, may_callers_be_unnamed: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> TlsOptions {
        let mut options = TlsOptions::default();
        pairs.iter().for_each(|(name, value)| assert!(options.take(name, value), "{name}"));
        options
    }

    #[test]
    fn tls_is_spoken_when_an_authority_is_named() {
        assert_eq!(TlsOptions::default().config().unwrap(), None);
        let config = of(&[("tls_ca", "ca.pem")]).config().unwrap().unwrap();
        assert_eq!((config.own, config.domain.as_str()), (None, TLS_DOMAIN));
        let all = [("tls_ca", "a"), ("tls_certificate", "c"), ("tls_key", "k")];
        let config = of(&all).config().unwrap().unwrap();
        let own = OwnCertificate { certificate: "c".into(), key: "k".into() };
        assert_eq!((config.own, config.authorities), (Some(own), "a".into()));
        assert!(!TlsOptions::default().take("user", "ann"));
    }

    #[test]
    fn who_meant_to_encrypt_does_not_go_on_in_the_clear() {
        let pair = [("tls_certificate", "c"), ("tls_key", "k")];
        for (halves, named) in [
            (&pair[..], "tls_ca"),
            (&[("tls_domain", "example.org")], "tls_ca"),
            (&[("tls_ca", "a"), ("tls_key", "k")], "tls_certificate"),
            (&pair[..1], "tls_key"),
        ] {
            let error = of(halves).config().unwrap_err();
            assert!(error.message().contains(named), "{error}");
        }
    }

    #[test]
    fn what_is_said_counts_before_what_the_environment_says() {
        let environment = TlsOptions::from_variables(|name| match name {
            "TYR_TLS_CA" => Some("theirs".into()),
            "TYR_TLS_KEY" => Some(OsString::new()),
            "TYR_TLS_DOMAIN" => Some("example.org".into()),
            _ => None,
        });
        assert_eq!(environment, of(&[("tls_ca", "theirs"), ("tls_domain", "example.org")]));
        let both = of(&[("tls_ca", "ours")]).or(environment);
        assert_eq!(both, of(&[("tls_ca", "ours"), ("tls_domain", "example.org")]));
    }
}
