//! The crate graph: which crate may depend on which, and what the pure crates must ban.
//!
//! The graph is the architecture (docs/design.md, section 3): arrows go down only, and what is not
//! listed here is not allowed. It is read from the manifests themselves.

use toml::{Table, Value};

use super::finding::Finding;
use super::tree::{Tree, line_of};

/// A crate and the crates of this repository that it may depend on.
const EDGES: [(&str, &[&str]); 34] = [
    ("tyr-chance", &[]),
    ("tyr-types", &[]),
    ("tyr-metadata", &["tyr-types"]),
    ("tyr-class", &["tyr-types"]),
    ("tyr-mantle", &["tyr-types", "tyr-class"]),
    ("tyr-protocol", &["tyr-types"]),
    ("tyr-store", &["tyr-types"]),
    ("tyr-engine", &["tyr-types", "tyr-protocol", "tyr-store"]),
    ("tyr-runtime", &["tyr-types", "tyr-protocol"]),
    ("tyr-embedded", &["tyr-types", "tyr-metadata", "tyr-protocol", "tyr-store", "tyr-runtime"]),
    ("tyr-net", &["tyr-types", "tyr-protocol", "tyr-runtime"]),
    ("tyr-control", &["tyr-types", "tyr-metadata", "tyr-protocol", "tyr-net"]),
    (
        "tyr-client",
        &["tyr-types", "tyr-metadata", "tyr-protocol", "tyr-runtime", "tyr-net", "tyr-control"],
    ),
    (
        "tyr-monitors",
        &["tyr-types", "tyr-metadata", "tyr-protocol", "tyr-store", "tyr-runtime", "tyr-control"],
    ),
    ("tyr-gossip", &["tyr-types", "tyr-runtime", "tyr-net"]),
    ("tyr-trace", &["tyr-types", "tyr-protocol", "tyr-runtime"]),
    (
        "tyr-server",
        &[
            "tyr-types",
            "tyr-metadata",
            "tyr-protocol",
            "tyr-store",
            "tyr-engine",
            "tyr-runtime",
            "tyr-net",
            "tyr-control",
            "tyr-monitors",
            "tyr-gossip",
            "tyr-trace",
        ],
    ),
    ("tyr", &["tyr-types", "tyr-metadata", "tyr-runtime", "tyr-embedded", "tyr-net", "tyr-client"]),
    ("tyr-testing", &["tyr", "tyr-net", "tyr-server"]),
    ("tyr-completion", &["tyr"]),
    ("tyr-c", &["tyr", "tyr-completion"]),
    ("tyr-python", &["tyr", "tyr-completion"]),
    ("tyr-java", &["tyr", "tyr-completion"]),
    ("tyr-telemetry", &["tyr"]),
    ("tyr-log", &["tyr"]),
    ("tyr-object", &["tyr", "tyr-class"]),
    ("tyr-object-store", &["tyr"]),
    ("tyr-fs", &["tyr"]),
    ("tyr-zlog", &["tyr", "tyr-class", "tyr-object"]),
    (
        "tyr-cli",
        &[
            "tyr",
            "tyr-metadata",
            "tyr-runtime",
            "tyr-net",
            "tyr-control",
            "tyr-client",
            "tyr-gossip",
            "tyr-trace",
            "tyr-server",
            "tyr-telemetry",
            "tyr-log",
            "tyr-object",
            "tyr-fs",
            "tyr-mantle",
            "tyr-zlog",
        ],
    ),
    ("tyr-sim", &["tyr-types", "tyr-class", "tyr-protocol", "tyr-store", "tyr-engine"]),
    ("tyr-fuzz", &["tyr-types", "tyr-protocol"]),
    (
        "tyr-trial",
        &[
            "tyr",
            "tyr-types",
            "tyr-protocol",
            "tyr-runtime",
            "tyr-net",
            "tyr-control",
            "tyr-client",
            "tyr-server",
            "tyr-fs",
            "tyr-log",
            "tyr-object",
            "tyr-zlog",
        ],
    ),
    ("xtask", &[]),
];

