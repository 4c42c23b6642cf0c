//! Arrows between the folders of a crate: none runs back up.
//!
//! A folder that uses another by its path stands above it. Where two stand above each other,
//! perhaps by way of others, nobody can read, test or move one without the other. Files beside the
//! folders are not looked at: they put folders together, or lie below all of them.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::tree::Tree;

/// Which folder of a crate uses which other, and a file and line where it does.
type Arrows<'a> = BTreeMap<(&'a str, &'a str), (&'a str, usize)>;

/// Checks the folders of every crate.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in tree.with_ending(".rs") {
        let parts = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        if let Some((name, _)) = parts {
            crates.entry(name).or_default().push((path, text));
        }
    }
    crates.into_iter().flat_map(|(name, files)| check_crate(name, &files)).collect()
}

fn check_crate(name: &str, files: &[(&str, &str)]) -> Vec<Finding> {
    let arrows = arrows(name, files);
    let is_circle = |&(from, to): &(&str, &str)| is_reached(&arrows, to, from);
    let circles = arrows.iter().filter(|(arrow, _)| is_circle(arrow));
    circles
        .map(|((from, to), (path, line))| {
            let what = format!("an arrow of a circle: {from} uses {to}, and {to} {from}");
            let remedy = "arrows between folders go down only: move what both need below both";
            Finding::new(path, *line, what, remedy)
        })
        .collect()
}

fn arrows<'a>(name: &str, files: &[(&'a str, &'a str)]) -> Arrows<'a> {
    let source = format!("crates/{name}/src/");
    let inside = |path: &'a str| path.strip_prefix(source.as_str()).unwrap_or_default();
    let folders: BTreeSet<&str> =
        files.iter().filter_map(|(path, _)| Some(inside(path).split_once('/')?.0)).collect();
    let mut arrows = Arrows::new();
    for (path, text) in files {
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        let Some((from, _)) = inside(path).split_once('/').filter(|_| !is_test) else { continue };
        let module: Vec<&str> = inside(path).trim_end_matches(".rs").split('/').collect();
        let module = module.strip_suffix(&["mod"]).unwrap_or(&module);
        for (number, to) in used(text, module) {
            if to != from && folders.contains(to) {
                arrows.entry((from, to)).or_insert((path, number));
            }
        }
    }
    arrows
}

/// The modules at the crate's root that a file uses, with the line: those of paths that begin with
/// `crate`, or with as many `super` as lead there. Inline tests and comments do not count.
fn used<'a>(text: &'a str, module: &[&'a str]) -> Vec<(usize, &'a str)> {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut used = Vec::new();
    for (at, word) in text.match_indices("crate::").chain(text.match_indices("super::")) {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let follows = line.ends_with(|it: char| it.is_alphanumeric() || "_:$".contains(it));
        if follows || line.trim_start().starts_with("//") {
            continue;
        }
        let mut rest = &text[at + word.len()..];
        let mut base = if word == "crate::" { &module[..0] } else { &module[..module.len() - 1] };
        while let Some(further) = rest.strip_prefix("super::") {
            rest = further;
            base = &base[..base.len().saturating_sub(1)];
        }
        let number = text[..at].matches('\n').count() + 1;
        match base.first() {
            Some(root) => used.push((number, *root)),
            None => used.extend(names(rest).into_iter().map(|name| (number, name))),
        }
    }
    used
}

/// What a path goes on with: a name, or the first names of a group in braces.
fn names(rest: &str) -> Vec<&str> {
    let name = |text: &'_ str| text.find(|it: char| !it.is_alphanumeric() && it != '_');
    let Some(group) = rest.strip_prefix('{') else {
        return vec![&rest[..name(rest).unwrap_or(rest.len())]];
    };
    let (mut depth, mut names, mut is_first) = (1, Vec::new(), true);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => is_first = true,
            _ if is_first && depth == 1 && (character.is_alphabetic() || character == '_') => {
                is_first = false;
                let rest = &group[at..];
                names.push(&rest[..name(rest).unwrap_or(rest.len())]);
            }
            _ => {}
        }
    }
    names
}

/// Whether arrows lead from one folder to another.
fn is_reached(arrows: &Arrows<'_>, from: &str, to: &str) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(folder) = open.pop() {
        if folder == to {
            return true;
        }
        if seen.insert(folder) {
            open.extend(arrows.keys().filter(|(from, _)| *from == folder).map(|(_, to)| *to));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let path = |inside: &str| format!("crates/tyr-net/src/{inside}");
        let files: Vec<_> = files.iter().map(|(inside, text)| (path(inside), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_folders_that_use_each_other_are_found_both_ways() {
        let below = ("below/mod.rs", "use std::fmt;\nuse crate::above::Thing;\n");
        for above in ["use crate::below::X;", "use crate::{\n    other,\n    below::{X, Y},\n};"] {
            let found = findings(&[("above/thing.rs", above), below]);
            assert_eq!(found.len(), 2, "{found:?}");
            assert!(found[1].starts_with("crates/tyr-net/src/below/mod.rs:2:"), "{found:?}");
        }
    }

    #[test]
    fn a_circle_by_way_of_a_third_is_found_and_what_hangs_on_it_is_none() {
        let circle = [
            ("a/x.rs", "use crate::b::X;"),
            ("b/x.rs", "use crate::c::X;"),
            ("d/x.rs", "use crate::a;"),
        ];
        assert_eq!(findings(&circle), Vec::<String>::new());
        let closed = [circle[0], circle[1], circle[2], ("c/x.rs", "use super::super::a::X;")];
        assert_eq!(findings(&closed).len(), 3);
    }

    #[test]
    fn tests_comments_files_beside_and_own_parts_are_no_arrows() {
        let one = ("a/x.rs", "use crate::b::X;\n");
        for other in [
            ("b/x.rs", "// crate::a\nuse super::a::X;\nuse crate::b::y;\n"),
            ("b/x.rs", "\n#[cfg(test)]\nmod tests {\n    use crate::a::X;\n}\n"),
            ("b/tests.rs", "use crate::a::X;\n"),
            ("b.rs", "use crate::a::X;\n"),
        ] {
            assert!(findings(&[one, ("b/mod.rs", ""), other]).is_empty(), "{other:?}");
        }
    }
}
