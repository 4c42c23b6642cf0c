//! Single documents that make promises: README.md, ARCHITECTURE.md, the decisions.

use toml::Table;

use super::finding::Finding;
use super::tree::{Tree, line_of};

/// A newcomer's first page ends before patience does.
const README_LINES_MAX: usize = 140;

/// The program that README.md shows.
const EXAMPLE: &str = "crates/tyr/examples/readme.rs";

/// Where the programs that README.md shows in other languages are, whole or in part, and run.
const OTHER_EXAMPLES: [(&str, &str); 3] = [
    ("python", "crates/tyr-python/README.md"),
    ("java", "crates/tyr-java/README.md"),
    ("c", "crates/tyr-c/tests/programs/readme.c"),
];

/// The table of all decisions.
const DECISIONS: &str = "docs/decisions/README.md";

/// The decision that lists every dependency.
const DEPENDENCIES: &str = "docs/decisions/0001-dependencies.md";

/// Checks all of them.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(text) = tree.text("README.md") {
        findings.extend(check_readme(text, tree.text(EXAMPLE)));
        let files = OTHER_EXAMPLES.map(|(language, path)| (language, path, tree.text(path)));
        findings.extend(files.into_iter().filter_map(|it| check_other_example(text, it)));
    }
    if let (Some(manifest), Some(table)) = (tree.text("Cargo.toml"), tree.text(DEPENDENCIES)) {
        findings.extend(check_dependencies(manifest, table));
    }
    if let Some(text) = tree.text("ARCHITECTURE.md") {
        findings.extend(check_invariants(tree, text));
    }
    findings.extend(check_decisions(tree));
    findings
}

fn check_readme(text: &str, example: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    // What is for programs is not shown.
    let count = text.lines().filter(|line| !line.starts_with("<!--")).count();
    if count > README_LINES_MAX {
        let what = format!("{count} lines, the bound is {README_LINES_MAX}");
        findings.push(Finding::new("README.md", count, what, "move what is not for a first read"));
    }
    let Some(example) = example else {
        let remedy = "write the program that README.md shows";
        findings.push(Finding::new(EXAMPLE, 1, "the file is not there", remedy));
        return findings;
    };
    // The module doc is for who opens the file; README.md shows what follows it.
    let program: Vec<&str> = example.lines().skip_while(|line| line.starts_with("//!")).collect();
    let program = program.join("\n").trim().to_owned();
    if fenced(text, "rust").is_none_or(|(_, shown)| shown.trim() != program) {
        let line = fenced(text, "rust").map_or(1, |(line, _)| line);
        let remedy = format!("copy all of {EXAMPLE} below its module doc into README.md");
        findings.push(Finding::new("README.md", line, "its Rust is not the example's", remedy));
    }
    findings
}

/// What README.md shows in another language has to stand in the file that is run.
fn check_other_example(
    readme: &str,
    (language, path, file): (&str, &str, Option<&str>),
) -> Option<Finding> {
    let shown = fenced(readme, language);
    let is_run = |(_, shown): &(usize, String)| file.is_some_and(|file| file.contains(shown));
    if shown.as_ref().is_some_and(is_run) {
        return None;
    }
    let line = shown.map_or(1, |(line, _)| line);
    let what = format!("its {language} is none that {path} has");
    Some(Finding::new("README.md", line, what, format!("copy it from {path}, which is run")))
}

/// The first fenced block in this language: the line it begins on, and its text.
fn fenced(text: &str, language: &str) -> Option<(usize, String)> {
    let fence = format!("```{language}");
    let at = text.lines().position(|line| line == fence)?;
    let inside: Vec<&str> =
        text.lines().skip(at + 1).take_while(|line| !line.starts_with("```")).collect();
    Some((at + 1, inside.join("\n")))
}

fn check_dependencies(manifest: &str, table: &str) -> Vec<Finding> {
    let manifest_table: Table = match manifest.parse() {
        Ok(manifest) => manifest,
        Err(error) => {
            let what = format!("not TOML: {error}");
            return vec![Finding::new("Cargo.toml", 1, what, "mend it")];
        }
    };
    let all = manifest_table.get("workspace").and_then(|w| w.get("dependencies")?.as_table());
    let foreign: Vec<&str> = all
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.get("path").is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let rows: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .collect();
    let missing = foreign.iter().filter(|name| !rows.contains(*name)).map(|name| {
        let remedy = format!("add its row to {DEPENDENCIES}: why, licence, what it drags in");
        let line = line_of(manifest, &format!("\n{name}")) + 1;
        Finding::new("Cargo.toml", line, format!("nobody says why {name} is here"), remedy)
    });
    let gone = rows.iter().filter(|name| !foreign.contains(*name)).map(|name| {
        let line = line_of(table, &format!("| `{name}`"));
        let what = format!("{name} is no dependency of the workspace");
        Finding::new(DEPENDENCIES, line, what, "remove the row")
    });
    missing.chain(gone).collect()
}

/// The table of invariants names files and tests: they must be there.
fn check_invariants(tree: &Tree, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        for word in line.split('`').skip(1).step_by(2) {
            let is_path = word.contains('/') && !word.contains(' ');
            let is_test = word.matches('_').count() >= 3
                && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if is_path && !tree.has(word) {
                let what = format!("{word} is not there");
                let remedy = "name the file that asserts it";
                findings.push(Finding::new("ARCHITECTURE.md", at + 1, what, remedy));
            }
            if is_test && !has_function(tree, word) {
                let what = format!("no test is called {word}");
                let remedy = "name the test that checks it, or write it";
                findings.push(Finding::new("ARCHITECTURE.md", at + 1, what, remedy));
            }
        }
    }
    findings
}