/// What only a crate's tests may depend on besides: a client is tried against nodes.
const TEST_EDGES: [(&str, &str); 24] = [
    ("tyr-class", "tyr-chance"),
    ("tyr-protocol", "tyr-chance"),
    ("tyr-store", "tyr-chance"),
    ("tyr-embedded", "tyr-chance"),
    ("tyr", "tyr-chance"),
    ("tyr-fs", "tyr-chance"),
    ("tyr-zlog", "tyr-chance"),
    ("tyr-sim", "tyr-chance"),
    ("tyr-server", "tyr-client"),
    ("tyr-object", "tyr-server"),
    ("tyr-object", "tyr-net"),
    ("tyr-fs", "tyr-testing"),
    ("tyr-server", "tyr-testing"),
    ("tyr", "tyr-testing"),
    ("tyr-c", "tyr-testing"),
    ("tyr-python", "tyr-testing"),
    ("tyr-java", "tyr-testing"),
    ("tyr-log", "tyr-testing"),
    ("tyr-object", "tyr-testing"),
    ("tyr-object-store", "tyr-testing"),
    ("tyr-zlog", "tyr-server"),
    ("tyr-zlog", "tyr-testing"),
    ("tyr-cli", "tyr-testing"),
    ("tyr-trial", "tyr-c"),
];

/// Crates below tyr-runtime, where the same calls give the same results on every run.
const PURE: [&str; 7] = [
    "tyr-types",
    "tyr-metadata",
    "tyr-class",
    "tyr-mantle",
    "tyr-protocol",
    "tyr-store",
    "tyr-engine",
];

/// What an embedded store is made of: who embeds one builds no network.
const EMBEDDED: [&str; 6] =
    ["tyr-types", "tyr-metadata", "tyr-protocol", "tyr-store", "tyr-runtime", "tyr-embedded"];

/// What networks are made of.
const NETWORKING: [&str; 6] = ["foca", "hyper", "openraft", "ring", "tokio", "tokio-rustls"];

/// What the `clippy.toml` of a pure crate must ban. It replaces the root's, so repeats its bound.
const BANS: [&str; 7] = [
    "too-many-lines-threshold = 70",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::spawn",
    "std::collections::HashMap::new",
    "std::hash::RandomState",
    "std::net::TcpStream",
];

/// Checks every manifest, and the bans of the pure crates.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_ending("Cargo.toml") {
        if path != "Cargo.toml" {
            findings.extend(check_manifest(path, text));
        }
    }
    let is_repository = tree.has("crates/tyr-types/Cargo.toml");
    for name in PURE.into_iter().filter(|_| is_repository) {
        let path = format!("crates/{name}/clippy.toml");
        findings.extend(check_bans(&path, tree.text(&path).unwrap_or_default()));
    }
    findings
}

fn check_manifest(path: &str, text: &str) -> Vec<Finding> {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => {
            return vec![Finding::new(path, 1, format!("not TOML: {error}"), "mend it")];
        }
    };
    let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
    let Some(name) = name else {
        return vec![Finding::new(path, 1, "no package.name", "every crate has a name")];
    };
    let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
        let remedy = "draw it in docs/design.md, section 3, and list it in \
                      xtask/src/tidy/crates.rs with what it may depend on";
        return vec![Finding::new(path, 1, format!("{name} is not in the crate graph"), remedy)];
    };
    let mut findings = Vec::new();
    for (section, dependency, value) in dependencies(&manifest) {
        let line = line_of(text, &format!("\n{dependency}")) + 1;
        let is_ours = EDGES.iter().any(|(known, _)| *known == dependency);
        let is_for_tests =
            section == "dev-dependencies" && TEST_EDGES.contains(&(name, dependency));
        if is_ours && !is_for_tests && !allowed.contains(&dependency) {
            let what = format!("{name} may not depend on {dependency}");
            let remedy = "arrows of the crate graph go down only (docs/design.md, section 3): \
                          move the code to where both can see it";
            findings.push(Finding::new(path, line, what, remedy));
        }
        if EMBEDDED.contains(&name) && NETWORKING.contains(&dependency) {
            let what = format!("{name} may not depend on {dependency}");
            let remedy = "who embeds a store builds no network: move the code to a crate that \
                          an embedded store does not stand on";
            findings.push(Finding::new(path, line, what, remedy));
        }
        if value.get("workspace").and_then(Value::as_bool) != Some(true) {
            let what = format!("{dependency} has a version of its own");
            let remedy = "write `workspace = true` here, the version into the root's Cargo.toml";
            findings.push(Finding::new(path, line, what, remedy));
        }
    }
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
    if lints != Some(true) {
        let remedy = "add `[lints]` with `workspace = true`";
        findings.push(Finding::new(path, 1, "the workspace's lints are off", remedy));
    }
    findings
}

