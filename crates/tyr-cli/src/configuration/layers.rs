//! Flags over environment over file over defaults: which value counts, and what is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tyr_trace::Endpoint;

use super::file::{self, Said};
use super::flags::SettingFlags;
use super::kind::Value;
use super::setting::Setting;
use super::source::Source;
use super::table::{Name, SETTINGS};

/// What an environment variable says, by its name.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What was given, before it is looked at.
#[derive(Default)]
pub struct Layers<'a> {
    /// The file.
    pub file: Option<&'a Path>,
    /// What an environment variable says.
    pub variable: Option<Variable<'a>>,
    /// The flags.
    pub flags: SettingFlags,
}

/// A value, what it was read from, and where that stood.
#[derive(Clone, Debug, PartialEq)]
struct Given {
    text: String,
    value: Value,
    source: Source,
}

/// All settings in effect.
#[derive(Clone, Debug)]
pub struct Configuration {
    given: BTreeMap<&'static str, Given>,
    /// Settings of which what was given is of no use: in their place stand the defaults, if any.
    wrong: BTreeSet<&'static str>,
}

/// What was given, looked at: what is sound, and what is not.
#[derive(Debug)]
pub struct Reviewed {
    /// What is sound.
    pub configuration: Configuration,
    /// Everything that is wrong, a line each, with the setting, its source and what is allowed.
    pub errors: Vec<String>,
    /// Whether the file could not be read: then what seems to be missing may stand there.
    pub is_file_unreadable: bool,
}

impl Layers<'_> {
    /// The settings in effect.
    ///
    /// # Errors
    /// Those of [`Layers::review`].
    pub fn resolve(&self) -> Result<Configuration, Vec<String>> {
        let Reviewed { configuration, errors, .. } = self.review();
        if errors.is_empty() { Ok(configuration) } else { Err(errors) }
    }

    /// The settings in effect as far as they are sound, and all that is wrong with the others: so
    /// that those which are sound can be compared with each other all the same.
    pub fn review(&self) -> Reviewed {
        let mut said = self.file.map_or_else(Said::default, file::read);
        let mut errors = std::mem::take(&mut said.errors);
        let (mut given, mut wrong) = (BTreeMap::new(), BTreeSet::new());
        for setting in &SETTINGS {
            if said.wrong.contains(&setting.name) {
                wrong.insert(setting.name);
            }
            let Some((text, source)) = self.find(setting, &said) else { continue };
            match setting.kind.parse(&text) {
                Ok(value) => {
                    given.insert(setting.name, Given { text, value, source });
                }
                Err(what) => {
                    errors.push(complain(setting, &text, &source, &what));
                    wrong.insert(setting.name);
                    if let Some(text) = setting.default
                        && let Ok(value) = setting.kind.parse(text)
                    {
                        let (text, source) = (text.to_owned(), Source::Default);
                        given.insert(setting.name, Given { text, value, source });
                    }
                }
            }
        }
        let configuration = Configuration { given, wrong };
        Reviewed { configuration, errors, is_file_unreadable: said.is_unreadable }
    }

    fn find(&self, setting: &Setting, said: &Said) -> Option<(String, Source)> {
        if let Some(text) = self.flags.0.get(setting.name) {
            return Some((text.clone(), Source::Flag(setting.flag())));
        }
        let variable = setting.variable();
        if let Some(text) = self.variable.and_then(|read| read(&variable)) {
            return Some((text, Source::Variable(variable)));
        }
        let mut lines = said.settings.iter().filter(|(known, ..)| known.name == setting.name);
        if let Some((_, text, source)) = lines.next() {
            return Some((text.clone(), source.clone()));
        }
        setting.default.map(|text| (text.to_owned(), Source::Default))
    }
}

/// What is wrong with a value, with all that is needed to mend it.
fn complain(setting: &Setting, text: &str, source: &Source, what: &str) -> String {
    format!(
        "{} = \"{}\" ({source}) {what}; allowed: {}; for example {}",
        setting.name,
        text.escape_debug(),
        setting.kind.range(),
        setting.line(setting.example)
    )
}

impl Configuration {
    /// Whether what was given for the setting is of no use, which is said already.
    pub fn is_wrong(&self, name: Name) -> bool {
        self.wrong.contains(name.setting().name)
    }

