//! The table, the layers and the reference page.

use std::path::Path;

use super::*;
use crate::configuration::setting::Group;
use crate::configuration::source::Source;
use crate::configuration::table::SETTINGS;

fn flags(given: &[(&'static str, &str)]) -> SettingFlags {
    SettingFlags(given.iter().map(|(name, text)| (*name, (*text).to_owned())).collect())
}

fn file_of(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn every_default_and_every_example_can_be_read() {
    for setting in &SETTINGS {
        setting.default_value();
        let read = setting.kind.parse(setting.example);
        assert!(read.is_ok(), "{}: {read:?}", setting.name);
        assert_ne!(setting.default, Some(setting.example), "{}: shows nothing new", setting.name);
        assert!(setting.meaning.ends_with('.'), "{}", setting.name);
        assert!(Group::ALL.contains(&setting.group), "{}", setting.name);
    }
}

#[test]
fn every_setting_has_a_name_of_its_own_that_no_other_flag_has() {
    let names: std::collections::BTreeSet<_> = SETTINGS.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), SETTINGS.len());
    for taken in ["config", "check", "print_config", "json", "data", "help"] {
        assert!(!names.contains(taken), "{taken}");
    }
}

#[test]
fn flags_count_before_variables_before_the_file_before_defaults() {
    let file = file_of("lease = \"3s\"\nweight = 50\ncache = \"1GiB\"\n");
    let variable = |name: &str| match name {
        "TYR_LEASE" => Some("4s".to_owned()),
        "TYR_WEIGHT" => Some("60".to_owned()),
        _ => None,
    };
    let layers = Layers {
        file: Some(file.path()),
        variable: Some(&variable),
        flags: flags(&[("lease", "5s")]),
    };
    let configuration = layers.resolve().unwrap();
    assert_eq!(configuration.span(Name::Lease).as_secs(), 5);
    assert_eq!(configuration.source(Name::Lease).unwrap().to_string(), "--lease");
    assert_eq!(configuration.count(Name::Weight), Some(60));
    assert_eq!(configuration.source(Name::Weight).unwrap().to_string(), "TYR_WEIGHT");
    assert_eq!(configuration.count(Name::Cache), Some(1 << 30));
    let place = format!("{}:3", file.path().display());
    assert_eq!(configuration.source(Name::Cache).unwrap().to_string(), place);
    assert_eq!(configuration.source(Name::Linger), Some(&Source::Default));
    assert!(!configuration.has(Name::Join));
}

#[test]
fn an_error_names_setting_source_value_range_and_an_example() {
    let file = file_of("# small\ncache = \"4MiB\"\n");
    let layers = Layers {
        file: Some(file.path()),
        variable: None,
        flags: flags(&[("log_level", "loud"), ("listen", "here")]),
    };
    let errors = layers.resolve().unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:?}");
    let cache = errors.iter().find(|error| error.starts_with("cache")).unwrap();
    for part in ["\"4MiB\"", ":2)", "8.0 MiB to 1.0 TiB", "cache = \"8GiB\""] {
        assert!(cache.contains(part), "{part} in {cache}");
    }
    let level = errors.iter().find(|error| error.starts_with("log_level")).unwrap();
    assert!(level.contains("--log-level") && level.contains("debug"), "{level}");
}

#[test]
fn a_collector_that_cannot_be_and_more_than_all_are_refused() {
    let given = [("trace_endpoint", "https://otel:4318"), ("trace_ratio", "1.5")];
    let layers = Layers { flags: flags(&given), ..Layers::default() };
    let errors = layers.resolve().unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].contains("--trace-endpoint") && errors[0].contains("TLS"), "{errors:?}");
    assert!(errors[1].contains("allowed: 0 to 1;"), "{errors:?}");
    let bare = [("trace_endpoint", "otel:4318")];
    let errors = Layers { flags: flags(&bare), ..Layers::default() }.resolve().unwrap_err();
    assert!(errors[0].contains("is not http://host:port; allowed"), "{errors:?}");
}

#[test]
fn a_file_with_what_nobody_knows_is_refused_with_its_lines() {
    let refuse = |text: &str| file::parse(Path::new("tyr.toml"), text).errors.join("\n");
    assert!(refuse("node = 1\nnetwork-threads = 2\n").contains("tyr.toml:2"));
    assert!(refuse("network-threads = 2\n").contains("network_threads is meant"));
    assert!(refuse("colour = 1\n").contains("--help"));
    assert!(refuse("[node]\nx = 1\n").contains("node is a text"));
    assert!(refuse("node = 1\nnode = 2\n").contains("tyr.toml:2"));
    assert!(refuse("node = \n").contains("not TOML"));
    let said = file::parse(Path::new("f"), "nodes = [\"0=a:1\", \"1=b:1\"]\ninsecure = true\n");
    assert_eq!(said.errors, [""; 0]);
    let said = said.settings;
    let text = |name: &str| said.iter().find(|(it, ..)| it.name == name).map(|(_, text, _)| text);
    assert_eq!(text("nodes").unwrap(), "0=a:1,1=b:1");
    assert_eq!(text("insecure").unwrap(), "true");
}

#[test]
fn what_is_printed_is_a_file_that_says_the_same() {
    let layers =
        Layers { flags: flags(&[("cache", "1GiB"), ("folder", "/a \"b\"")]), ..Layers::default() };
    let configuration = layers.resolve().unwrap();
    let file = file_of(&configuration.text());
    let again = Layers { file: Some(file.path()), ..Layers::default() }.resolve().unwrap();
    assert_eq!(again.count(Name::Cache), Some(1 << 30));
    assert_eq!(again.path(Name::Folder), configuration.path(Name::Folder));
    assert_eq!(again.text().lines().count(), SETTINGS.len());
    assert!(configuration.text().contains("# --cache"));
}

#[test]
fn the_reference_page_is_what_the_table_says() {
    let page = include_str!("../../../../docs/reference/configuration.md");
    assert!(
        page == page::page(),
        "run: cargo run -p tyr-cli -- reference configuration > docs/reference/configuration.md"
    );
}
