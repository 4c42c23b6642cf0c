//! Clusters that speak TLS: who has the right certificates comes in, and nobody else.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::nodes::{Nodes, get, until};
use crate::shell::{Shell, refusal, succeeded};

/// Who is refused hears of it within this time, on a machine that has much else to do; without an
/// answer a client would try for 15 s.
const SECONDS: Duration = Duration::from_secs(12);

/// An authority; what it signs lies beside the store.
struct Authority<'a> {
    shell: &'a Shell,
    name: &'static str,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl<'a> Authority<'a> {
    fn new(shell: &'a Shell, name: &'static str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, draw()).expect("it signs itself");
        fs::write(shell.path(&format!("{name}.pem")), issuer.pem()).expect("the folder is there");
        Self { shell, name, issuer }
    }

    /// Where its own certificate is.
    fn file(&self) -> String {
        self.shell.path(&format!("{}.pem", self.name)).display().to_string()
    }

    /// Signs a certificate for these names; answers where it is, and its key.
    fn sign(&self, names: &[&str]) -> [String; 2] {
        let key = draw();
        let names = names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let file = format!("{}-{}", self.name, names[0]);
        let params = CertificateParams::new(names).expect("DNS names");
        let certificate = params.signed_by(&key, &self.issuer).expect("it signs");
        let parts = [("pem", certificate.pem()), ("key", key.serialize_pem())];
        parts.map(|(ending, text)| {
            let path = self.shell.path(&format!("{file}.{ending}"));
            fs::write(&path, text).expect("the folder is there");
            path.display().to_string()
        })
    }
}

/// A new key.
fn draw() -> KeyPair {
    KeyPair::generate().expect("the system gives random numbers")
}

/// Who comes, with which options of the address, and what the refusal says.
type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str);

/// One node with a secret, and with TLS.
fn form(shell: &Shell, authority: &Authority<'_>, more: &[&str]) -> Nodes {
    let secret = shell.path("secret").display().to_string();
    shell.ok(["secret", &secret]);
    let [certificate, key] = authority.sign(&["node-0.example.org", "example.org"]);
    let file = authority.file();
    let tls = ["--tls-certificate", &certificate, "--tls-key", &key, "--tls-authorities", &file];
    let checked = ["--secret-file", &secret, "--tls-domain", "example.org"];
    Nodes::form(shell, 1, &[&tls[..], &checked, more].concat())
}

