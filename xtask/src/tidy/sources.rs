//! Rust files: how they open, how long they are, what must not stand in them, what they are called.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::tree::Tree;

/// Lines of a file without its tests. There to make us think: one file, one noun and its verbs.
const PRODUCTION_LINES_MAX: usize = 500;

/// Lines of tests inside a file. STYLE.md says about 200; beyond this the code gets lost.
const INLINE_TEST_LINES_MAX: usize = 250;

/// Characters of a line, as in rustfmt.toml, which does not break comments and strings.
const LINE_LEN_MAX: usize = 100;

/// Names that say nothing: what would go there has a better one.
const EMPTY_NAMES: [&str; 9] =
    ["utils", "util", "common", "helpers", "helper", "manager", "core", "misc", "shared"];

/// Marks of unfinished work, as whole words. Spelled in halves, for this file is checked too.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Code that stands for code that is not there, and tests that do not run.
const UNFINISHED_CODE: [&str; 3] =
    [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("#[ig", "nore")];

/// A predicate of an enum that a new variant passes by in silence.
const SILENT_PREDICATES: [&str; 2] =
    [concat!("matches!", "(self,"), concat!("matches!", "(*self,")];

/// Checks every Rust file, and every text file for marks of unfinished work.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let rules = known_rules(tree.text("docs/design.md").unwrap_or_default());
    let mut findings = Vec::new();
    for (path, text) in tree.with_ending(".rs") {
        findings.extend(check_opening(path, text));
        findings.extend(check_length(path, text));
        findings.extend(check_name(path));
        findings.extend(check_lines(path, text));
        findings.extend(check_predicates(path, text));
        if is_numbered(path) {
            findings.extend(check_citations(path, text, &rules));
        }
    }
    for (path, text) in &tree.files {
        findings.extend(check_finished(path, text));
    }
    findings
}

fn check_opening(path: &str, text: &str) -> Option<Finding> {
    let remedy = "open the file with //!: what it is, why it is so, what it must not know";
    (!text.starts_with("//!")).then(|| Finding::new(path, 1, "no module doc", remedy))
}

fn check_length(path: &str, text: &str) -> Vec<Finding> {
    if is_test_file(path) {
        return Vec::new();
    }
    let (production, tests) = count_lines(text);
    let mut findings = Vec::new();
    if production > PRODUCTION_LINES_MAX {
        let what = format!("{production} lines without tests, the bound is {PRODUCTION_LINES_MAX}");
        let remedy = "find the second noun in it and give that a file";
        findings.push(Finding::new(path, 1, what, remedy));
    }
    if tests > INLINE_TEST_LINES_MAX {
        let what = format!("{tests} lines of tests inside, the bound is {INLINE_TEST_LINES_MAX}");
        let stem = path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        findings.push(Finding::new(path, 1, what, format!("move them to {stem}/tests.rs")));
    }
    findings
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}

/// Lines of production code, and of test modules that stand in the same file.
fn count_lines(text: &str) -> (usize, usize) {
    let (mut production, mut tests) = (0, 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let opens_tests = line == "#[cfg(test)]"
            && lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if !opens_tests {
            production += 1;
            continue;
        }
        // rustfmt puts the module's closing brace, and nothing else in it, at the left edge.
        tests += 2 + lines.by_ref().skip(1).take_while(|line| *line != "}").count();
    }
    (production, tests)
}

fn check_name(path: &str) -> Option<Finding> {
    let name = path.trim_end_matches(".rs").split('/').find(|name| EMPTY_NAMES.contains(name))?;
    let remedy = "name it after what it holds";
    Some(Finding::new(path, 1, format!("\"{name}\" says nothing"), remedy))
}

fn check_lines(path: &str, text: &str) -> Vec<Finding> {
    // An address in a comment cannot be broken.
    let is_long = |line: &str| line.chars().count() > LINE_LEN_MAX && !line.contains("://");
    numbered(text)
        .filter(|(_, line)| is_long(line))
        .map(|(number, line)| {
            let what = format!("{} characters, the bound is {LINE_LEN_MAX}", line.chars().count());
            Finding::new(path, number, what, "break the line")
        })
        .collect()
}

