//! Users who may call methods, and do nothing else to what these are for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{
    BlobName, ErrorKind, KeyspaceConfig, LeaseOptions, MethodCall, Number, Relation, Result,
    Transform,
};
use tyr_net::access::{Key, ROOT, Right, User};
use tyr_object::blocking::Classes;
use tyr_object::{Call, Hosting, keyspace_config};
use tyr_server::{Observer, ServerOptions};
use tyr_testing::Cluster;

use crate::place::host;
use crate::seats::wait_for;

const SCRIPT: &str = r#"
return { name = "till", methods = {
  pay_in = { kind = "call", run = function(cx, blob, input)
    blob.map:set("last", cx.caller)
    return tostring(blob:transform(0, "add", "u64", tonumber(buffer.tostring(input))))
  end },
  last = { kind = "query", run = function(cx, blob) return blob.map:get("last") end },
} }"#;

/// A cluster of one node that checks who is there, with a till of 7.
struct Bank {
    cluster: Cluster,
    folder: tempfile::TempDir,
    secret: Key,
    root: Tyr,
    tills: Keyspace,
}

impl Bank {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let secret = Key::draw().unwrap();
        let give_secret = |options: &mut ServerOptions| options.secret = Some(secret.clone());
        let cluster = Cluster::form(folder.path(), 1, give_secret);
        let of_root = Tyr::connect_options().user(ROOT, secret.as_str());
        host(&cluster.servers()[0], of_root.clone());
        let root = of_root.connect_blocking(cluster.address()).unwrap();
        let tills = root.create_keyspace("tills", keyspace_config()).unwrap();
        root.create_keyspace("others", KeyspaceConfig::default()).unwrap();
        let classes = Classes::of(&root);
        classes.install(None, SCRIPT.as_bytes()).unwrap();
        classes.enable("till", "tills").unwrap();
        classes.call(&tills, "till", &Call::new("till", "pay_in", "7")).unwrap();
        Self { cluster, folder, secret, root, tills }
    }

    /// Connects as a user of this name who has this right on the tills.
    fn user(&self, name: &str, right: Right) -> Tyr {
        let key = Key::draw().unwrap();
        let user = User::new(key.hash()).granted(self.tills.id(), Some(right));
        self.root.metadata().put(&format!("users/{name}"), user.to_bytes()).unwrap();
        let options = Tyr::connect_options().user(name, key.as_str());
        options.connect_blocking(self.cluster.address()).unwrap()
    }
}

/// Attempts that begin with a question to the service metadata.
const ASKED_FIRST: [&str; 5] =
    ["a call in a transaction", "a call in this program", "install", "enable", "retire"];

/// Counts what is said to auditors, in this process.
#[derive(Clone, Default)]
struct Auditor(Arc<AtomicUsize>);

impl Auditor {
    fn lines(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl tracing::Subscriber for Auditor {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "audit" && *metadata.level() == tracing::Level::WARN
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        thread::sleep(Duration::from_millis(10));
    }
}

/// What somebody may try, by what it is called.
type Attempt<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

/// A transaction in which one thing is not permitted.
fn mixed<'a>(
    clerk: &'a Tyr,
    fill: impl Fn(&mut Transaction) -> Result<()> + 'a,
) -> Box<dyn Fn() -> Result<()> + 'a> {
    Box::new(move || {
        let mut transaction = clerk.begin();
        fill(&mut transaction)?;
        transaction.commit().map(drop)
    })
}

