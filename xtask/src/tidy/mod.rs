//! The rules of STYLE.md that neither the compiler nor a lint knows.
//!
//! Reading order: [`finding`] is what a rule says when it is broken, [`tree`] reads the repository
//! once into memory. On that the rules stand, each a pure function from the tree to findings, so
//! that its tests give it three lines of text: [`crates`] holds the crate graph, [`arrows`] what
//! folders of a crate see of each other, [`sources`] looks at Rust files, [`unchecked`] at what the
//! compiler does not check in them, [`links`] at what documents refer to, [`documents`] at single
//! documents.

mod arrows;
mod crates;
mod documents;
mod finding;
mod links;
mod sources;
mod tree;
mod unchecked;

use std::path::Path;

use finding::Finding;
use tree::Tree;

/// Checks every rule on the repository at `root`, prints what is broken, answers whether none is.
pub fn run(root: &Path) -> bool {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("{}: cannot be read: {error}", root.display());
            return false;
        }
    };
    let findings = check(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", tree.files.len(), findings.len());
    findings.is_empty()
}

fn check(tree: &Tree) -> Vec<Finding> {
    let rules = [
        crates::check,
        arrows::check,
        sources::check,
        unchecked::check,
        links::check,
        documents::check,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_all_rules_come_sorted_by_place() {
        let tree = Tree::of(&[("crates/tyr/src/b.rs", "fn b() {}\n"), ("a.md", "[x](gone.md)\n")]);
        let findings = check(&tree);
        assert!(findings.is_sorted());
        assert!(findings.iter().any(|finding| finding.path == "a.md"));
        assert!(findings.iter().any(|finding| finding.path.ends_with("b.rs")));
    }
}
