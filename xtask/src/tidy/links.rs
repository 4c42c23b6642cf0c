//! What is referred to: files and headings in documents, documents in code.
//!
//! Only what lies in the repository is followed; an address elsewhere is its owner's affair.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::tree::Tree;

/// Checks every link of every Markdown file, and every `docs/….md` that other texts name.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_ending(".md") {
        findings.extend(check_links(tree, path, text));
    }
    for (path, text) in &tree.files {
        // Markdown has links for that; this crate's tests name documents that are not there.
        if !path.ends_with(".md") && !path.starts_with("xtask/") {
            findings.extend(check_named(tree, path, text));
        }
    }
    findings
}

fn check_links(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, target) in links(text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = match target.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor)),
            None => (target.as_str(), None),
        };
        let there = if file.is_empty() { Some(path.to_owned()) } else { resolve(path, file) };
        let there = there.filter(|there| tree.has(there));
        let Some(there) = there else {
            let remedy = "link to a file of the repository, relative to this one";
            findings.push(Finding::new(path, line, format!("{target} is not there"), remedy));
            continue;
        };
        let Some(anchor) = anchor else { continue };
        let slugs = slugs(tree.text(&there).unwrap_or_default());
        if !slugs.iter().any(|slug| slug == anchor) {
            let what = format!("{there} has no heading #{anchor}");
            findings.push(Finding::new(path, line, what, remedy_of_anchor(&slugs, anchor)));
        }
    }
    findings
}

fn remedy_of_anchor(slugs: &[String], anchor: &str) -> String {
    let is_near = |slug: &&String| slug.contains(anchor) || anchor.contains(slug.as_str());
    match slugs.iter().find(is_near) {
        Some(near) => format!("perhaps #{near}"),
        None => "use a heading's words, lower case, joined by -".to_owned(),
    }
}

/// Every `[text](target)` outside code, with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let mut rest = line.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            let target = rest[..end].split_whitespace().next().unwrap_or_default();
            found.push((number, target.to_owned()));
            rest = &rest[end..];
        }
    }
    found
}

/// The lines outside fenced code, with their numbers, and without what stands between backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((at + 1, line.split('`').step_by(2).collect()));
        }
    }
    lines
}

/// Where `target` leads from the file `from`; `None` when that is outside the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a document's headings, as code hosts make them from the words.
fn slugs(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_code = false;
    let mut slugs = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let words = line.trim_start_matches('#');
        if is_code || !line.starts_with('#') || !words.starts_with(' ') {
            continue;
        }
        let slug: String = words
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let count = seen.entry(slug.clone()).or_default();
        slugs.push(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    slugs
}

/// Documents are named in comments and messages too; what is named must be there.
fn check_named(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let is_inside = |c: char| c.is_alphanumeric() || "/-_.".contains(c);
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for word in line.split(|c| !is_inside(c)) {
            let name = word.trim_end_matches('.');
            let is_document = name.starts_with("docs/") && name.ends_with(".md");
            if is_document && !tree.has(name) {
                let remedy = "write it, or name the document that says it";
                findings.push(Finding::new(path, at + 1, format!("{name} is not there"), remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_link_to_nowhere_is_found_with_its_line() {
        let found = findings(&[("docs/a.md", "# A\n\n[b](b.md) and [c](../c.md)\n"), ("c.md", "")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("docs/a.md:3: b.md is not there"), "{found:?}");
    }

    #[test]
    fn a_link_out_of_the_repository_is_found() {
        assert_eq!(findings(&[("docs/a.md", "[x](../../x.md)")]).len(), 1);
    }

    #[test]
    fn an_anchor_needs_its_heading() {
        let text = "# The Store's *Log*\n\n## Twice\n## Twice\n";
        let good = "[x](b.md#the-stores-log) [y](b.md#twice-1)";
        assert!(findings(&[("a.md", good), ("b.md", text)]).is_empty());
        assert_eq!(findings(&[("a.md", "[x](b.md#the-log)"), ("b.md", text)]).len(), 1);
        assert_eq!(findings(&[("b.md", "# A\n[x](#a) [y](#b)")]).len(), 1);
    }

    #[test]
    fn code_and_addresses_are_left_alone() {
        let text = "`[x](gone.md)` [y](https://a.example/b.md)\n```\n[z](gone.md)\n# no\n```\n";
        assert!(findings(&[("a.md", text)]).is_empty());
        assert!(slugs(text).is_empty());
    }

    #[test]
    fn a_document_named_in_code_must_be_there() {
        let code = "//! See docs/internals/gone.md.\n";
        assert_eq!(findings(&[("crates/tyr/src/a.rs", code)]).len(), 1);
        let there = ("docs/internals/gone.md", "");
        assert!(findings(&[("crates/tyr/src/a.rs", code), there]).is_empty());
    }
}
