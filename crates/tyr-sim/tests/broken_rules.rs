//! Each rule of `docs/design.md` taken away in turn: the checkers notice.
//!
//! A rule whose absence nobody notices is dead, or nobody checks what it is for. So for each there
//! is a scenario of the library and a range of seeds in which something is found wrong without it;
//! the first is one that is known to notice, the others are there because every change of what is
//! sent makes another run of a seed. The same scenarios run with all rules in place in every sweep.
//!
//! The table in `ARCHITECTURE.md` says the same for readers; here it is held to what there is.

use std::collections::BTreeSet;

use tyr_protocol::Rule;
use tyr_sim::report::Report;
use tyr_sim::scenario::library;
use tyr_sim::scenario::parse::parse;
use tyr_sim::trial::{self, Manner};

/// A rule to take away, and where that is noticed.
#[derive(Clone, Copy)]
struct Missing {
    rule: Rule,
    scenario: &'static str,
    /// A seed that noticed when this was last looked at.
    first: u64,
    /// So many seeds are tried from it on.
    most: u64,
}

const fn missing(rule: Rule, scenario: &'static str, first: u64, most: u64) -> Missing {
    Missing { rule, scenario, first, most }
}

const COMMIT: &[Missing] = &[
    missing(Rule::C1, "hot-pairs", 0, 20),
    missing(Rule::C2, "hot-join", 0, 60),
    missing(Rule::C3, "power", 2, 30),
    missing(Rule::C4, "hot-pairs", 0, 20),
    missing(Rule::C5, "hot-pairs", 0, 20),
    missing(Rule::C6, "hot-pairs", 0, 20),
    missing(Rule::C6Chunk, "borders", 0, 20),
    missing(Rule::C7, "hot-pairs", 0, 20),
    missing(Rule::C8, "hot-pairs", 0, 20),
    missing(Rule::C9, "hot-pairs", 4, 60),
    missing(Rule::C10, "stamps", 0, 20),
    missing(Rule::End, "ends", 0, 20),
];

const READS: &[Missing] = &[
    missing(Rule::R1, "hot-pairs", 0, 60),
    missing(Rule::R2, "hot-pairs", 4, 200),
    missing(Rule::R3, "hot-pairs", 0, 60),
    missing(Rule::R4, "long-snapshots", 0, 20),
    missing(Rule::R5, "hot-pairs", 0, 20),
    missing(Rule::R6, "quiet-clocks", 0, 60),
    missing(Rule::R7, "ends", 0, 20),
    missing(Rule::Q1, "pages", 0, 20),
    missing(Rule::Q2, "pages", 0, 20),
    missing(Rule::Q3, "rooms", 0, 20),
];

const VERSIONS: &[Missing] = &[
    missing(Rule::V1, "held-snapshots", 0, 20),
    missing(Rule::V2, "held-snapshots", 0, 20),
    missing(Rule::V3, "held-snapshots", 0, 20),
    missing(Rule::V4, "long-snapshots", 0, 20),
    missing(Rule::V5, "held-moments", 0, 20),
    missing(Rule::V7, "kept", 2, 20),
];

const KEY_LEASES: &[Missing] = &[
    missing(Rule::K1, "locks", 0, 10),
    missing(Rule::K2, "caches", 0, 4),
    missing(Rule::K3, "locks", 0, 20),
    missing(Rule::K5, "watches", 0, 20),
    missing(Rule::K6, "notices", 0, 20),
    missing(Rule::K7, "group-caches", 0, 20),
];

const RECOVERY: &[Missing] = &[
    missing(Rule::F1, "hot-join", 9, 60),
    missing(Rule::F2, "late", 2, 60),
    missing(Rule::F3, "late", 0, 60),
    missing(Rule::F4, "late", 2, 60),
    missing(Rule::F6, "late", 1, 60),
    missing(Rule::F13, "majority", 0, 20),
];

const MAPS: &[Missing] = &[
    missing(Rule::M3, "isolated", 2, 60),
    missing(Rule::M3Wait, "isolated", 0, 60),
    missing(Rule::M4, "crashes", 0, 60),
    missing(Rule::D1, "join", 0, 20),
    missing(Rule::D2, "drain", 1, 30),
    missing(Rule::D3, "join", 0, 20),
    missing(Rule::D4, "rot", 0, 20),
    missing(Rule::D5, "rolling", 0, 10),
];

const CHECKPOINTS: &[Missing] =
    &[missing(Rule::L1, "cut-join", 0, 20), missing(Rule::L2, "cut-join", 0, 20)];

const UPLOADS: &[Missing] = &[
    missing(Rule::U1, "uploads-late", 0, 20),
    missing(Rule::U2, "uploads", 0, 20),
    missing(Rule::U3, "uploads-hot", 6, 40),
    missing(Rule::U4, "uploads-grow", 0, 20),
    missing(Rule::U5, "copies", 0, 20),
];

