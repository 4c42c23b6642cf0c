//! A cluster that is reached over TLS, and asks who comes.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tyr_net::access::Key;
use tyr_net::{OwnCertificate, TlsConfig};

use crate::Cluster;

/// What the certificate of its node names.
pub const SECURE_DOMAIN: &str = "example.org";

/// Forms a cluster of one node that takes who shows a certificate of its authority and is `root`
/// with its secret. What a program needs for that lies in `folder` then: `authority.pem`,
/// `client.pem`, `client.key`, and `secret`.
///
/// # Panics
/// When it does not form.
pub fn form_secure(folder: &Path) -> Cluster {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = CertifiedIssuer::self_signed(params, key).unwrap();
    let file = folder.join("authority.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    let sign = |name: &str, names: &[String]| -> [PathBuf; 2] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        let places = [folder.join(format!("{name}.pem")), folder.join(format!("{name}.key"))];
        std::fs::write(&places[0], certificate.pem()).unwrap();
        std::fs::write(&places[1], key.serialize_pem()).unwrap();
        places
    };
    sign("client", &["client.example.org".to_owned()]);
    let names = [format!("node-0.{SECURE_DOMAIN}"), SECURE_DOMAIN.to_owned()];
    let [certificate, key] = sign("node", &names);
    let secret = Key::draw().unwrap();
    std::fs::write(folder.join("secret"), secret.as_str()).unwrap();
    let tls = TlsConfig {
        own: Some(OwnCertificate { certificate, key }),
        authorities: file,
        domain: SECURE_DOMAIN.to_owned(),
        may_callers_be_unnamed: false,
    };
    Cluster::form(folder, 1, |options| {
        options.secret = Some(secret.clone());
        options.network.tls = Some(tls.clone());
    })
}
