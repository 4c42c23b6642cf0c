//! With TLS: who has the right certificate speaks, and nobody else.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use super::*;

/// An authority, and a folder for what it signs.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("authority"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Files for who is named so, who trusts the authority of `trusted`.
    fn sign(&self, name: &str, trusted: &Self) -> TlsConfig {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let write = |ending: &str, text: String| -> PathBuf {
            let path = self.folder.path().join(format!("{name}.{ending}"));
            std::fs::write(&path, text).unwrap();
            path
        };
        let own = OwnCertificate {
            certificate: write("certificate", certificate.pem()),
            key: write("key", key.serialize_pem()),
        };
        TlsConfig {
            own: Some(own),
            authorities: trusted.folder.path().join("authority"),
            domain: "c1.tyr".to_owned(),
            may_callers_be_unnamed: false,
        }
    }
}

fn with(tls: TlsConfig) -> NetworkConfig {
    NetworkConfig { tls: Some(tls), ..config() }
}

/// Why node 1 cannot connect to node 2, which refused for this reason.
#[track_caller]
fn refused(one: NetworkConfig, two: NetworkConfig, refusal: Option<Refusal>) -> String {
    let (one, two) = (start(one, hello(node(1), 1)), start(two, hello(node(2), 1)));
    one.network.set_nodes(&nodes(&[(2, two.address)]));
    eventually("an attempt fails", || one.network.statistics().targets[&NodeId(2)].failures > 1);
    if let Some(refusal) = refusal {
        eventually("it is counted", || two.network.statistics().refused(refusal) > 0);
    }
    assert!(one.inbox.seen.lock().here.is_empty());
    assert!(two.inbox.seen.lock().here.is_empty());
    one.network.statistics().targets[&NodeId(2)].last_error.clone().unwrap()
}

#[test]
fn nodes_with_certificates_of_one_authority_speak() {
    let authority = Authority::new();
    let one = with(authority.sign("node-1.c1.tyr", &authority));
    let two = with(authority.sign("node-2.c1.tyr", &authority));
    let (one, two) = (start(one, hello(node(1), 1)), start(two, hello(node(2), 1)));
    meet(&one, &two);
    assert_speak(&one, &two, node(1), node(2));
    let bytes = Bytes::from(vec![0xab; 5_000_000]);
    for number in 0..1000 {
        match number % 400 {
            7 => send_surely(&two.network, node(1), &large(node(2), number, &bytes)),
            _ => send_surely(&two.network, node(1), &small(node(2), number)),
        }
        if number % 3 == 0 {
            two.network.flush();
        }
    }
    two.network.flush();
    assert_eq!(one.inbox.take(1000), (0..1000).collect::<Vec<_>>());
    assert_last_arrive(&one, &two);
    two.inbox.wait("node 1 is gone", |seen| (seen.gone.len() == 1).then_some(()));
}

#[test]
fn the_authenticator_sees_whom_a_certificate_names() {
    struct ByCertificate;
    impl Authenticate for ByCertificate {
        fn authenticate(&self, introduction: &Introduction<'_>) -> Result<Principal> {
            let Address::Node(NodeId(number)) = introduction.hello.sender else { panic!() };
            let certificate = introduction.certificate.unwrap();
            assert!(!is_named(certificate, "no name at all"));
            match is_named(certificate, &format!("node-{number}.c1.tyr")) {
                true => Ok(Principal::new(number)),
                false => Err(Error::new(ErrorKind::PermissionDenied, "another's certificate")),
            }
        }
    }
    let authority = Authority::new();
    let inbox = Arc::new(Inbox::default());
    let parts = NetworkParts {
        identity: Arc::new(|| hello(node(9), 1)),
        authenticate: Arc::new(ByCertificate),
        receive: Arc::clone(&inbox) as Arc<dyn Receive>,
        control: None,
    };
    let files = authority.sign("node-9.c1.tyr", &authority);
    let network = Network::start(with(files), parts).unwrap();
    let address = network.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let files = authority.sign("node-1.c1.tyr", &authority);
    let one = start(with(files.clone()), hello(node(1), 1));
    one.network.set_nodes(&nodes(&[(9, address)]));
    let peer = inbox.wait("node 1 is here", |seen| seen.here.first().cloned());
    assert_eq!(peer.principal.get::<u16>(), Some(&1));
    let two = start(with(files), hello(node(2), 1));
    two.network.set_nodes(&nodes(&[(9, address)]));
    eventually("it is refused", || network.statistics().refused(Refusal::Permission) > 0);
    assert!(two.inbox.seen.lock().here.is_empty());
}

#[test]
fn a_node_of_another_authority_is_refused_by_either_side() {
    let (authority, other) = (Authority::new(), Authority::new());
    let error = refused(
        with(authority.sign("node-1.c1.tyr", &authority)),
        with(other.sign("node-2.c1.tyr", &authority)),
        Some(Refusal::Tls),
    );
    assert!(error.contains("no authority of ours signed its certificate"), "{error}");
    let error = refused(
        with(other.sign("node-1.c1.tyr", &authority)),
        with(authority.sign("node-2.c1.tyr", &authority)),
        Some(Refusal::Tls),
    );
    assert!(error.contains("it does not take our certificate"), "{error}");
}

#[test]
fn a_certificate_of_another_name_is_refused_unless_the_name_is_configured() {
    let authority = Authority::new();
    let one = with(authority.sign("node-1.c1.tyr", &authority));
    let two = with(authority.sign("tyr.example.org", &authority));
    let error = refused(one.clone(), two.clone(), None);
    assert!(error.contains("its certificate is for another name"), "{error}");
    let (one, two) = (start(one, hello(node(1), 1)), start(two, hello(node(2), 1)));
    let mut map = nodes(&[(2, two.address)]);
    map.get_mut(&NodeId(2)).unwrap().tls_name = Some("tyr.example.org".to_owned());
    one.network.set_nodes(&map);
    one.inbox.wait("node 2 is here", |seen| (!seen.here.is_empty()).then_some(()));
}