fn check_predicates(path: &str, text: &str) -> Vec<Finding> {
    let is_silent = |line: &str| SILENT_PREDICATES.iter().any(|mark| line.contains(mark));
    numbered(text)
        .filter(|(_, line)| !is_test_file(path) && is_silent(line))
        .map(|(number, _)| {
            let remedy = "write a match that names every variant: who adds one is led here";
            Finding::new(path, number, "a predicate that a new variant passes by", remedy)
        })
        .collect()
}

fn check_finished(path: &str, text: &str) -> Vec<Finding> {
    let code: &[&str] = if path.ends_with(".rs") { &UNFINISHED_CODE } else { &[] };
    let is_unfinished = |line: &str| {
        words(line).any(|word| UNFINISHED.contains(&word))
            || code.iter().any(|mark| line.contains(mark))
    };
    numbered(text)
        .filter(|(_, line)| is_unfinished(line))
        .map(|(number, _)| {
            let remedy = "finish it, or write it down as a decision";
            Finding::new(path, number, "unfinished work", remedy)
        })
        .collect()
}

/// Whether the crate's comments cite the design's rules by number.
fn is_numbered(path: &str) -> bool {
    let others = ["tyr-telemetry", "tyr-cli", "tyr-sim", "tyr-trial"];
    path.starts_with("crates/")
        && !others.iter().any(|name| path.starts_with(&format!("crates/{name}/")))
}

/// The rules that `docs/design.md` states: the bold words that open its list entries.
fn known_rules(design: &str) -> BTreeSet<&str> {
    design
        .lines()
        .filter_map(|line| line.strip_prefix("- **"))
        .filter_map(|line| words(line).next())
        .filter(|word| number_of(word).is_some())
        .collect()
}

/// The number of a rule, without its letter; nothing where the letter is the whole name (H).
fn number_of(word: &str) -> Option<&str> {
    let number = word.strip_prefix(|c: char| c.is_ascii_uppercase())?;
    let is_number = number.len() <= 2 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(number)
}

