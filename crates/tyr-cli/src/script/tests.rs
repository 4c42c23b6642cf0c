//! Scripts that parse, and complaints about those that do not.

use super::*;

fn one(line: &str) -> Step {
    let mut steps = parse(line.as_bytes()).unwrap();
    assert_eq!(steps.len(), 1, "{line}");
    steps.remove(0)
}

fn complaint(script: &[u8]) -> String {
    parse(script).unwrap_err().to_string()
}

#[test]
fn every_form_parses_to_the_action_of_its_name() {
    for (name, form) in FORMS {
        let line = form
            .replace("OFFSET", "8")
            .replace("LEN", "4KiB")
            .replace("KIND TYPE VALUE", "sub i32 -7")
            .replace("TYPE RELATION VALUE", "i32 <= -7")
            .replace("KEYSPACE", "ks")
            .replace("PREFIX", "KEY");
        let step = one(&line);
        assert_eq!(step.action.name(), name);
        assert_eq!((step.keyspace.as_str(), step.key.as_bytes()), ("ks", &b"KEY"[..]));
    }
}

#[test]
fn operands_arrive_in_their_places() {
    assert_eq!(
        one("write ks 'a b' 16 'x'").action,
        Action::Write { offset: 16, data: Data::from("x") }
    );
    assert_eq!(one("read ks k 1 2").action, Action::Read { offset: 1, len: 2 });
    let sub = Transform::new(TransformKind::Sub, Number::I32(-7)).unwrap();
    assert_eq!(one("apply ks k 8 sub i32 -7").action, Action::Apply { offset: 8, transform: sub });
    let (relation, value) = (Relation::GreaterOrEqual, Number::U64(7));
    let compared = Action::CompareNumber { offset: 8, relation, value };
    assert_eq!(one("compare-number ks k 8 u64 >= 7").action, compared);
    assert_eq!(one("delete ks hex:00ff").key.as_bytes(), [0, 255]);
}

#[test]
fn lines_are_counted_through_comments_and_blank_lines() {
    let steps = parse(b"# first\n\ncreate ks a\r\n  # more\nstat ks a\n").unwrap();
    assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [3, 5]);
    assert!(parse(b"").unwrap().is_empty());
}

#[test]
fn complaints_name_the_line_and_the_form() {
    let text = complaint(b"create ks a\nwrite ks a 0\n");
    assert!(text.starts_with("line 2: "), "{text}");
    assert!(text.contains("write KEYSPACE KEY OFFSET DATA"), "{text}");
    assert!(complaint(b"frob ks a").contains("append-at"));
    assert!(complaint(b"apply ks a 0 plus u64 1").contains("xor"));
    assert!(complaint(b"apply ks a 0 add u65 1").contains("f64"));
    assert!(complaint(b"compare-number ks a 0 u8 == 1").contains("=, !=, <, <=, >, >="));
    assert!(complaint(b"compare-number ks a 0 u8 = 256").contains("not a number of type u8"));
    assert!(complaint(b"apply ks a 0 div u8 0").contains("zero"));
    assert!(complaint(b"truncate ks a -1").contains("size"));
    assert!(complaint(b"create ks ''").contains("1024"));
    assert!(complaint(b"\n\nput ks \xff x").starts_with("line 3: it is not UTF-8"));
}
