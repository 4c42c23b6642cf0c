//! The reference page on settings, made from the table.
//!
//! `tyr reference configuration` prints it; a test compares it with the page in the repository.

use std::fmt::Write as _;

use super::setting::Group;
use super::table::SETTINGS;

const HEAD: &str = "\
# Settings of a node

Made from the table in `crates/tyr-cli/src/configuration/table.rs` by `tyr reference configuration`.

Each setting can be given in a file (`tyr serve --config FILE`, or the environment variable
`TYR_CONFIG`), by an environment variable, and by a flag. A flag counts before a variable, a
variable before the file, the file before the default. The file is TOML, one setting a line;
numbers, `true` and `false` may stand without quotes, and lists may be arrays:

```toml
node = 0
folder = \"/var/lib/tyr\"
nodes = [\"0=db0:7070\", \"1=db1:7070\", \"2=db2:7070\"]
secret_file = \"/etc/tyr/secret\"
cache = \"8GiB\"
```

`tyr serve --check` says what is wrong, all of it at once, and ends. `tyr serve --print-config`
prints all settings in effect, each with where it comes from. Sizes take `KiB`, `MiB`, `GiB`, `TiB`
(powers of 1024) and `KB`, `MB`, `GB`, `TB` (of 1000); times take `ms`, `s`, `min`, `h` and `d`.
Paths are relative to where the program is started.
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for group in Group::ALL {
        write!(page, "\n## {}\n\n", group.heading()).expect("a String takes any text");
        page.push_str("| setting | variable, flag | default | allowed | meaning |\n");
        page.push_str("|---|---|---|---|---|\n");
        for setting in SETTINGS.iter().filter(|setting| setting.group == group) {
            let fallback =
                setting.default.map_or_else(|| "none".to_owned(), |it| format!("`{it}`"));
            writeln!(
                page,
                "| `{}` | `{}` `--{}` | {fallback} | {} | {} Example: `{}` |",
                setting.name,
                setting.variable(),
                setting.flag(),
                setting.kind.range(),
                setting.meaning,
                setting.example,
            )
            .expect("a String takes any text");
        }
    }
    page
}