/// Those that whole clusters do not miss, and the test of the machine that does.
const ELSEWHERE: &[(Rule, &str)] = &[
    // Nothing else is wrong then: layers above ask once more.
    (Rule::C12, "without_c12_an_abort_does_not_say_which_condition_it_is_for"),
    // Without it the others ask, sooner or later (F6): it only makes them wait less.
    (Rule::F5, "without_a_word_from_the_new_authority_others_hold_on_to_what_is_stable"),
    // Two attempts of one number take a blob that ends elsewhere than was thought and a client that
    // asks at that moment; the others a head that is lost between two messages, or a message that
    // is a minute late.
    (Rule::F8, "without_f8_a_node_begins_one_attempt_twice"),
    (Rule::F9, "without_f9_an_abort_that_was_answered_commits_when_its_head_is_lost"),
    // Who has forgotten says so (F11), and who has a part of the answers does not answer.
    (Rule::F10, "without_f10_half_of_a_transaction_is_lost_after_a_long_cut"),
    (Rule::F11, "without_f11_a_message_that_comes_late_runs_a_transaction_twice"),
    (Rule::F12, "without_f12_a_question_runs_what_was_answered_as_aborted"),
    // The one that has applied it goes down while the others wait, then power: one seed in 1,500.
    (Rule::F14, "without_f14_what_was_shown_is_run_again_at_another_place"),
    // A node has to start again between two messages of who takes it for gone: one seed in
    // hundreds.
    (Rule::M4Order, "without_m4_order_who_has_started_again_is_declared_down"),
    // It takes a copy that is late, a log that is cut meanwhile, and a crash just after: one seed
    // in some sixty.
    (Rule::L3, "without_it_what_waits_for_a_base_is_lost_with_the_log"),
    // It takes a move, a checkpoint that is ahead of what the log has of it, power, and a client
    // that has not heard yet: one seed in tens of thousands.
    (Rule::L4, "without_l4_it_is_computed_again_on_nothing"),
];

fn run(missing: Missing, seed: u64, broken: Option<Rule>) -> Report {
    let named = library::named(missing.scenario).expect("the table names scenarios of the library");
    let manner = Manner { broken, ..Manner::default() };
    trial::run(&named.scenario, seed, manner).expect("a scenario of the library runs")
}

/// Tries seeds until one notices, and says which.
fn is_noticed(missing: Missing) -> bool {
    let Missing { rule, scenario, first, most } = missing;
    for seed in first..first + most {
        if let Some(violation) = run(missing, seed, Some(rule)).violations.first() {
            let tried = seed - first + 1;
            println!(
                "without {rule:?}: noticed at seed {seed} of {scenario} after {tried} seeds: \
                 {violation}"
            );
            return true;
        }
    }
    println!("without {rule:?}: nobody noticed in {most} seeds of {scenario} from {first} on");
    false
}

/// Tries all, so that one run tells of everything that has to be found anew.
fn are_noticed(table: &[Missing]) {
    let unnoticed: Vec<Rule> =
        table.iter().filter(|it| !is_noticed(**it)).map(|it| it.rule).collect();
    assert!(unnoticed.is_empty(), "nobody misses {unnoticed:?}");
}

#[test]
fn the_rules_of_commit_are_missed_when_they_are_taken_away() {
    are_noticed(COMMIT);
}

#[test]
fn the_rules_of_key_leases_are_missed_when_they_are_taken_away() {
    are_noticed(KEY_LEASES);
}

/// K4 is of the public crate: here who holds a lock does without.
#[test]
fn without_fences_two_holders_of_a_lock_write_the_same() {
    let named = library::named("locks").expect("the library has it");
    let unfenced = named.text.replace("workload locks locks 3", "workload locks locks 3 fenced 0");
    let scenario = parse(&unfenced).expect("it is a scenario");
    let is_noticed = |seed| {
        let report = trial::run(&scenario, seed, Manner::default()).expect("it runs");
        report.violations.iter().any(|violation| violation.contains("both made cell"))
    };
    assert!((0..20).any(is_noticed), "nobody misses K4");
}

/// C1: calls that commit though what they have read has changed.
#[test]
fn calls_that_are_not_validated_are_noticed() {
    assert!(is_noticed(missing(Rule::C1, "calls", 0, 20)), "nobody misses C1");
}

/// Here clients go by what they have read of a class for longer than who replaces it waits.
#[test]
fn calls_of_a_class_that_was_replaced_long_before_are_noticed() {
    let named = library::named("calls").expect("the library has it");
    let text = named.text.replace("objects 3", "objects 3 kept 3000");
    let scenario = parse(&text).expect("it is a scenario");
    let is_noticed = |seed| {
        let report = trial::run(&scenario, seed, Manner::default()).expect("it runs");
        report.violations.iter().any(|violation| violation.contains("replaced by"))
    };
    assert!((0..20).any(is_noticed), "nobody notices");
}

#[test]
fn the_rules_of_reads_are_missed_when_they_are_taken_away() {
    are_noticed(READS);
}