/// All dependencies of a manifest: of the crate, its tests, its build, and of single platforms.
fn dependencies(manifest: &Table) -> Vec<(&'static str, &str, &Value)> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms.into_iter().flatten().filter_map(|(_, value)| value.as_table());
    std::iter::once(manifest)
        .chain(platforms)
        .flat_map(|table| {
            ["dependencies", "dev-dependencies", "build-dependencies"]
                .into_iter()
                .filter_map(|section| Some((section, table.get(section)?.as_table()?)))
                .flat_map(|(section, table)| table.iter().map(move |it| (section, it)))
        })
        .map(|(section, (name, value))| (section, name.as_str(), value))
        .collect()
}

fn check_bans(path: &str, text: &str) -> Vec<Finding> {
    BANS.iter()
        .filter(|ban| !text.contains(*ban))
        .map(|ban| {
            let what = format!("`{ban}` is missing");
            let remedy = "a pure crate's clippy.toml says it: copy the line from a sibling crate";
            Finding::new(path, 1, what, remedy)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{rest}")
    }

    fn findings(name: &str, rest: &str) -> Vec<Finding> {
        check_manifest("crates/x/Cargo.toml", &manifest(name, rest))
    }

    #[test]
    fn an_edge_that_points_up_is_found_with_its_line() {
        let found = findings("tyr-types", "[dependencies]\ntyr-server.workspace = true\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].line, 6);
        assert!(found[0].what.contains("tyr-types may not depend on tyr-server"));
    }

    #[test]
    fn edges_of_tests_and_platforms_are_found_too() {
        for section in ["dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"]
        {
            let rest = format!("[{section}]\ntyr-store.workspace = true\n");
            assert_eq!(findings("tyr-protocol", &rest).len(), 1, "{section}");
        }
    }

    #[test]
    fn siblings_and_layers_see_only_what_the_graph_shows() {
        assert_eq!(findings("tyr", "[dependencies]\ntyr-store.workspace = true\n").len(), 1);
        let rest = "[dependencies]\ntyr-client.workspace = true\n";
        assert_eq!(findings("tyr-telemetry", rest).len(), 1);
        assert!(findings("tyr", rest).is_empty());
    }

    #[test]
    fn what_only_tests_may_see_is_for_tests_only() {
        let of = |section| format!("[{section}]\ntyr-server.workspace = true\n");
        assert!(findings("tyr-object", &of("dev-dependencies")).is_empty());
        assert_eq!(findings("tyr-object", &of("dependencies")).len(), 1);
        assert_eq!(findings("tyr-client", &of("dev-dependencies")).len(), 1);
    }

    #[test]
    fn a_network_below_an_embedded_store_is_found() {
        let rest = "[dependencies]\ntokio.workspace = true\n";
        assert_eq!(findings("tyr-embedded", rest).len(), 1);
        assert!(findings("tyr-server", rest).is_empty());
    }

    #[test]
    fn a_version_outside_the_root_is_found() {
        assert_eq!(findings("tyr-types", "[dependencies]\nbytes = \"1\"\n").len(), 1);
        assert!(findings("tyr-types", "[dependencies]\nbytes.workspace = true\n").is_empty());
    }

    #[test]
    fn a_crate_that_nobody_drew_is_found() {
        assert!(findings("tyr-magic", "")[0].what.contains("not in the crate graph"));
    }

    #[test]
    fn lints_switched_off_are_found() {
        let found = check_manifest("x/Cargo.toml", "[package]\nname = \"tyr-types\"\n");
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn a_pure_crate_without_a_ban_is_found() {
        let all = BANS.join("\n");
        assert!(check_bans("c", &all).is_empty());
        assert_eq!(check_bans("c", &all.replace("std::thread::spawn", "")).len(), 1);
    }

    #[test]
    fn the_graph_has_no_way_up() {
        for (at, (name, below)) in EDGES.iter().enumerate() {
            for other in *below {
                let place = EDGES.iter().position(|(known, _)| known == other);
                assert!(place.is_some_and(|place| place < at), "{name} -> {other}");
            }
        }
        // What starts stores and clusters for tests is above them.
        for (name, other) in TEST_EDGES.into_iter().filter(|it| it.1 != "tyr-testing") {
            let place = |name| EDGES.iter().position(|(known, _)| *known == name);
            assert!(place(other) < place(name), "{name} -> {other}");
        }
    }
}
