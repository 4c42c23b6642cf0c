//! The configuration file: TOML, one setting a line, and the line each stands on.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::setting::Setting;
use super::source::Source;
use super::table::SETTINGS;

/// Bytes of a configuration file at most; the table has some fifty settings of a few words each.
const FILE_LEN_MAX: u64 = 1 << 20;

/// What a file says.
#[derive(Debug, Default)]
pub struct Said {
    /// Settings as texts, each with its place.
    pub settings: Vec<(&'static Setting, String, Source)>,
    /// Settings of which what stands there is of no use.
    pub wrong: Vec<&'static str>,
    /// Everything that is wrong with it, a line each.
    pub errors: Vec<String>,
    /// Whether nothing of it could be read: then nobody knows what it was to say.
    pub is_unreadable: bool,
}

impl Said {
    fn unreadable(error: String) -> Self {
        Self { errors: vec![error], is_unreadable: true, ..Self::default() }
    }
}

/// Reads a file.
pub fn read(path: &Path) -> Said {
    let text = std::fs::metadata(path).and_then(|found| match found.len() > FILE_LEN_MAX {
        true => Err(std::io::Error::other(format!(
            "it has {} bytes, a configuration file has at most {FILE_LEN_MAX}",
            found.len()
        ))),
        false => std::fs::read_to_string(path),
    });
    match text {
        Ok(text) => parse(path, &text),
        Err(error) => Said::unreadable(format!("{}: cannot be read: {error}", path.display())),
    }
}

/// What this text of a file says.
pub fn parse(path: &Path, text: &str) -> Said {
    let line_at = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = error.span().map_or(1, |span| line_at(span.start));
            let place = path.display();
            return Said::unreadable(format!("{place}:{line}: not TOML: {}", error.message()));
        }
    };
    let mut said = Said::default();
    for (name, value) in table.get_ref() {
        let line = line_at(name.span().start);
        let name: &str = name.get_ref();
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            said.errors.push(format!(
                "{}:{line}: there is no setting {}{}",
                path.display(),
                name.escape_debug(),
                suggestion(name)
            ));
            continue;
        };
        match written(value.get_ref()) {
            Some(text) => {
                let source = Source::File { path: path.to_owned(), line };
                said.settings.push((setting, text, source));
            }
            None => {
                said.wrong.push(setting.name);
                said.errors.push(format!(
                    "{}:{line}: {name} is a text, a number, true or false; for example {}",
                    path.display(),
                    setting.line(setting.example)
                ));
            }
        }
    }
    said
}

/// The value as one would give it as a flag; a list is joined by commas.
fn written(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(is_on) => Some(is_on.to_string()),
        DeValue::Array(items) => {
            let items: Option<Vec<String>> =
                items.iter().map(|item| written(item.get_ref())).collect();
            items.map(|items| items.join(","))
        }
        DeValue::Table(_) | DeValue::Datetime(_) => None,
    }
}

/// A word on the setting that was meant, if one is near.
pub fn suggestion(name: &str) -> String {
    let plain = name.replace('-', "_").to_ascii_lowercase();
    let is_near = |setting: &&Setting| {
        setting.name == plain
            || (plain.len() >= 3 && (setting.name.contains(&plain) || plain.contains(setting.name)))
    };
    match SETTINGS.iter().find(is_near) {
        Some(setting) => format!("; perhaps {} is meant", setting.name),
        None => "; `tyr serve --help` shows those there are".to_owned(),
    }
}
