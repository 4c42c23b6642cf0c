//! Tests of the search: small complete ones, and that it finds what rules are for.

use tyr_protocol::Rule;

use super::case::{Act, CLOCKS, LAYOUTS, Plan};
use super::*;

/// Where the blobs lie, by place in [`LAYOUTS`].
const APART: usize = 0;
const OVERLAPPING: usize = 2;
const TOGETHER: usize = 4;

const HEALTHY: Mishaps = Mishaps { crashes: 0, losses: 0, impatience: 0, forgettings: 0 };
const CRASH: Mishaps = Mishaps { crashes: 1, ..HEALTHY };
const LOSS: Mishaps = Mishaps { losses: 1, ..HEALTHY };
const IMPATIENCE: Mishaps = Mishaps { impatience: 1, ..HEALTHY };
const FORGETTING: Mishaps = Mishaps { forgettings: 1, ..HEALTHY };

/// A case of so many transactions, with clocks that disagree.
fn case(name: &str, layout: usize, transactions: usize) -> Case {
    let case = Case::named(name, LAYOUTS[layout], CLOCKS[1]);
    case.expect("a case of the library").first(transactions)
}

/// Explores all of it; answers the number of states.
fn complete(case: Case, mishaps: Mishaps) -> usize {
    let text = format!("{case:?}");
    let findings = explore(case, Bounds { mishaps, ..Bounds::default() });
    if let Some(Violation { what, run }) = findings.violation {
        panic!("{text}: {what}\n{}", run.join("\n"));
    }
    assert!(findings.is_complete && findings.ends > 0, "{text}");
    findings.states
}

#[test]
fn all_orders_of_three_transactions_keep_every_promise() {
    let mut states = 0;
    for name in ["mixed", "crossed", "compare", "after", "read", "append"] {
        states += complete(case(name, APART, 3), HEALTHY);
    }
    for name in ["crossed", "compare", "after", "read"] {
        states += complete(case(name, OVERLAPPING, 3), HEALTHY);
    }
    for name in ["mixed", "crossed", "compare", "read"] {
        states += complete(case(name, TOGETHER, 3), HEALTHY);
    }
    assert!(states > 200_000, "{states}");
}

/// F1 to F7.
#[test]
fn a_node_may_go_down_at_any_moment() {
    let mut states = complete(case("crossed", OVERLAPPING, 2), CRASH);
    states += complete(case("mixed", TOGETHER, 2), CRASH);
    states += complete(case("read", TOGETHER, 2), CRASH);
    for layout in [OVERLAPPING, OVERLAPPING + 1, TOGETHER] {
        states += complete(case("mixed", layout, 1), CRASH);
    }
    assert!(states > 60_000, "{states}");
}

/// F4, F6.
#[test]
fn any_message_may_be_lost_and_anyone_may_ask_too_early() {
    let mut states = 0;
    for mishaps in [LOSS, IMPATIENCE] {
        states += complete(case("compare", APART, 2), mishaps);
        states += complete(case("after", TOGETHER, 1), mishaps);
    }
    assert!(states > 5_000, "{states}");
}

/// F10, F11.
#[test]
fn what_all_are_done_with_may_be_forgotten_at_any_moment() {
    let mut states = complete(case("after", APART, 1), Mishaps { losses: 1, ..FORGETTING });
    states += complete(case("after", APART, 1), Mishaps { impatience: 1, ..FORGETTING });
    states += complete(case("read", TOGETHER, 1).returning(), FORGETTING);
    states += complete(case("read", OVERLAPPING, 1), Mishaps { crashes: 1, ..FORGETTING });
    assert!(states > 50_000, "{states}");
}

/// F9, F12.
#[test]
fn a_node_may_go_down_where_somebody_asks_too_early() {
    let states = complete(case("read", OVERLAPPING, 1), Mishaps { impatience: 1, ..CRASH });
    assert!(states > 5_000, "{states}");
}