/// Everything that writes a keyspace by a single operation, at two keys of it.
fn operations<'a>(keyspace: &'a Keyspace, key: &'a str) -> Vec<Attempt<'a>> {
    let one = || Transform::add(Number::U64(1));
    let lock = LeaseOptions::exclusive().no_wait();
    vec![
        ("create", Box::new(move || keyspace.create("new"))),
        ("put", Box::new(move || keyspace.put(key, "x"))),
        ("put much", Box::new(move || keyspace.put(key, vec![1; 3 << 20]))),
        ("write", Box::new(move || keyspace.write(key, 0, "x"))),
        ("write much", Box::new(move || keyspace.write(key, 0, vec![1; 3 << 20]))),
        ("append", Box::new(move || keyspace.append(key, "x").map(drop))),
        ("append at", Box::new(move || keyspace.append_at(key, 8, "x").map(drop))),
        ("truncate", Box::new(move || keyspace.truncate(key, 0))),
        ("extend", Box::new(move || keyspace.truncate(key, 100))),
        ("clear", Box::new(move || keyspace.clear(key, 0, 8))),
        ("delete", Box::new(move || keyspace.delete(key).map(drop))),
        ("apply", Box::new(move || keyspace.apply(key, 0, one()).map(drop))),
        (
            "swap",
            Box::new(move || {
                keyspace.compare_and_swap(key, 0, 7_u64.to_le_bytes().to_vec(), "12345678")
            }),
        ),
        ("lock", Box::new(move || keyspace.lock(key, &lock).map(drop))),
    ]
}

/// Transactions of which a part is permitted.
fn transactions<'a>(clerk: &'a Tyr, tills: &'a Keyspace) -> Vec<Attempt<'a>> {
    let one = || Transform::add(Number::U64(1));
    let read_and_write = mixed(clerk, move |it| {
        it.read(tills, "till", 0, 8)?;
        it.write(tills, "till", 0, "x").map(drop)
    });
    let condition = mixed(clerk, move |it| {
        it.compare_number(tills, "till", 0, Relation::Equal, Number::U64(7))?;
        it.apply(tills, "till", 0, one()).map(drop)
    });
    let two_blobs = mixed(clerk, move |it| {
        it.expect_present(tills, "till")?;
        it.put(tills, "another", "x").map(drop)
    });
    let delete_among_reads = mixed(clerk, move |it| {
        it.stat(tills, "till")?;
        it.delete(tills, "till\0m").map(drop)
    });
    vec![
        ("a read and a write", read_and_write),
        ("a condition and a write", condition),
        ("two blobs", two_blobs),
        ("a delete among reads", delete_among_reads),
    ]
}

/// Calls that are not run by a node, or not where the class is enabled, and changes of classes.
fn of_classes<'a>(
    clerk: &'a Tyr,
    classes: &'a Classes,
    tills: &'a Keyspace,
    others: &'a Keyspace,
) -> Vec<Attempt<'a>> {
    let call = || Call::new("till", "pay_in", "1");
    let in_transaction = mixed(clerk, move |it| {
        classes.call_in(it, tills, "till", &call())?;
        Ok(())
    });
    let in_this_program = move || {
        let begun = classes.begin(tills, "till", call(), "root")?;
        Ok(begun.wait().map(drop)?)
    };
    let install = || {
        let script = SCRIPT.replace("cx.caller", "'x'");
        classes.install(None, script.as_bytes()).map(drop)
    };
    let elsewhere = move || Ok(classes.call(others, "other", &call()).map(drop)?);
    vec![
        ("a call in a transaction", in_transaction),
        ("a call in this program", Box::new(in_this_program)),
        ("a call where it is not enabled", Box::new(elsewhere)),
        ("install", Box::new(install)),
        ("enable", Box::new(|| classes.enable("till", "others").map(drop))),
        ("retire", Box::new(|| classes.retire("till", 1))),
    ]
}

fn attempts<'a>(
    clerk: &'a Tyr,
    classes: &'a Classes,
    tills: &'a Keyspace,
    others: &'a Keyspace,
) -> Vec<Attempt<'a>> {
    let mut all = operations(tills, "till");
    all.extend(operations(tills, "till\0m"));
    all.extend(operations(others, "other"));
    all.extend(transactions(clerk, tills));
    all.extend(of_classes(clerk, classes, tills, others));
    let be_administrator = || {
        let user = r#"{"keys":[],"is_administrator":true}"#;
        clerk.metadata().put("users/clerk", user).map(drop)
    };
    let make_keyspace = || clerk.create_keyspace("mine", KeyspaceConfig::default()).map(drop);
    all.extend::<[Attempt<'a>; 6]>([
        ("read elsewhere", Box::new(|| others.read("other", 0, 1).map(drop))),
        ("stat elsewhere", Box::new(|| others.stat("other").map(drop))),
        ("list elsewhere", Box::new(|| others.scan(b"", None, 10).map(drop))),
        ("be an administrator", Box::new(be_administrator)),
        ("make a keyspace", Box::new(make_keyspace)),
        ("drop the keyspace", Box::new(|| clerk.drop_keyspace("tills"))),
    ]);
    all
}

