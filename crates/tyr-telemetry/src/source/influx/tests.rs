//! The line protocol's grammar, and what its lines become.

use super::*;
use crate::fixture::Fixture;

fn fields<'a>(line: &'a Line<'_>) -> Vec<(&'a str, FieldValue)> {
    line.fields.iter().map(|(key, value)| (key.as_ref(), *value)).collect()
}

#[test]
fn every_type_of_value_is_understood() {
    let text = r#"m,a=b f1=1.5,f2=-2e3,f3=3i,f4=18446744073709551615u,f5=t,f6=FALSE,"#.to_owned()
        + r#"f7="a,b=c \"d\"",f8=1 -7"#;
    let line = parse(&text).unwrap();
    use FieldValue::{Number, Text};
    assert_eq!(
        fields(&line),
        [
            ("f1", Number(1.5)),
            ("f2", Number(-2000.0)),
            ("f3", Number(3.0)),
            ("f4", Number(18_446_744_073_709_551_615.0)),
            ("f5", Number(1.0)),
            ("f6", Number(0.0)),
            ("f7", Text),
            ("f8", Number(1.0)),
        ]
    );
    assert_eq!(line.timestamp, Some(-7));
}

#[test]
fn escapes_hold_in_names_and_tag_values_only_where_the_protocol_has_them() {
    let line = parse(r"my\ m\,x=y\=,tag\ k\=1=v\,a\ l\\ue\n f\=\,\ d=1").unwrap();
    assert_eq!(line.measurement, r"my m,x=y\=");
    assert_eq!(line.tags, [("tag k=1".into(), r"v,a l\\ue\n".into())]);
    assert_eq!(fields(&line), [("f=, d", FieldValue::Number(1.0))]);
}

#[test]
fn lines_that_are_wrong_say_why() {
    for (bad, why) in [
        ("m", "no field"),
        ("m ", "no field"),
        (",a=b f=1", "no measurement"),
        ("m,a f=1", "tag \"a\" has no value"),
        ("m,a= f=1", "empty"),
        ("m,=b f=1", "empty"),
        ("m f", "field \"f\" has no value"),
        ("m f=", "not a value"),
        ("m f=1,", "field has no name"),
        ("m f=1,g", "field \"g\" has no value"),
        ("m f=text", "strings are quoted"),
        ("m f=nan", "not a value"),
        ("m f=inf", "not a value"),
        ("m f=1.5i", "not a value"),
        ("m f=-1u", "not a value"),
        ("m f=\"open", "does not end"),
        ("m f=\"a\"b", "follows"),
        ("m f=1 noon", "not a timestamp"),
        ("m f=1 1 2", "not a timestamp"),
    ] {
        let error = parse(bad).unwrap_err();
        assert!(error.0.contains(why), "{bad}: {error}");
    }
}

#[test]
fn lines_are_counted_through_comments_breaks_in_strings_and_carriage_returns() {
    let body = b"# say \"hello\n\nm f=1\r\nm s=\"two\nlines\",f=2 5\nbad\n\xFF\xFE f=1\n  m f=3";
    let lines: Vec<(usize, bool)> =
        Lines::new(body).map(|(number, line)| (number, line.is_ok())).collect();
    assert_eq!(lines, [(3, true), (4, true), (6, false), (7, false), (8, true)]);
}

#[test]
fn a_quote_that_never_ends_costs_only_its_line() {
    let lines: Vec<_> = Lines::new(b"m f=1\nm f=\"open\nm f=2\nm f=3\n").collect();
    let good: Vec<usize> =
        lines.iter().filter(|(_, line)| line.is_ok()).map(|(number, _)| *number).collect();
    assert_eq!(good, [1, 3, 4]);
    assert_eq!(lines.len(), 4);
}

#[test]
fn any_bytes_give_lines_or_errors() {
    let whole = br#"m\ x,tag=a\,b f="q\"",g=1i 123
other f=1"#;
    for at in 0..whole.len() {
        for wrong in [0, b'\n', b'"', b'\\', b'=', b',', b' ', 0xFF] {
            let mut body = whole.to_vec();
            body[at] = wrong;
            assert!(Lines::new(&body).count() <= 3);
        }
    }
}

#[test]
fn precisions_are_rounded_down_to_microseconds() {
    for (name, timestamp, time_us) in
        [("ns", -1, -1), ("us", 7, 7), ("ms", 7, 7000), ("s", 7, 7_000_000), ("", 1999, 1)]
    {
        assert_eq!(Precision::parse(name).unwrap().to_us(timestamp), time_us, "{name}");
    }
    assert!(Precision::parse("days").is_err());
    assert_eq!(Precision::Hours.to_us(i64::MAX), i64::MAX);
}

#[tokio::test]
async fn good_lines_are_recorded_and_the_others_named() {
    let fixture = Fixture::new().await;
    let intake = fixture.intake("influx");
    let (tags, defaults) = (TagNames::default(), default_names());
    let writer = LineWriter { intake: &intake, tags: &tags, defaults: &defaults };
    let body = b"cpu,host=h1,site=cern,core=3 usage=1.5,idle=2,name=\"x\" 1700000000\n\
        broken\n\
        cpu,host=h1 usage=1e300 1700000000\n\
        cpu,host=h1 usage=1 9223372036854775807\n\
        cpu,host=h1 usage=3\n";
    let report = writer.write(body, Precision::Seconds, 1_700_000_060_000_000).await;
    assert_eq!((report.lines, report.lines_refused, report.counts.stored), (5, 3, 3));
    assert_eq!(report.counts.ignored, 1);
    let numbers: Vec<usize> = report.line_errors.iter().map(|error| error.line).collect();
    assert_eq!(numbers, [2, 3, 4]);
    let all = crate::query::CatalogFilter::default();
    let catalog = fixture.telemetry.catalog(&all, 10).await.unwrap();
    let parameters: Vec<&str> =
        catalog.entries.iter().map(|entry| entry.series.parameter.as_str()).collect();
    assert_eq!(parameters, ["cpu.idle{core=3}", "cpu.usage{core=3}", "cpu.usage"]);
    fixture.verify_clean(3).await;
}
