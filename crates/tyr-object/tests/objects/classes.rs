//! Installing classes, their versions, and where they may be called.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tyr::ErrorKind;
use tyr::blocking::Tyr;
use tyr_object::blocking::Classes;
use tyr_object::{Call, keyspace_config};

use crate::place::{Place, on_each};

/// A class that answers what it is told to.
fn saying(what: &str) -> String {
    format!(
        r#"return {{ name = "NAME", methods = {{
             say = {{ kind = "query", run = function() return "{what}" end }} }} }}"#
    )
}

#[test]
fn the_newest_version_is_called_until_it_is_retired() {
    on_each(|place| {
        assert_eq!(place.install(&saying("one")), 1);
        assert_eq!(place.call("a", "say", "").unwrap(), "one");
        assert_eq!(place.install(&saying("two")), 2);
        assert_eq!(place.call("a", "say", "").unwrap(), "two");
        assert_eq!(place.install(&saying("two")), 2, "that is no other version");
        place.classes.retire(&place.class, 2).unwrap();
        assert_eq!(place.call("a", "say", "").unwrap(), "one");
        assert_eq!(
            place.classes.script(&place.class, Some(2)).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        place.classes.retire(&place.class, 1).unwrap();
        let failure = place.call("a", "say", "").unwrap_err();
        assert!(failure.text().contains("retired"), "{failure}");
        let record = place.classes.get(&place.class).unwrap();
        assert_eq!((record.current, record.versions.len()), (None, 2));
        assert_eq!(place.install(&saying("three")), 3);
        assert_eq!(place.call("a", "say", "").unwrap(), "three");
    });
}

#[test]
fn what_means_nothing_in_a_new_class_is_refused() {
    on_each(|place| {
        // One letter is missing: none of its tests would be run.
        let methods = r#"{ m = { kind = "call", run = function() end } }"#;
        let script = format!(r#"return {{ name = "NAME", methods = {methods}, test = {{}} }}"#);
        let script = place.script(&script);
        let error = place.classes.install(None, script.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("\"test\""), "{error}");
        assert!(tyr_object::test(None, script.as_bytes()).is_err());
    });
}

#[test]
fn a_class_is_called_where_it_is_enabled() {
    on_each(|place| {
        let missing = place.call("a", "say", "").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(missing.text().contains("tyr class install"), "{missing}");
        let script = place.script(&saying("it"));
        place.classes.install(None, script.as_bytes()).unwrap();
        let refused = place.call("a", "say", "").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert!(refused.text().contains("tyr class enable"), "{refused}");
        let keyspace = place.keyspace.name();
        assert!(place.classes.enable(&place.class, keyspace).unwrap());
        assert!(!place.classes.enable(&place.class, keyspace).unwrap());
        assert_eq!(place.call("a", "say", "").unwrap(), "it");
        assert!(place.classes.disable(&place.class, keyspace).unwrap());
        assert_eq!(place.call("a", "say", "").unwrap_err().kind(), ErrorKind::PermissionDenied);
        let nowhere = place.classes.enable(&place.class, "nowhere").unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_script_that_is_no_class_or_fails_its_tests_is_not_installed() {
    on_each(|place| {
        let install = |script: &str| {
            let script = place.script(script);
            place.classes.install(None, script.as_bytes()).unwrap_err()
        };
        assert!(install("return 7").message().contains("no class"));
        assert!(install("return {").message().contains(":1:"), "the line is told");
        let failing = r#"return { name = "NAME",
            methods = { say = { kind = "query", run = function() return "a" end } },
            tests = { says_b = function(blob, call)
                assert(buffer.tostring(call("say", "")) == "b", "it says something else")
            end } }"#;
        let error = install(failing);
        assert!(error.message().contains("says_b"), "{error}");
        assert!(error.message().contains("it says something else"), "{error}");
        assert_eq!(place.classes.get(&place.class).unwrap_err().kind(), ErrorKind::NotFound);
        let long = format!("{}\n--{}", saying("it"), "x".repeat(256 << 10));
        assert!(install(&long).message().contains("256 KiB"));
    });
}

#[test]
fn who_installs_at_once_gets_a_version_each() {
    on_each(|place| {
        let mut versions: Vec<u32> = thread::scope(|scope| {
            let install = |number: u32| {
                let place = &place;
                scope.spawn(move || place.install(&saying(&number.to_string())))
            };
            let installing: Vec<_> = (0..6).map(install).collect();
            installing.into_iter().map(|it| it.join().unwrap()).collect()
        });
        versions.sort_unstable();
        assert_eq!(versions, [1, 2, 3, 4, 5, 6]);
        let record = place.classes.get(&place.class).unwrap();
        let current = place.classes.script(&place.class, record.current).unwrap();
        let said = place.call("a", "say", "").unwrap();
        assert_eq!(String::from_utf8(current).unwrap(), place.script(&saying(&said)));
    });
}

/// O6.
#[test]
fn a_script_that_somebody_else_changed_is_not_run() {
    on_each(|place| {
        place.install(&saying("one"));
        let path = format!("classes/{}/1", place.class);
        place.store.metadata().put(&path, place.script(&saying("evil"))).unwrap();
        let failure = place.call("a", "say", "").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Corrupt, "{failure}");
    });
}

#[test]
fn classes_are_listed_by_name_and_without_their_scripts() {
    on_each(|place| {
        for name in ["b", "a"] {
            let script = saying("it").replace("NAME", &format!("{}_{name}", place.class));
            place.classes.install(None, script.as_bytes()).unwrap();
        }
        let all = place.classes.list().unwrap();
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let own: Vec<&&str> = names.iter().filter(|name| name.starts_with(&place.class)).collect();
        assert_eq!(own, [&format!("{}_a", place.class), &format!("{}_b", place.class)]);
    });
}

/// Calls again and again, until it is over, and checks each answer against what the changer was
/// told before that call began; counts them.
fn call_during_changes(
    place: &Place,
    caller: u32,
    told: &AtomicU32,
    is_over: &AtomicBool,
    calls: &AtomicU32,
) {
    // Of half of them this program is the host, with records of its own.
    let own = Classes::of(&place.store);
    while !is_over.load(Ordering::Acquire) {
        let least = told.load(Ordering::Acquire);
        let key = format!("of {caller}");
        let answer = match caller % 2 {
            0 => place.call(&key, "say", ""),
            _ => {
                let begun = own.begin(&place.keyspace, key, place.wanted("say", ""), "caller");
                let answer = begun.unwrap().wait();
                answer.map(|it| String::from_utf8(it.to_vec()).unwrap())
            }
        };
        match answer {
            Ok(said) => assert!(said.parse::<u32>().unwrap() >= least, "{said} after {least}"),
            Err(failure) => assert_eq!(failure.kind(), ErrorKind::PermissionDenied, "{failure}"),
        }
        calls.fetch_add(1, Ordering::AcqRel);
    }
}

/// Waits until there were so many more calls.
fn wait_for_calls(calls: &AtomicU32, more: u32) {
    let (begun, wanted) = (Instant::now(), calls.load(Ordering::Acquire) + more);
    while calls.load(Ordering::Acquire) < wanted {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody calls any more");
        thread::yield_now();
    }
}

/// O6.
#[test]
fn who_was_told_of_a_change_meets_nothing_older_however_many_call_meanwhile() {
    on_each(|place| {
        place.install(&saying("1"));
        let (told, is_over) = (AtomicU32::new(1), AtomicBool::new(false));
        let calls = AtomicU32::new(0);
        let keyspace = place.keyspace.name();
        thread::scope(|scope| {
            let (place, told, is_over, calls) = (&place, &told, &is_over, &calls);
            for caller in 0..4 {
                scope.spawn(move || call_during_changes(place, caller, told, is_over, calls));
            }
            for version in 2..=4 {
                let script = place.script(&saying(&version.to_string()));
                place.classes.install(None, script.as_bytes()).unwrap();
                told.store(version, Ordering::Release);
                // In a directory all changes are made before a few calls are.
                wait_for_calls(calls, 8);
            }
            // Whatever a call answers from here on is below this: only to be refused is right.
            place.classes.disable(&place.class, keyspace).unwrap();
            told.store(u32::MAX, Ordering::Release);
            for _ in 0..20 {
                let refused = place.call("a", "say", "").unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
            }
            is_over.store(true, Ordering::Release);
            let calls = calls.load(Ordering::Acquire);
            assert!(calls > 20, "{calls} calls are no load");
        });
        // What is added is there at once, and what is retired is not run again.
        place.classes.enable(&place.class, keyspace).unwrap();
        assert_eq!(place.call("a", "say", "").unwrap(), "4");
        place.classes.retire(&place.class, 4).unwrap();
        assert_eq!(place.call("a", "say", "").unwrap(), "3");
    });
}

#[test]
fn what_was_installed_is_there_when_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let script = saying("it").replace("NAME", "said");
    let call = |store: &Tyr| {
        let keyspace = store.keyspace("objects").unwrap();
        Classes::of(store).call(&keyspace, "a", &Call::new("said", "say", "")).unwrap()
    };
    {
        let store = Tyr::open(folder.path()).unwrap();
        store.create_keyspace("objects", keyspace_config()).unwrap();
        let classes = Classes::of(&store);
        classes.install(None, script.as_bytes()).unwrap();
        classes.enable("said", "objects").unwrap();
        assert_eq!(call(&store), "it");
        drop(classes);
        store.close().unwrap();
    }
    let store = Tyr::open(folder.path()).unwrap();
    assert_eq!(call(&store), "it");
}