/// O9.
#[test]
fn who_may_only_call_changes_nothing_in_any_other_way() {
    let auditor = Auditor::default();
    tracing::subscriber::set_global_default(auditor.clone()).expect("no other test has one");
    let bank = Bank::open();
    let clerk = bank.user("clerk", Right::Call);
    let tills = clerk.keyspace("tills").unwrap();
    let others = clerk.keyspace("others").unwrap();
    let classes = Classes::of(&clerk);
    let call = |method: &str, input: &'static str| {
        let call = Call::new("till", method, input);
        classes.call(&tills, "till", &call).map(|answer| answer.to_vec())
    };
    let refused = || Observer::of(&bank.cluster.servers()[0]).statistics().refused_permission;
    until("the user is known", || call("pay_in", "0").is_ok());
    assert_eq!(call("last", "").unwrap(), b"clerk", "the user who is connected calls");
    let state = || {
        let version = bank.tills.stat("till").unwrap().version;
        let map = bank.tills.stat("till\0m").unwrap().version;
        (bank.tills.get("till").unwrap(), version, map)
    };
    let before = state();
    let attempts = attempts(&clerk, &classes, &tills, &others);
    assert!(attempts.len() >= 50, "{} attempts", attempts.len());
    let (mut heard, mut unheard) = (0, Vec::new());
    for (what, attempt) in attempts {
        // The gate counts each, and has a line of a user now and then; others have one for each.
        let noted = (refused(), auditor.lines());
        let error = attempt().expect_err(what);
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{what}: {error}");
        match refused() > noted.0 || auditor.lines() > noted.1 {
            true => heard += 1,
            false => unheard.push(what),
        }
    }
    assert_eq!(state(), before);
    // Who changes classes past the nodes asks the service metadata for them first, and is refused
    // there: questions are not audited.
    assert!(heard >= 50, "of {heard} attempts auditors hear, not of {unheard:?}");
    assert!(unheard.iter().all(|what| ASKED_FIRST.contains(what)), "nor of {unheard:?}");
    for key in ["new", "another"] {
        assert_eq!(bank.tills.stat(key).unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(tills.get("till").unwrap(), before.0, "reading is included");
    assert_eq!(call("pay_in", "5").unwrap(), b"12");

    let reader = bank.user("reader", Right::Read);
    let keyspace = reader.keyspace("tills").unwrap();
    until("the user is known", || keyspace.get("till").is_ok());
    let before = refused();
    let failure = Classes::of(&reader).call(&keyspace, "till", &Call::new("till", "pay_in", "1"));
    let failure = failure.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::PermissionDenied, "{failure}");
    assert!(failure.text().contains("tyr user grant reader tills call"), "{failure}");
    assert_eq!(refused(), before + 1);

    bank.root.metadata().delete("users/clerk").unwrap();
    until("the user is gone", || call("pay_in", "0").is_err());
    assert_eq!(call("last", "").unwrap_err().kind(), ErrorKind::PermissionDenied);
    bank.cluster.servers()[0].stop().unwrap();
    drop((bank.folder, bank.secret));
}

/// O9 taken away: nobody asks whether the user may before a method is run in the user's name.
#[test]
fn without_o9_whoever_is_a_user_changes_what_methods_change() {
    let bank = Bank::open();
    let root = bank.root.clone();
    let hosting = Hosting::on(move || Ok(root.clone()));
    let blob = BlobName { keyspace: bank.tills.id(), key: tyr::Key::new("till").unwrap() };
    let (class, method) = ("till".to_owned(), "pay_in".to_owned());
    let call = MethodCall { blob, class, method, input: "1".into() };
    assert_eq!(wait_for(hosting.call("stranger", "tills", call)).unwrap(), "8");
    bank.cluster.servers()[0].stop().unwrap();
    drop((bank.folder, bank.secret));
}