fn has_function(tree: &Tree, name: &str) -> bool {
    let start = format!("fn {name}(");
    tree.with_ending(".rs").any(|(_, text)| text.contains(&start))
}

/// Decisions are `NNNN-title.md`, each number once, with a date near the top, and in the table.
fn check_decisions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut last_number = "";
    let table = tree.text(DECISIONS).unwrap_or_default();
    for (path, text) in tree.with_ending(".md") {
        let Some(name) = path.strip_prefix("docs/decisions/") else { continue };
        if path == DECISIONS {
            continue;
        }
        if !table.contains(&format!("]({name})")) {
            let remedy = format!("add its row to {DECISIONS}");
            findings.push(Finding::new(path, 1, "a decision that is not in the table", remedy));
        }
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            let remedy = "call it NNNN-title.md";
            findings.push(Finding::new(path, 1, "a decision without a number", remedy));
        }
        if number == last_number {
            let what = format!("{number} is taken");
            findings.push(Finding::new(path, 1, what, "take the next free number"));
        }
        last_number = number;
        if !text.lines().take(6).any(has_date) {
            let remedy = "write the day it was taken, as 2026-11-21, below the title";
            findings.push(Finding::new(path, 1, "a decision without a date", remedy));
        }
    }
    findings
}

/// Whether a word of the line is a day, as 2026-11-21.
fn has_date(line: &str) -> bool {
    line.split(|c: char| !c.is_ascii_digit() && c != '-').any(|word| {
        let parts: Vec<&str> = word.split('-').collect();
        matches!(parts.as_slice(), [year, month, day]
            if year.len() == 4 && month.len() == 2 && day.len() == 2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "fn main() {\n    println!(\"blob\");\n}\n";

    fn readme(program: &str) -> String {
        format!("# Týr\n\n```rust\n{program}```\n")
    }

    #[test]
    fn the_readme_shows_exactly_the_example() {
        let example = format!("//! What README.md shows.\n\n{PROGRAM}");
        assert_eq!(check_readme(&readme(PROGRAM), Some(&example)), []);
        let other = readme(&PROGRAM.replace("blob", "block"));
        assert_eq!(check_readme(&other, Some(&example))[0].line, 3);
        assert_eq!(check_readme("# Týr\n", Some(&example)).len(), 1);
        assert_eq!(check_readme(&readme(PROGRAM), None)[0].path, EXAMPLE);
    }

    #[test]
    fn what_the_readme_shows_in_another_language_is_part_of_what_is_run() {
        let readme = "# Týr\n\n```c\n  begin();\n  commit();\n```\n";
        let file = "int main(void) {\n  begin();\n  commit();\n}\n";
        let check = |readme, file| check_other_example(readme, ("c", "readme.c", file));
        assert_eq!(check(readme, Some(file)), None);
        assert_eq!(check(readme, Some("int main(void) {\n  begin();\n}\n")).unwrap().line, 3);
        assert_eq!(check(readme, None).unwrap().line, 3);
        assert_eq!(check("# Týr\n", Some(file)).unwrap().line, 1);
    }

    #[test]
    fn a_long_readme_is_found() {
        let text = readme(PROGRAM) + &"line\n".repeat(README_LINES_MAX);
        assert!(check_readme(&text, Some(PROGRAM))[0].what.contains("the bound is 140"));
    }

    #[test]
    fn every_dependency_has_its_row_and_every_row_its_dependency() {
        let manifest = "[workspace.dependencies]\ntyr = { path = \"x\" }\nbytes = \"1\"\n";
        let row = "| crate | why |\n|---|---|\n| `bytes` | shares |\n";
        assert_eq!(check_dependencies(manifest, row), []);
        assert_eq!(check_dependencies(manifest, "")[0].line, 3);
        let more = format!("{row}| `fjall` | index |\n");
        assert_eq!(check_dependencies(manifest, &more)[0].line, 4);
    }

    #[test]
    fn the_table_of_invariants_names_what_is_there() {
        let code = ("crates/tyr/src/a.rs", "fn nothing_acknowledged_is_lost() {}\n");
        let tree = Tree::of(&[code]);
        let good = "| x | `crates/tyr/src/a.rs` | `nothing_acknowledged_is_lost` |\n";
        assert_eq!(check_invariants(&tree, good), []);
        let bad = "| x | `crates/tyr/src/b.rs` | `everything_acknowledged_is_lost` |\n";
        assert_eq!(check_invariants(&tree, bad).len(), 2);
    }

    #[test]
    fn decisions_are_numbered_once_and_dated() {
        let table = (DECISIONS, "[x](0001-a.md) [x](0001-b.md) [x](0002-b.md) [x](b.md)");
        let good = ("docs/decisions/0001-a.md", "# A\n\n2026-11-21\n");
        assert_eq!(check_decisions(&Tree::of(&[table, good])), []);
        assert_eq!(check_decisions(&Tree::of(&[good])).len(), 1);
        let undated = ("docs/decisions/0002-b.md", "# B\n");
        assert_eq!(check_decisions(&Tree::of(&[table, good, undated])).len(), 1);
        let twice = ("docs/decisions/0001-b.md", "# B\n\n2026-11-22\n");
        assert_eq!(check_decisions(&Tree::of(&[table, good, twice])).len(), 1);
        let nameless = ("docs/decisions/b.md", "# B\n\n2026-11-22\n");
        assert_eq!(check_decisions(&Tree::of(&[table, nameless])).len(), 1);
    }
}
