//! `include/tyr.h` is what the sources say, and has all that `first/tyr.h` has, the header of
//! version 0.1.0: what programs were built by.
//!
//! With `TYR_HEADER=write` in the environment, as `cargo xtask header` runs it, it writes the
//! header instead.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_header_is_made_of_these_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let made = cbindgen::Builder::new().with_crate(folder).with_config(config).generate().unwrap();
    let mut text = Vec::new();
    made.write(&mut text);
    let text = String::from_utf8(text).unwrap();
    let path = folder.join("include/tyr.h");
    if std::env::var_os("TYR_HEADER").is_some_and(|value| value == "write") {
        std::fs::write(&path, &text).unwrap();
        println!("wrote {}", path.display());
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        there, text,
        "include/tyr.h is stale: run `cargo xtask header`, and look at the diff"
    );
}

#[test]
fn what_the_first_header_declares_is_declared_as_it_was() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of = |path: &str| declarations(&std::fs::read_to_string(folder.join(path)).unwrap());
    let (first, today) = (of("tests/first/tyr.h"), of("include/tyr.h"));
    assert!(first.iter().filter(|it| it.contains('(')).count() > 100, "functions are among them");
    let gone: Vec<&String> = first.difference(&today).collect();
    assert!(gone.is_empty(), "programs know these, so they stay as they are: {gone:#?}");
}

#[test]
fn a_function_that_takes_something_else_is_noticed() {
    let first = declarations("#define A 1\n// Old.\nint f(int a,\n      int b);\n");
    let commented = declarations("/* New. */\n#define A 1\nint f(int a, int b);\nint g(void);\n");
    assert!(first.is_subset(&commented), "{first:?}");
    for other in ["#define A 2\nint f(int a, int b);", "#define A 1\nint f(int a, long b);"] {
        assert!(!first.is_subset(&declarations(other)), "{other}");
    }
}

/// The functions and constants of a header, each in a line, without comments.
fn declarations(header: &str) -> BTreeSet<String> {
    let lines = header.lines().filter(|line| !line.trim_start().starts_with("//"));
    let (constants, rest): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("#define "));
    let rest = rest.join(" ");
    let parts = rest.split("*/").map(|part| part.split("/*").next().unwrap_or_default());
    let code: Vec<&str> = parts.collect();
    let code = code.join(" ");
    let functions = code.split(';').filter(|it| it.contains('(') && !it.contains('{'));
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    constants.into_iter().chain(functions).map(spaced).collect()
}
