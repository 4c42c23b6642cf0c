//! What a call does to its object, and to whoever else is at it.

use std::thread;

use tyr::ErrorKind;
use tyr_object::Failure;

use crate::place::on_each;

/// A counter in decimal, with a log of who counted in its map.
const COUNTER: &str = r#"
local function value(blob) return tonumber(buffer.tostring(blob:read(0, 20))) or 0 end
return { name = "NAME", methods = {
  add = { kind = "call", run = function(cx, blob, input)
    local sum = value(blob) + tonumber(buffer.tostring(input))
    blob:truncate(0)
    blob:write(0, tostring(sum))
    if sum > 1000 then cx:fail("QuotaExceeded", "it counts to 1000 only") end
    return tostring(sum)
  end },
  get = { kind = "query", run = function(cx, blob) return tostring(value(blob)) end },
  sneak = { kind = "query", run = function(cx, blob) blob:write(0, "7") end },
  note = { kind = "call", run = function(cx, blob, input)
    blob.map:set(input, "noted")
  end },
  noted = { kind = "query", run = function(cx, blob)
    local keys = blob.map:next("", 1000)
    return table.concat(keys, ",")
  end },
  remove = { kind = "call", run = function(cx, blob) blob:remove() end },
} }"#;

/// O3.
#[test]
fn a_call_takes_effect_or_leaves_its_object_as_it_was() {
    on_each(|place| {
        place.install(COUNTER);
        assert_eq!(place.call("a", "get", "").unwrap(), "0");
        assert_eq!(place.call("a", "add", "40").unwrap(), "40");
        assert_eq!(place.call("a", "add", "2").unwrap(), "42");
        let failure = place.call("a", "add", "999").unwrap_err();
        assert_eq!(
            (failure.kind(), failure.text()),
            (ErrorKind::QuotaExceeded, "it counts to 1000 only")
        );
        assert_eq!(place.call("a", "get", "").unwrap(), "42");
        assert_eq!(place.keyspace.get("a").unwrap(), "42", "it is a blob like any");
        let failure = place.call("a", "sneak", "").unwrap_err();
        assert!(failure.text().contains("a query wrote"), "{failure}");
        assert_eq!(place.call("a", "get", "").unwrap(), "42");
        let failure = place.call("a", "add", "x").unwrap_err();
        assert!(matches!(failure, Failure::Broken { .. }), "{failure:?}");
        let failure = place.call("a", "fly", "").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NotFound);
        assert!(failure.text().contains("it has add, get"), "{failure}");
    });
}

/// O2, O4.
#[test]
fn calls_of_many_at_once_come_one_after_the_other() {
    on_each(|place| {
        place.install(COUNTER);
        thread::scope(|scope| {
            for caller in 0..4 {
                let place = &place;
                scope.spawn(move || {
                    for number in 0..20 {
                        place.call("a", "add", "1").unwrap();
                        place.call("a", "note", &format!("{caller}/{number:02}")).unwrap();
                    }
                });
            }
        });
        assert_eq!(place.call("a", "get", "").unwrap(), "80");
        let mut all: Vec<String> =
            (0..4).flat_map(|caller| (0..20).map(move |n| format!("{caller}/{n:02}"))).collect();
        all.sort();
        assert_eq!(place.call("a", "noted", "").unwrap(), all.join(","));
    });
}

#[test]
fn an_object_goes_with_its_map() {
    on_each(|place| {
        place.install(COUNTER);
        place.call("a", "add", "1").unwrap();
        place.call("a", "note", "x").unwrap();
        assert!(place.keyspace.stat("a\0m").is_ok(), "the map is beside the blob");
        place.call("a", "remove", "").unwrap();
        for key in ["a", "a\0m"] {
            assert_eq!(place.keyspace.stat(key).unwrap_err().kind(), ErrorKind::NotFound);
        }
        assert_eq!(place.call("a", "noted", "").unwrap(), "");
    });
}

/// O7.
#[test]
fn a_call_is_a_part_of_a_transaction_and_sees_what_came_before_in_it() {
    on_each(|place| {
        place.install(COUNTER);
        let add = |input: &str| place.wanted("add", input);
        let mut transaction = place.store.begin();
        transaction.put(&place.keyspace, "a", "10").unwrap();
        transaction.append(&place.keyspace, "a", "0").unwrap();
        transaction.put(&place.keyspace, "other", "beside").unwrap();
        let call_in = |transaction: &mut _, input: &str| {
            place.classes.call_in(transaction, &place.keyspace, "a", &add(input)).unwrap()
        };
        assert_eq!(call_in(&mut transaction, "5"), "105");
        assert_eq!(call_in(&mut transaction, "6"), "111");
        assert_eq!(place.call("a", "get", "").unwrap(), "0", "nothing is there before the commit");
        transaction.commit().unwrap();
        assert_eq!(place.call("a", "get", "").unwrap(), "111");
        assert_eq!(place.keyspace.get("other").unwrap(), "beside");

        let mut transaction = place.store.begin();
        assert_eq!(call_in(&mut transaction, "1"), "112");
        place.call("a", "add", "1").unwrap();
        let error = transaction.commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "what it read has changed");
        assert_eq!(place.call("a", "get", "").unwrap(), "112");

        let mut transaction = place.store.begin();
        assert_eq!(call_in(&mut transaction, "1"), "113");
        transaction.rollback();
        assert_eq!(place.call("a", "get", "").unwrap(), "112");
    });
}

/// O7 taken away: a call that is made in the middle of a transaction, and is no part of it.
#[test]
fn without_o7_a_call_sees_nothing_of_its_transaction_and_stays_when_that_is_dropped() {
    on_each(|place| {
        place.install(COUNTER);
        let mut transaction = place.store.begin();
        transaction.put(&place.keyspace, "a", "100").unwrap();
        assert_eq!(place.call("a", "add", "5").unwrap(), "5");
        transaction.rollback();
        assert_eq!(place.call("a", "get", "").unwrap(), "5");
    });
}

/// O1.
#[test]
fn a_map_is_no_object() {
    on_each(|place| {
        place.install(COUNTER);
        place.call("a", "note", "x").unwrap();
        let failure = place.call("a\0m", "add", "1").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::InvalidArgument, "{failure}");
        let mut transaction = place.store.begin();
        let wanted = place.wanted("add", "1");
        let in_one = place.classes.call_in(&mut transaction, &place.keyspace, "a\0m", &wanted);
        assert_eq!(in_one.unwrap_err().kind(), ErrorKind::InvalidArgument);
    });
}

#[test]
fn a_key_without_room_for_its_companion_is_refused() {
    on_each(|place| {
        place.install(COUNTER);
        let key = "k".repeat(1023);
        let failure = place.call(&key, "add", "1").unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::InvalidArgument, "{failure}");
    });
}
