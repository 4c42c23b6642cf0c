//! One setting: a row of the table.

use super::kind::Kind;
#[cfg(test)]
use super::kind::Value;

/// What a setting is about; the reference has a section for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumCount)]
pub enum Group {
    /// Who the node is, and where.
    Node,
    /// How it comes into a cluster.
    Cluster,
    /// Who may do what, and what is encrypted.
    Security,
    /// Memory and disk.
    Storage,
    /// Finding failures.
    Failures,
    /// Sockets and threads.
    Network,
    /// What operators look at.
    Observation,
}

impl Group {
    /// All, in the order of the reference.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Node,
        Self::Cluster,
        Self::Security,
        Self::Storage,
        Self::Failures,
        Self::Network,
        Self::Observation,
    ];

    /// Its heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Node => "The node",
            Self::Cluster => "The cluster",
            Self::Security => "Security",
            Self::Storage => "Memory and disk",
            Self::Failures => "Leases and failures",
            Self::Network => "Network",
            Self::Observation => "Logs, metrics and traces",
        }
    }
}

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name, as in the file.
    pub name: &'static str,
    /// What it is about.
    pub group: Group,
    /// What its value may be.
    pub kind: Kind,
    /// The value when nobody gives one, as one would give it.
    pub default: Option<&'static str>,
    /// A value that makes sense.
    pub example: &'static str,
    /// What it does, for people; one or two sentences.
    pub meaning: &'static str,
}

impl Setting {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("TYR_{}", self.name.to_ascii_uppercase())
    }

    /// The flag that sets it, without the dashes before.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The value of its default.
    #[cfg(test)]
    pub fn default_value(&self) -> Option<Value> {
        let parse = |text| self.kind.parse(text).expect("a test reads every default");
        self.default.map(parse)
    }

    /// A line of a file that sets it.
    pub fn line(&self, text: &str) -> String {
        format!("{} = {}", self.name, self.kind.toml(text))
    }
}
