//! Small answers in every format.

use super::*;
use crate::calendar::{MINUTE_US, Window};
use crate::query::Point;
use crate::subject::Scope;

fn answer(means: &[f64]) -> AggregateSeries {
    let point = |(minute, mean): (i64, &f64)| Point {
        start_us: minute * MINUTE_US,
        count: 2,
        sum: mean * 2.0,
        mean: *mean,
        min: mean - 1.0,
        max: mean + 1.0,
    };
    AggregateSeries {
        scope: Scope::Site,
        names: vec!["cern".into()],
        parameter: "load".into(),
        window: Window::Minute,
        points: (0..).zip(means).map(point).collect(),
        is_cut: false,
    }
}

#[test]
fn a_table_is_aligned_and_shortened() {
    let text = render(&answer(&[1.0 / 3.0, 1000.0]), Format::Table, 80);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "time                  count       sum      mean        min      max");
    assert_eq!(lines[1], "1970-01-01T00:00:00Z      2  0.666667  0.333333  -0.666667  1.33333");
    assert_eq!(lines[2], "1970-01-01T00:01:00Z      2      2000      1000        999     1001");
}

#[test]
fn csv_keeps_every_digit_and_quotes() {
    let text = render(&answer(&[1.0 / 3.0]), Format::Csv, 80);
    assert!(text.starts_with("time,count,sum,mean,min,max\n"), "{text}");
    assert!(text.contains(",2,0.6666666666666666,0.3333333333333333,"), "{text}");
    let rows = Rows { heads: vec!["a"], rows: vec![vec!["x,\"y".into()]], note: None };
    assert_eq!(csv::write(&rows), "a\n\"x,\"\"y\"\n");
}

#[test]
fn json_is_the_answer_itself() {
    let text = render(&answer(&[0.5]), Format::Json, 80);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["scope"], "site");
    assert_eq!(json["window"], "minute");
    assert_eq!(json["points"][0]["mean"], 0.5);
    assert_eq!(json["points"][0]["count"], 2);
}

#[test]
fn a_chart_rises_with_its_values_and_leaves_gaps() {
    let mut rising = answer(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    rising.points.remove(3);
    let text = render(&rising, Format::Chart, 60);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "mean load of site cern, by the minute");
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[1], "7 ┤       █");
    assert_eq!(lines[8].chars().take(7).collect::<String>(), "0 ┤▁██ ");
    assert!(lines[9].contains("1970-01-01T00:00:00Z  1970-01-01T00:07:00Z"));
}

#[test]
fn charts_of_nothing_of_one_and_of_huge_values_are_drawn() {
    assert!(render(&answer(&[]), Format::Chart, 60).contains("nothing"));
    assert!(render(&answer(&[3.0]), Format::Chart, 60).contains('▁'));
    assert!(render(&answer(&[-1e308, 1e308]), Format::Chart, 0).contains('█'));
    assert_eq!(render(&answer(&[]), Format::Table, 60), "Nothing.\n");
}

#[test]
fn the_labels_of_a_chart_tell_what_they_stand_for_apart() {
    let text = render(&answer(&[1_000_000.1, 1_000_000.2]), Format::Chart, 60);
    assert!(text.contains("1000000.1 ┤") && text.contains("1000000.2 ┤"), "{text}");
    let text = render(&answer(&[5.0, 5.0, 5.0]), Format::Chart, 60);
    assert_eq!(text.matches("5 ┤").count(), 1, "all are the same: {text}");
    let text = render(&answer(&[3.0]), Format::Chart, 60);
    assert_eq!(text.matches("1970-01-01T00:00:00Z").count(), 1, "one time: {text}");
}

#[test]
fn numbers_show_the_digits_that_count() {
    for (number, text) in [
        (0.0, "0"),
        (-12.0, "-12"),
        (1234.5678, "1234.57"),
        (0.000_123_456_7, "0.000123457"),
        (1e-7, "1.00000e-7"),
        (1.5e20, "1.50000e20"),
        (123_456.7, "123457"),
        (f64::NAN, "-"),
    ] {
        assert_eq!(format_number(number), text);
    }
}
