//! TLS: files read, both sides set up, and errors in words.
//!
//! Both sides show a certificate, and want one that an authority of theirs signed; of callers it
//! can be left to them whether they show one. Only TLS 1.3: whoever speaks to us is a program of
//! ours.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, AlertDescription, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use tyr_types::{Error, ErrorKind, NodeId, Result};

use super::config::{OwnCertificate, TlsConfig};

/// Both sides of TLS.
pub(super) struct Tls {
    /// `None` without a certificate to show.
    acceptor: Option<TlsAcceptor>,
    connector: TlsConnector,
    domain: String,
}

/// Whether a certificate names `name` among the DNS names that it is for.
pub fn is_named(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let Ok(name) = ServerName::try_from(name) else { return false };
    let parsed = ParsedCertificate::try_from(certificate);
    parsed.is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// `InvalidArgument` when one cannot be read or is not what it should be; names it.
    pub fn read(config: &TlsConfig) -> Result<Self> {
        let own = config.own.as_ref().map(Own::read).transpose()?;
        let mut roots = RootCertStore::empty();
        for authority in certificates(&config.authorities)? {
            roots.add(authority).map_err(|error| unusable(&config.authorities, &error))?;
        }
        let roots = Arc::new(roots);
        let acceptor = own.as_ref().map(|own| own.acceptor(config, &roots)).transpose()?;
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| unusable(&config.authorities, &error))?
            .with_root_certificates(roots);
        let client = match own {
            None => client.with_no_client_auth(),
            Some(Own { chain, key, path }) => {
                client.with_client_auth_cert(chain, key).map_err(|error| unusable(&path, &error))?
            }
        };
        let connector = TlsConnector::from(Arc::new(client));
        Ok(Self { acceptor, connector, domain: config.domain.clone() })
    }

    /// Whether it can be the called side.
    pub fn can_accept(&self) -> bool {
        self.acceptor.is_some()
    }

    /// What a node's certificate names, unless its address says otherwise.
    pub fn node_name(&self, node: NodeId) -> String {
        format!("node-{}.{}", node.0, self.domain)
    }

    /// The called side.
    ///
    /// # Errors
    /// `PermissionDenied`, with what was wrong; and the socket, if the caller can still be heard.
    pub async fn accept(
        &self,
        socket: TcpStream,
    ) -> std::result::Result<TlsStream<TcpStream>, (Error, TcpStream)> {
        let Some(acceptor) = &self.acceptor else {
            return Err((Error::invalid("there is no certificate to show here"), socket));
        };
        let accepted = acceptor.accept(socket).into_fallible().await;
        let failed = |(error, socket)| (describe(&error, "the caller"), socket);
        accepted.map(TlsStream::from).map_err(failed)
    }

    /// The calling side: it wants to reach who is named so.
    ///
    /// # Errors
    /// `InvalidArgument` when it is no name; `PermissionDenied` with what was wrong; `Unavailable`
    /// when the connection ended.
    pub async fn connect(&self, socket: TcpStream, name: &str) -> Result<TlsStream<TcpStream>> {
        let server = ServerName::try_from(name.to_owned()).map_err(|_| {
            Error::invalid(format!("\"{name}\" is no DNS name that a certificate could have"))
        })?;
        let connected = self.connector.connect(server, socket).await;
        connected.map(TlsStream::from).map_err(|error| describe(&error, name))
    }
}

/// A certificate to be shown, read.
struct Own {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// Where it was.
    path: PathBuf,
}

impl Own {
    fn read(files: &OwnCertificate) -> Result<Self> {
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| unreadable(&files.key, "a private key", &error))?;
        Ok(Self { chain, key, path: files.certificate.clone() })
    }

    fn acceptor(&self, config: &TlsConfig, roots: &Arc<RootCertStore>) -> Result<TlsAcceptor> {
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(&provider));
        let verifier = match config.may_callers_be_unnamed {
            true => verifier.allow_unauthenticated(),
            false => verifier,
        };
        let verifier = verifier.build().map_err(|error| unusable(&config.authorities, &error))?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| unusable(&self.path, &error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(|error| unusable(&self.path, &error))?;
        Ok(TlsAcceptor::from(Arc::new(server)))
    }
}

/// An error of a stream with TLS, in words; `None` when TLS has nothing to do with it.
pub fn explain(error: &io::Error) -> Option<Error> {
    error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(describe(error, "the peer"))
}

fn describe(error: &io::Error, peer: &str) -> Error {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let advice = match cause {
        // The latter when the authorities have the same name.
        Some(rustls::Error::InvalidCertificate(
            rustls::CertificateError::UnknownIssuer | rustls::CertificateError::BadSignature,
        )) => "no authority of ours signed its certificate; have it signed, or add its authority",
        Some(rustls::Error::InvalidCertificate(
            rustls::CertificateError::NotValidForName
            | rustls::CertificateError::NotValidForNameContext { .. },
        )) => {
            "its certificate is for another name; is the address another node's, and is tls_domain \
             that of the cluster?"
        }
        Some(rustls::Error::InvalidCertificate(_)) => "its certificate does not hold; renew it",
        Some(rustls::Error::NoCertificatesPresented) => {
            "it shows no certificate; configure one that an authority of ours signed"
        }
        Some(rustls::Error::AlertReceived(AlertDescription::CertificateRequired)) => {
            "it wants to see a certificate and was shown none; configure tls_certificate and \
             tls_key"
        }
        Some(rustls::Error::AlertReceived(_)) => {
            "it does not take our certificate; have it signed by an authority that it knows"
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            "it does not speak TLS; configure TLS on both sides or on none"
        }
        Some(_) | None => "TLS did not come about; configure TLS on both sides or on none",
    };
    // What the connection itself met may be over the next time.
    let kind = match cause {
        Some(_) => ErrorKind::PermissionDenied,
        None => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("TLS with {peer}: {advice} ({error})"))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(|certificates| certificates.collect::<std::result::Result<Vec<_>, _>>())
        .map_err(|error| unreadable(path, "certificates", &error))?;
    match found.is_empty() {
        false => Ok(found),
        true => Err(Error::invalid(format!(
            "{}: there is no certificate in it; it must be PEM",
            path.display()
        ))),
    }
}

fn unreadable(path: &Path, what: &str, error: &pem::Error) -> Error {
    Error::invalid(format!("{}: cannot be read as PEM with {what}: {error}", path.display()))
}

fn unusable(path: &Path, error: &impl std::fmt::Display) -> Error {
    Error::invalid(format!("{}: cannot be used for TLS: {error}", path.display()))
}
