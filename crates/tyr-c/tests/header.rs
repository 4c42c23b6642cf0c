//! `include/tyr.h` is what the sources say.
//!
//! With `TYR_HEADER=write` in the environment, as `cargo xtask header` runs it, it writes the
//! header instead.

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
