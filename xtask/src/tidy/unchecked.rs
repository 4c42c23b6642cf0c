//! Where code may stand that the compiler does not check: in few folders, and never without a word.
//!
//! The lint `unsafe_code` refuses it everywhere; what a crate allows itself again is found here.

use super::finding::Finding;
use super::tree::Tree;

/// Where it may stand: where memory comes from C, and from Java.
const PLACES: [&str; 2] = ["crates/tyr-c/src/abi/", "crates/tyr-java/src/border/"];

/// The word, and the lint against it. In halves, for this file is checked too.
const WORD: &str = concat!("un", "safe");
const LINT: &str = concat!("un", "safe_code");

/// What has to say why it is sound: a block, and an implementation of a trait that promises
/// something. A function says so in its doc, or in that of its module.
const OPENINGS: [&str; 2] = [concat!("un", "safe {"), concat!("un", "safe impl")];

/// What such a word begins with.
const REASON: &str = "// SAFETY:";

/// Checks every Rust file.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.with_ending(".rs").flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let is_allowed = PLACES.iter().any(|place| path.starts_with(place));
    let lines: Vec<&str> = text.lines().collect();
    let mut findings = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if !is_allowed && (has_word(code, WORD) || has_word(code, LINT)) {
            let what = format!("{WORD} code");
            let remedy = format!("write it without, or move it to {}", PLACES.join(" or "));
            findings.push(Finding::new(path, at + 1, what, remedy));
        }
        let is_opened = OPENINGS.iter().any(|opening| code.contains(opening));
        if is_allowed && is_opened && !is_explained(&lines[..at]) {
            let what = format!("{WORD}, and nobody says why it is sound");
            let remedy = format!("write {REASON} above it: what it relies on, and why that holds");
            findings.push(Finding::new(path, at + 1, what, remedy));
        }
    }
    findings
}

/// Whether the comment right above says it.
fn is_explained(above: &[&str]) -> bool {
    let comment = above.iter().rev().map(|line| line.trim_start());
    comment.take_while(|line| line.starts_with("//")).any(|line| line.starts_with(REASON))
}

fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        !code[..at].ends_with(is_part) && !code[at + word.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: &str = "crates/tyr-c/src/abi/memory.rs";

    #[test]
    fn unchecked_code_is_found_outside_of_its_places() {
        for line in [
            format!("    {WORD} {{ *x }}"),
            format!("{WORD} fn f() {{}}"),
            format!("#[{WORD}(no_mangle)]"),
            format!("#![allow({LINT})]"),
        ] {
            assert_eq!(check_file("crates/tyr/src/a.rs", &line).len(), 1, "{line}");
        }
        assert_eq!(check_file("crates/tyr/src/a.rs", &format!("// {WORD} {{ in words }}\n")), []);
        assert_eq!(check_file("crates/tyr/src/a.rs", &format!("let {WORD}ly = 1;\n")), []);
    }

    #[test]
    fn unchecked_code_says_why_it_is_sound() {
        for opening in OPENINGS {
            let line = format!("    {opening} x }}\n");
            assert_eq!(check_file(INSIDE, &line).len(), 1, "{opening}");
            let explained = format!("    {REASON} it is lent,\n    // and long enough.\n{line}");
            assert_eq!(check_file(INSIDE, &explained), []);
            let other = format!("    {REASON} of another\n    let x = 1;\n{line}");
            assert_eq!(check_file(INSIDE, &other).len(), 1);
        }
    }
}