    /// What is wrong with a setting that is sound by itself, but not with the others.
    pub fn complaint(&self, name: Name, what: &str) -> String {
        let setting = name.setting();
        match self.given.get(setting.name) {
            Some(given) => complain(setting, &given.text, &given.source, what),
            None => format!(
                "{} {what}; set it in the file, by {} or by --{}; for example {}",
                setting.name,
                setting.variable(),
                setting.flag(),
                setting.line(setting.example)
            ),
        }
    }

    /// Where the value came from; `None` when there is none.
    #[cfg(test)]
    pub fn source(&self, name: Name) -> Option<&Source> {
        self.given.get(name.setting().name).map(|given| &given.source)
    }

    /// Whether the setting has a value.
    #[cfg(test)]
    pub fn has(&self, name: Name) -> bool {
        self.source(name).is_some()
    }

    /// A setting's value, as what the table says it is.
    fn get<T>(&self, name: Name, of: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let given = self.given.get(name.setting().name)?;
        let value = of(&given.value);
        assert!(
            value.is_some(),
            "setting {name:?} is {:?}, another kind was asked for",
            given.value
        );
        value
    }

    /// A number of things or bytes.
    pub fn count(&self, name: Name) -> Option<u64> {
        self.get(name, |value| if let Value::Count(count) = value { Some(*count) } else { None })
    }

    /// A time; the outer `None` when it is not set, the inner one for never.
    pub fn time(&self, name: Name) -> Option<Option<Duration>> {
        self.get(name, |value| if let Value::Time(time) = value { Some(*time) } else { None })
    }

    /// A time that has a default and is not `never`.
    pub fn span(&self, name: Name) -> Duration {
        self.time(name).flatten().expect("the table gives this time a default, and no never")
    }

    /// A number with a fraction.
    pub fn number(&self, name: Name) -> Option<f64> {
        self.get(name, |value| if let Value::Number(it) = value { Some(*it) } else { None })
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: Name) -> bool {
        let is_on =
            self.get(name, |value| if let Value::Switch(it) = value { Some(*it) } else { None });
        is_on.unwrap_or(false)
    }

    /// One of a few words.
    pub fn choice(&self, name: Name) -> Option<&'static str> {
        self.get(name, |value| if let Value::Choice(word) = value { Some(*word) } else { None })
    }

    /// A DNS name.
    pub fn name(&self, name: Name) -> Option<String> {
        self.get(name, |value| if let Value::Name(it) = value { Some(it.clone()) } else { None })
    }

    /// A path.
    pub fn path(&self, name: Name) -> Option<PathBuf> {
        self.get(name, |value| if let Value::Path(it) = value { Some(it.clone()) } else { None })
    }

    /// Where to listen; `None` for nowhere.
    pub fn socket(&self, name: Name) -> Option<SocketAddr> {
        self.get(name, |value| if let Value::Socket(it) = value { Some(*it) } else { None })
            .flatten()
    }

    /// Where a collector of traces is reached.
    pub fn collector(&self, name: Name) -> Option<Endpoint> {
        self.get(
            name,
            |value| if let Value::Collector(it) = value { Some(it.clone()) } else { None },
        )
    }

    /// Where somebody is reached.
    pub fn places(&self, name: Name) -> Vec<String> {
        self.get(name, |value| if let Value::Places(it) = value { Some(it.clone()) } else { None })
            .unwrap_or_default()
    }

    /// Nodes and where they are reached.
    pub fn nodes(&self, name: Name) -> BTreeMap<u16, Vec<String>> {
        self.get(name, |value| if let Value::Nodes(it) = value { Some(it.clone()) } else { None })
            .unwrap_or_default()
    }

    /// All that is in effect, as a file that says the same, each line with where it came from.
    pub fn text(&self) -> String {
        let lines: Vec<(String, String)> = SETTINGS
            .iter()
            .map(|setting| match self.given.get(setting.name) {
                Some(given) => (setting.line(&given.text), given.source.to_string()),
                None => (format!("# {}", setting.line(setting.example)), "not set".to_owned()),
            })
            .collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (line, source) in lines {
            let gap = " ".repeat(width - line.chars().count());
            writeln!(text, "{line}{gap}  # {source}").expect("a String takes any text");
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The same as JSON.
    pub fn json(&self) -> serde_json::Value {
        let fields = self.given.iter().map(|(name, given)| {
            let field = json!({"value": given.text, "source": given.source.to_string()});
            ((*name).to_owned(), field)
        });
        serde_json::Value::Object(fields.collect())
    }
}