#[test]
fn what_sleeps_hides_no_state() {
    let cases = [
        (case("read", OVERLAPPING, 1), Mishaps { crashes: 1, ..FORGETTING }),
        (case("read", TOGETHER, 1).returning(), FORGETTING),
        (case("after", APART, 1), Mishaps { impatience: 1, ..FORGETTING }),
        (case("after", APART, 3), HEALTHY),
        (case("after", TOGETHER, 1), CRASH),
        (case("mixed", OVERLAPPING, 1), CRASH),
        (case("compare", APART, 2), IMPATIENCE),
        (case("crossed", APART, 2), LOSS),
    ];
    for (case, mishaps) in cases {
        let text = format!("{case:?}");
        let [reduced, full] = [true, false].map(|is_reduced| {
            let bounds = Bounds { mishaps, is_reduced, ..Bounds::default() };
            explore(case.clone(), bounds)
        });
        assert_eq!((reduced.states, reduced.ends), (full.states, full.ends), "{text}");
        assert!(reduced.transitions < full.transitions, "{text}");
    }
}

#[test]
fn a_search_stops_at_its_bound_and_says_so() {
    let bounds = Bounds { states_max: 100, ..Bounds::default() };
    let findings = explore(case("mixed", OVERLAPPING, 3), bounds);
    assert!(!findings.is_complete && findings.violation.is_none());
    assert_eq!(findings.states, 100);
}

#[test]
fn the_search_finds_what_each_rule_of_forgetting_is_for() {
    let with = |impatience| Mishaps { impatience, ..FORGETTING };
    let rules = [
        (Rule::F10, case("after", OVERLAPPING, 1).returning(), "replicas of blob 0 differ"),
        (Rule::F11, case("after", APART, 1), "ended Committed"),
    ];
    for (rule, case, expected) in rules {
        let Violation { what, run } = without(rule, case, with(1));
        assert!(what.contains(expected), "without {rule:?}: {what}\n{}", run.join("\n"));
    }
}

/// F12: a condition does not hold yet, and its client is told so; later it would, but who refused
/// it is lost, and nobody else has it when the client's second question comes.
#[test]
fn the_search_finds_what_questions_run_nothing_for() {
    let plan = |acts: &[Act], after| Plan { acts: acts.to_vec(), after };
    let plans =
        vec![plan(&[Act::Compare(0, 1), Act::Write(1)], None), plan(&[Act::Write(0)], Some(0))];
    let case = Case { plans, ..case("compare", TOGETHER, 2) };
    let mishaps = Mishaps { impatience: 1, ..CRASH };
    let Violation { what, run } = without(Rule::F12, case, mishaps);
    let expected = "was Some(Aborted(Conflict)), and is now Committed";
    assert!(what.contains(expected), "{what}\n{}", run.join("\n"));
}

/// What is wrong when the rule does not hold.
fn without(rule: Rule, case: Case, mishaps: Mishaps) -> Violation {
    let bounds = Bounds { mishaps, broken: Some(rule), ..Bounds::default() };
    let findings = explore(case, bounds);
    let states = findings.states;
    let violation = findings.violation;
    let violation =
        violation.unwrap_or_else(|| panic!("nobody misses {rule:?} in {states} states"));
    println!("without {rule:?}: noticed after {states} states: {}", violation.what);
    violation
}

#[test]
fn the_search_finds_what_each_rule_of_commit_is_for() {
    let rules = [
        (Rule::C1, "mixed", OVERLAPPING, "in timestamp order"),
        (Rule::C2, "mixed", OVERLAPPING, "in timestamp order"),
        (Rule::C6, "mixed", OVERLAPPING, "is applied after"),
        (Rule::C7, "after", APART, "not strictly serializable"),
        (Rule::C8, "mixed", APART, "is applied after"),
        (Rule::C9, "after", APART, "not strictly serializable"),
    ];
    for (rule, name, layout, expected) in rules {
        let Violation { what, run } = without(rule, case(name, layout, 3), HEALTHY);
        assert!(what.contains(expected), "without {rule:?}: {what}\n{}", run.join("\n"));
    }
}

#[test]
fn the_search_finds_what_each_rule_of_recovery_is_for() {
    let rules = [
        (Rule::F2, "read", 2, CRASH, "is applied after"),
        (Rule::F3, "read", 2, IMPATIENCE, "is applied after"),
        (Rule::F4, "mixed", 1, CRASH, "is applied after"),
        (Rule::F6, "mixed", 1, LOSS, "still open"),
    ];
    for (rule, name, transactions, mishaps, expected) in rules {
        let case = case(name, TOGETHER, transactions);
        let Violation { what, run } = without(rule, case, mishaps);
        assert!(what.contains(expected), "without {rule:?}: {what}\n{}", run.join("\n"));
        assert!(!run.is_empty(), "without {rule:?}");
    }
}