/// What a command answers at this cluster, with these options of the address, and variables.
fn ask(
    (shell, nodes): (&Shell, &Nodes),
    options: &[(&str, &str)],
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> Output {
    let secret = shell.path("secret").display().to_string();
    let mut address = format!("tyr://{}/?user=root&key_file={secret}", nodes.listen[0]);
    options.iter().for_each(|(name, value)| address += &format!("&{name}={value}"));
    let mut command = shell.command(arguments);
    command
        .env("TYR_DATA", address)
        .envs(variables.iter().copied())
        .output()
        .expect("the binary starts")
}

/// How often the node refused somebody because of TLS.
fn refused(nodes: &Nodes) -> u64 {
    let (_, text) = get(nodes.http[0], "/metrics");
    let is_it =
        |line: &&str| line.starts_with("tyr_connections_refused") && line.contains("\"tls\"");
    let line = text.lines().find(is_it).expect("refusals are counted");
    line.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a count")
}

#[test]
fn data_and_control_commands_do_their_work_over_tls() {
    let shell = Shell::empty();
    let authority = Authority::new(&shell, "ours");
    let nodes = form(&shell, &authority, &[]);
    let [certificate, key] = authority.sign(&["ann"]);
    let file = authority.file();
    let stage = (&shell, &nodes);
    let said = [
        ("tls_ca", file.as_str()),
        ("tls_certificate", &certificate),
        ("tls_key", &key),
        ("tls_domain", "example.org"),
    ];
    let variables = [
        ("TYR_TLS_CA", file.as_str()),
        ("TYR_TLS_CERTIFICATE", &certificate),
        ("TYR_TLS_KEY", &key),
        ("TYR_TLS_DOMAIN", "example.org"),
    ];
    for (number, (options, variables)) in
        [(&said[..], &[][..]), (&[], &variables)].iter().enumerate()
    {
        let text = |arguments: &[&str]| {
            String::from_utf8(succeeded(ask(stage, options, variables, arguments))).unwrap()
        };
        let (keyspace, user) = (format!("notes-{number}"), format!("user-{number}"));
        text(&["keyspace", "create", &keyspace, "--replication", "1"]);
        text(&["put", &keyspace, "a", "--value", "hello"]);
        assert_eq!(text(&["get", &keyspace, "a"]), "hello");
        text(&["user", "add", &user]);
        text(&["user", "grant", &user, &keyspace, "read"]);
        assert!(text(&["user", "list"]).contains(&user));
        assert!(text(&["node", "list"]).contains("in"));
        assert!(text(&["status"]).contains("leads the monitors"));
    }
    assert_eq!(refused(&nodes), 0);
}

#[test]
fn who_has_not_the_right_certificate_or_none_is_told_so_counted_and_logged() {
    let shell = Shell::empty();
    let (authority, other) = (Authority::new(&shell, "ours"), Authority::new(&shell, "theirs"));
    let nodes = form(&shell, &authority, &[]);
    let (ours, theirs) = (authority.file(), other.file());
    let [certificate, key] = authority.sign(&["ann"]);
    let [strange, strange_key] = other.sign(&["ann"]);
    let good = [("tls_certificate", certificate.as_str()), ("tls_key", &key)];
    let bad = [("tls_certificate", strange.as_str()), ("tls_key", &strange_key)];
    let domain = ("tls_domain", "example.org");
    let cases: [Case<'_>; 5] = [
        ("without TLS", vec![], "connections are taken with TLS only"),
        ("no certificate", vec![("tls_ca", &ours), domain], "it wants to see a certificate"),
        (
            "strange client",
            [&bad[..], &[("tls_ca", &ours), domain]].concat(),
            "it does not take our",
        ),
        (
            "strange node",
            [&good[..], &[("tls_ca", &theirs), domain]].concat(),
            "no authority of ours",
        ),
        ("wrong name", [&good[..], &[("tls_ca", &ours)]].concat(), "tls_domain"),
    ];
    for (case, options, named) in cases {
        for arguments in [&["keyspace", "list"][..], &["user", "list"]] {
            let (before, begun) = (refused(&nodes), Instant::now());
            let arguments = [arguments, &["--json"]].concat();
            let output = ask((&shell, &nodes), &options, &[], &arguments);
            let (code, kind, message) = refusal(&output);
            assert_eq!((code, kind.as_str()), (10, "PermissionDenied"), "{case}: {message}");
            assert!(message.contains(named), "{case}: {message}");
            assert!(begun.elapsed() < SECONDS, "{case} took {:?}", begun.elapsed());
            until("it is counted", || refused(&nodes) > before);
        }
    }
    let log = fs::read_to_string(shell.path("node-0.log")).unwrap();
    let is_it = |line: &&str| line.contains("connection refused") && line.contains("\"tls\"");
    assert!(log.lines().any(|line| is_it(&line)), "{log}");
    // What is said by halves is not taken for nothing said.
    let output = ask((&shell, &nodes), &good, &[], &["keyspace", "list", "--json"]);
    let (_, kind, message) = refusal(&output);
    assert!(kind == "InvalidArgument" && message.contains("tls_ca"), "{message}");
}

#[test]
fn where_keys_are_enough_clients_need_no_certificate() {
    let shell = Shell::empty();
    let authority = Authority::new(&shell, "ours");
    let nodes = form(&shell, &authority, &["--tls-client-certificates=false"]);
    let file = authority.file();
    let options = [("tls_ca", file.as_str()), ("tls_domain", "example.org")];
    let ask = |arguments: &[&str]| succeeded(ask((&shell, &nodes), &options, &[], arguments));
    ask(&["keyspace", "create", "notes", "--replication", "1"]);
    ask(&["put", "notes", "a", "--value", "hello"]);
    assert_eq!(ask(&["get", "notes", "a"]), b"hello");
    ask(&["user", "add", "ann"]);
}

#[test]
fn who_speaks_tls_to_a_cluster_without_is_told_so() {
    let shell = Shell::empty();
    let secret = shell.path("secret").display().to_string();
    shell.ok(["secret", &secret]);
    let nodes = Nodes::form(&shell, 1, &["--secret-file", &secret]);
    let authority = Authority::new(&shell, "ours");
    let file = authority.file();
    for arguments in [["keyspace", "list", "--json"], ["user", "list", "--json"]] {
        let (before, begun) = (refused(&nodes), Instant::now());
        let output = ask((&shell, &nodes), &[("tls_ca", &file)], &[], &arguments);
        let (code, _, message) = refusal(&output);
        assert_eq!(code, 10, "{message}");
        assert!(message.contains("configure TLS on both sides or on none"), "{message}");
        assert!(begun.elapsed() < SECONDS);
        until("it is counted", || refused(&nodes) > before);
    }
}