#[test]
fn the_rules_of_versions_are_missed_when_they_are_taken_away() {
    are_noticed(VERSIONS);
}

#[test]
fn the_rules_of_recovery_are_missed_when_they_are_taken_away() {
    are_noticed(RECOVERY);
}

#[test]
fn the_rules_of_leases_and_moves_are_missed_when_they_are_taken_away() {
    are_noticed(MAPS);
}

#[test]
fn the_rules_of_checkpoints_are_missed_when_they_are_taken_away() {
    are_noticed(CHECKPOINTS);
}

#[test]
fn the_rules_of_uploads_are_missed_when_they_are_taken_away() {
    are_noticed(UPLOADS);
}

fn tables() -> impl Iterator<Item = Missing> {
    [COMMIT, READS, VERSIONS, RECOVERY, MAPS, CHECKPOINTS, KEY_LEASES, UPLOADS]
        .into_iter()
        .flatten()
        .copied()
}

#[test]
fn the_same_seeds_are_clean_with_every_rule_in_place() {
    let mut seen = BTreeSet::new();
    for missing in tables().filter(|it| seen.insert((it.scenario, it.first))) {
        let violations = run(missing, missing.first, None).violations;
        let Missing { scenario, first, .. } = missing;
        assert!(violations.is_empty(), "seed {first} of {scenario}: {violations:?}");
    }
}

/// A snapshot that waited for its first answer was not counted, so what it read could go (V1).
#[test]
fn a_snapshot_keeps_what_it_reads_from_the_arrival_of_its_first_read_on() {
    let violations = run(missing(Rule::V1, "hot-snapshots", 43, 1), 43, None).violations;
    assert!(violations.is_empty(), "{violations:?}");
}

#[test]
fn every_rule_is_taken_away_somewhere_once() {
    let here = tables().map(|it| it.rule).chain(ELSEWHERE.iter().map(|it| it.0));
    let mut rules: Vec<Rule> = here.collect();
    for rule in &Rule::ALL {
        let place = rules.iter().position(|other| other == rule);
        let place = place.unwrap_or_else(|| panic!("nobody takes {rule:?} away"));
        rules.swap_remove(place);
    }
    assert!(rules.is_empty(), "{rules:?} are taken away twice");
}

/// A document of the repository.
fn document(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = std::fs::read_to_string(format!("{root}/{path}"));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of the table of rules, by their first cell.
fn rows(architecture: &str) -> Vec<(String, String)> {
    let title = "## Rules, and what notices when one is missing";
    let (_, after) = architecture.split_once(title).expect("the table has its title");
    let section = after.split("\n## ").next().unwrap_or(after);
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let cell = |row: &str| row.split('|').nth(1).map(|cell| cell.trim().to_owned());
    rows.filter_map(|row| Some((cell(row)?, row.to_owned()))).collect()
}

/// The numbers of the rules that the design states, what is only planned left out. Of one the
/// letter is all there is (H).
fn numbers(design: &str) -> BTreeSet<String> {
    let (stated, _) = design.split_once("\n# What is planned").expect("the design has both parts");
    let bold = stated.split("**").skip(1).step_by(2);
    let is_number = |word: &&str| {
        let digits = word.strip_prefix(|c: char| c.is_ascii_uppercase());
        digits.is_some_and(|digits| digits.chars().all(|c| c.is_ascii_digit()))
    };
    bold.filter(is_number).map(str::to_owned).collect()
}

#[test]
fn the_table_of_rules_names_every_rule_and_where_it_is_missed() {
    let architecture = document("ARCHITECTURE.md");
    let rows = rows(&architecture);
    let row = |name: &str| {
        let found = rows.iter().find(|(first, _)| first == name);
        &found.unwrap_or_else(|| panic!("the table of rules has no row {name}")).1
    };
    for missing in tables() {
        let (name, scenario) = (format!("{:?}", missing.rule), missing.scenario);
        assert!(row(&name).contains(scenario), "{name} is missed in {scenario}");
    }
    for (rule, test) in ELSEWHERE {
        assert!(row(&format!("{rule:?}")).contains(test), "{rule:?} is missed by {test}");
    }
    let numbers = numbers(&document("docs/design.md"));
    assert!(numbers.len() > 30, "the design's rules are found: {numbers:?}");
    let letters: String = numbers.iter().filter_map(|number| number.chars().next()).collect();
    assert!("BCDFHKLMOQRSUV".chars().all(|it| letters.contains(it)), "of each kind: {letters}");
    numbers.iter().for_each(|number| assert!(!row(number).is_empty()));
    let names: BTreeSet<String> = Rule::ALL.iter().map(|rule| format!("{rule:?}")).collect();
    let headings = ["rule", "---"];
    for (first, _) in rows.iter().filter(|(first, _)| !headings.contains(&first.as_str())) {
        let is_rule = numbers.contains(first) || names.contains(first);
        assert!(is_rule, "the table of rules has a row of no rule: {first}");
    }
}