fn check_citations(path: &str, text: &str, known: &BTreeSet<&str>) -> Vec<Finding> {
    let letters: BTreeSet<&str> = known.iter().map(|rule| &rule[..1]).collect();
    let is_unknown = |word: &str| {
        let is_cited = number_of(word).is_some_and(|number| !number.is_empty());
        is_cited && letters.contains(&word[..1]) && !known.contains(word)
    };
    let mut findings = Vec::new();
    for (number, line) in numbered(text) {
        let Some((_, comment)) = line.split_once("//") else { continue };
        // `Number::U64` in an example is no rule.
        let parts = comment.split("::").enumerate();
        let mut cited = parts.flat_map(|(at, part)| words(part).skip(usize::from(at > 0)));
        if let Some(word) = cited.find(|word| is_unknown(word)) {
            let remedy = "cite a rule that docs/design.md states, or state this one there";
            findings.push(Finding::new(path, number, format!("there is no rule {word}"), remedy));
        }
    }
    findings
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "//! A noun.\n\nfn verb() {}\n";

    fn findings(path: &str, text: &str) -> Vec<Finding> {
        let design = "- **C1** x\n- **R2 y** z\n- **H** *Groups.* x\n- **Files** y\n";
        check(&Tree::of(&[(path, text), ("docs/design.md", design)]))
    }

    #[test]
    fn a_good_file_passes() {
        assert_eq!(findings("crates/tyr/src/noun.rs", GOOD), []);
    }

    #[test]
    fn a_file_without_module_doc_is_found() {
        assert_eq!(findings("a.rs", "// no\nfn a() {}\n").len(), 1);
        assert_eq!(findings("a.rs", "").len(), 1);
    }

    #[test]
    fn a_long_file_is_found_but_not_for_its_tests() {
        let long = format!("{GOOD}{}", "fn a() {}\n".repeat(PRODUCTION_LINES_MAX));
        assert_eq!(findings("crates/tyr/src/a.rs", &long).len(), 1);
        assert_eq!(findings("crates/tyr/src/a/tests.rs", &long).len(), 0);
        assert_eq!(findings("crates/tyr/tests/a.rs", &long).len(), 0);
        let body = "    fn a() {}\n".repeat(INLINE_TEST_LINES_MAX - 3);
        let tested = format!("{GOOD}\n#[cfg(test)]\nmod tests {{\n{body}}}\n");
        assert_eq!(count_lines(&tested), (4, INLINE_TEST_LINES_MAX - 1));
        assert_eq!(findings("a.rs", &tested), []);
    }

    #[test]
    fn code_after_a_test_module_counts_as_production() {
        let text = "#[cfg(test)]\nmod tests {\n    fn t() {}\n}\nfn a() {}\n";
        assert_eq!(count_lines(text), (1, 3));
        assert_eq!(count_lines("#[cfg(test)]\nmod tests;\n"), (2, 0));
    }

    #[test]
    fn many_tests_inside_are_found_with_the_file_to_move_them_to() {
        let body = "    fn a() {}\n".repeat(INLINE_TEST_LINES_MAX);
        let found = findings("a/mod.rs", &format!("{GOOD}#[cfg(test)]\nmod tests {{\n{body}}}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].remedy.contains("a/tests.rs"));
    }

    #[test]
    fn a_line_too_long_is_found_unless_it_holds_an_address() {
        let long = format!("{GOOD}// {}\n", "ä".repeat(LINE_LEN_MAX));
        assert_eq!(findings("a.rs", &long)[0].line, 4);
        let address = format!("{GOOD}// https://{}\n", "a".repeat(LINE_LEN_MAX));
        assert_eq!(findings("a.rs", &address), []);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        assert_eq!(findings("crates/tyr/src/utils.rs", GOOD).len(), 1);
        assert_eq!(findings("crates/tyr/src/core/noun.rs", GOOD).len(), 1);
    }

    #[test]
    fn unfinished_work_is_found_in_code_and_documents() {
        for mark in UNFINISHED {
            assert_eq!(findings("a.md", &format!("text {mark}: x\n")).len(), 1, "{mark}");
            assert_eq!(findings("a.md", &format!("text {mark}Y\n")), [], "{mark}");
        }
        for mark in UNFINISHED_CODE {
            assert_eq!(findings("a.rs", &format!("{GOOD}{mark}\n")).len(), 1, "{mark}");
        }
    }

    #[test]
    fn a_predicate_that_a_new_variant_passes_by_is_found_outside_of_tests() {
        for mark in SILENT_PREDICATES {
            let text = format!("{GOOD}fn is_one(self) -> bool {{ {mark} Self::One) }}\n");
            assert_eq!(findings("a.rs", &text).len(), 1, "{mark}");
            assert_eq!(findings("crates/tyr/tests/a.rs", &text), [], "{mark}");
        }
        assert_eq!(findings("a.rs", &format!("{GOOD}matches!(other, Some(1..))\n")), []);
    }

    #[test]
    fn a_citation_of_a_rule_that_nobody_stated_is_found() {
        let path = "crates/tyr-protocol/src/a.rs";
        assert_eq!(findings(path, "//! As in (C1), R2.\n"), []);
        for rule in ["C9", "C10", "R1", "H1"] {
            assert_eq!(findings(path, &format!("//! As in {rule}.\n")).len(), 1, "{rule}");
        }
        assert_eq!(findings(path, "//! In H, an `R`, by Z9, of `Number::C64`, C123 or F16.\n"), []);
        assert_eq!(findings(path, "//! Numbers.\nlet C9 = F32;\n"), []);
        assert_eq!(findings("crates/tyr-cli/src/a.rs", "//! As in C9.\n"), []);
    }
}