#[test]
fn with_tls_on_one_side_only_both_hear_so() {
    let authority = Authority::new();
    let error =
        refused(config(), with(authority.sign("node-2.c1.tyr", &authority)), Some(Refusal::Tls));
    assert!(error.contains("connections are taken with TLS only"), "{error}");
    let error =
        refused(with(authority.sign("node-1.c1.tyr", &authority)), config(), Some(Refusal::Tls));
    assert!(error.contains("configure TLS on both sides or on none"), "{error}");
}

#[test]
fn who_shows_no_certificate_is_let_in_only_where_that_is_said() {
    let authority = Authority::new();
    let called = authority.sign("node-2.c1.tyr", &authority);
    let caller = TlsConfig { own: None, ..authority.sign("nobody", &authority) };
    let strict = start(with(called.clone()), hello(node(2), 1));
    let client = start_client(with(caller.clone()));
    client.network.set_nodes(&nodes(&[(2, strict.address)]));
    let status = || client.network.statistics().targets[&NodeId(2)].clone();
    eventually("it is denied", || status().is_denied);
    let error = status().last_error.unwrap();
    assert!(error.contains("it wants to see a certificate"), "{error}");
    eventually("it is counted", || strict.network.statistics().refused(Refusal::Tls) > 0);
    assert!(client.network.listen("127.0.0.1:0".parse().unwrap()).is_err());
    let lenient =
        start(with(TlsConfig { may_callers_be_unnamed: true, ..called }), hello(node(2), 1));
    let client = start_client(with(caller));
    client.network.set_nodes(&nodes(&[(2, lenient.address)]));
    client.inbox.wait("node 2 is here", |seen| (!seen.here.is_empty()).then_some(()));
    // A certificate of somebody else is refused there all the same.
    let other = Authority::new();
    let stranger = start_client(with(other.sign("ann", &authority)));
    stranger.network.set_nodes(&nodes(&[(2, lenient.address)]));
    eventually("it is refused", || lenient.network.statistics().refused(Refusal::Tls) > 0);
}

/// A network that only calls.
fn start_client(config: NetworkConfig) -> Site {
    let inbox = Arc::new(Inbox::default());
    let parts = NetworkParts {
        identity: Arc::new(|| hello(Address::Client(7), 0)),
        authenticate: Arc::new(Doorkeeper),
        receive: Arc::clone(&inbox) as Arc<dyn Receive>,
        control: None,
    };
    let network = Network::start(config, parts).unwrap();
    Site { network, inbox, address: "127.0.0.1:0".parse().unwrap() }
}

#[test]
fn strangers_at_a_port_with_tls_are_closed() {
    let authority = Authority::new();
    let files = authority.sign("node-2.c1.tyr", &authority);
    let impatient =
        NetworkConfig { greeting_timeout: Duration::from_millis(300), ..with(files.clone()) };
    let site = start(impatient, hello(node(2), 1));
    let mut browser = Raw::connect(site.address);
    browser.send(b"GET / HTTP/1.1\r\n\r\n");
    let mut garbage = Raw::connect(site.address);
    garbage.send(&[22, 3, 1, 0, 5, 1, 2, 3, 4, 5]);
    let mut silent = Raw::connect(site.address);
    silent.send(&[22, 3, 1]);
    for raw in [&mut browser, &mut garbage, &mut silent] {
        let _ = raw.stream.read_to_end(&mut Vec::new());
    }
    let statistics = || site.network.statistics();
    eventually("the browser is refused", || statistics().refused(Refusal::Protocol) == 1);
    eventually("garbage is refused", || statistics().refused(Refusal::Tls) == 1);
    eventually("who stops is refused", || statistics().refused(Refusal::Slow) == 1);
    let one = start(with(authority.sign("node-1.c1.tyr", &authority)), hello(node(1), 1));
    one.network.set_nodes(&nodes(&[(2, site.address)]));
    one.inbox.wait("node 2 is here", |seen| (!seen.here.is_empty()).then_some(()));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let good = authority.sign("node-1.c1.tyr", &authority);
    let other = authority.sign("node-2.c1.tyr", &authority);
    let absent = Path::new("/nowhere/file").to_path_buf();
    let own = |config: &TlsConfig| config.own.clone().unwrap();
    let with_own = |own: OwnCertificate| TlsConfig { own: Some(own), ..good.clone() };
    let certificate = own(&good).certificate;
    for (wrong, named) in [
        (with_own(OwnCertificate { certificate: absent.clone(), ..own(&good) }), "/nowhere/file"),
        (with_own(OwnCertificate { key: absent.clone(), ..own(&good) }), "/nowhere/file"),
        (TlsConfig { authorities: absent, ..good.clone() }, "/nowhere/file"),
        (TlsConfig { authorities: own(&good).key, ..good.clone() }, "no certificate in it"),
        (with_own(OwnCertificate { key: certificate, ..own(&good) }), "a private key"),
        (
            with_own(OwnCertificate { key: own(&other).key, ..own(&good) }),
            "node-1.c1.tyr.certificate",
        ),
    ] {
        let parts = NetworkParts {
            identity: Arc::new(|| hello(node(1), 1)),
            authenticate: Arc::new(Doorkeeper),
            receive: Arc::new(Inbox::default()),
            control: None,
        };
        let error = Network::start(with(wrong), parts).err().unwrap();
        assert!(error.message().contains(named), "{error}");
    }
}
