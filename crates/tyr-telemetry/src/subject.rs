//! What an aggregate is about: a scope, and the names that pick one subject in it.

use serde::Serialize;
use tyr::{Error, Result};

use crate::layout;
use crate::series::Series;

/// How far an aggregate reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::EnumCount)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One generator.
    Generator,
    /// All of a host, over its jobs.
    Host,
    /// All of a cluster.
    Cluster,
    /// All of a site.
    Site,
    /// All sites of a region.
    Region,
    /// All of a job, wherever it runs.
    Job,
    /// Everything.
    All,
}

impl Scope {
    /// All of them, from narrow to wide.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::Generator,
        Self::Host,
        Self::Cluster,
        Self::Site,
        Self::Region,
        Self::Job,
        Self::All,
    ];

    /// Its name, as on the command line and in keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Generator => "generator",
            Self::Host => "host",
            Self::Cluster => "cluster",
            Self::Site => "site",
            Self::Region => "region",
            Self::Job => "job",
            Self::All => "all",
        }
    }

    /// The scope of this name.
    ///
    /// # Errors
    /// `InvalidArgument` with the names.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == text).ok_or_else(|| {
            Error::invalid(format!(
                "a scope is generator, host, cluster, site, region, job or all, not \"{}\"",
                text.escape_debug()
            ))
        })
    }

    /// What the names of a subject of this scope are, in order.
    pub fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Generator => &["site", "cluster", "host", "job"],
            Self::Host => &["site", "cluster", "host"],
            Self::Cluster => &["site", "cluster"],
            Self::Site => &["site"],
            Self::Region => &["region"],
            Self::Job => &["job"],
            Self::All => &[],
        }
    }
}

/// One generator, host, cluster, site, region or job, or all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    scope: Scope,
    names: Vec<String>,
}

impl Subject {
    /// Everything.
    pub const ALL: Self = Self { scope: Scope::All, names: Vec::new() };

    /// The subject of this scope with these names, in the order of [`Scope::parts`].
    ///
    /// # Errors
    /// `InvalidArgument` when there are too many or too few, or one cannot be a name.
    pub fn new<T: AsRef<str>>(scope: Scope, names: &[T]) -> Result<Self> {
        if names.len() != scope.parts().len() {
            return Err(Error::invalid(format!(
                "a {} is named by {} names ({}), not {}",
                scope.name(),
                scope.parts().len(),
                scope.parts().join("/"),
                names.len()
            )));
        }
        for (what, name) in scope.parts().iter().zip(names) {
            layout::validate_name(what, name.as_ref())?;
        }
        Ok(Self { scope, names: names.iter().map(|name| name.as_ref().to_owned()).collect() })
    }

    /// The subject of this scope named by a path, like `cern/batch/node17` for a host.
    ///
    /// A `/` inside a name is written `%2F`, a `%` is written `%25`. The path of all is empty.
    ///
    /// # Errors
    /// `InvalidArgument` as for [`Subject::new`].
    pub fn parse(scope: Scope, path: &str) -> Result<Self> {
        let names = if path.is_empty() { Some(Vec::new()) } else { layout::split_path(path) };
        let names = names.ok_or_else(|| {
            Error::invalid(format!(
                "\"{}\" is not a path of names: write / inside a name as %2F, % as %25",
                path.escape_debug()
            ))
        })?;
        Self::new(scope, &names)
    }

    /// The subject of this scope that the series belongs to.
    pub fn of(scope: Scope, series: &Series, region: &str) -> Self {
        let names: &[&str] = match scope {
            Scope::Generator => &[&series.site, &series.cluster, &series.host, &series.job],
            Scope::Host => &[&series.site, &series.cluster, &series.host],
            Scope::Cluster => &[&series.site, &series.cluster],
            Scope::Site => &[&series.site],
            Scope::Region => &[region],
            Scope::Job => &[&series.job],
            Scope::All => &[],
        };
        Self { scope, names: names.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// Whether measurements of the series, counted in `region`, count in it.
    pub fn has(&self, series: &Series, region: &str) -> bool {
        *self == Self::of(self.scope, series, region)
    }

    /// Its scope.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Its names, in the order of [`Scope::parts`].
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its names as a path, as [`Subject::parse`] reads it; empty for all.
    pub fn path(&self) -> String {
        layout::join_path(&self.names)
    }
}

/// One aggregate: a parameter of a subject.
///
/// Aggregates are kept for each parameter, because a mean of loads and bytes has no meaning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AggregateName {
    /// What it is about.
    pub subject: Subject,
    /// What is measured.
    pub parameter: String,
}

/// Written like `load of host cern/batch/node17`.
impl std::fmt::Display for AggregateName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.parameter, self.subject.scope.name())?;
        if self.subject.names.is_empty() { Ok(()) } else { write!(f, " {}", self.subject.path()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_what_its_path_says() {
        for (scope, path) in [
            (Scope::Generator, "cern/batch/a%2Fb/reco"),
            (Scope::Host, "cern/batch/50%25"),
            (Scope::Region, "eu"),
            (Scope::All, ""),
        ] {
            let subject = Subject::parse(scope, path).unwrap();
            assert_eq!(subject.path(), path);
        }
        assert_eq!(Subject::parse(Scope::Host, "a/b/c%2Fd").unwrap().names()[2], "c/d");
    }

    #[test]
    fn too_few_names_are_refused_with_what_is_expected() {
        let error = Subject::parse(Scope::Host, "cern/batch").unwrap_err();
        assert!(error.message().contains("site/cluster/host"), "{error}");
        assert!(Subject::parse(Scope::Site, "%zz").is_err());
        assert!(Subject::parse(Scope::All, "x").is_err());
    }

    #[test]
    fn a_series_belongs_to_one_subject_of_each_scope() {
        let series = Series {
            site: "s".into(),
            cluster: "c".into(),
            host: "h".into(),
            parameter: "p".into(),
            job: "j".into(),
        };
        for scope in Scope::ALL {
            let subject = Subject::of(scope, &series, "r");
            assert_eq!(subject.names().len(), scope.parts().len());
            assert!(subject.has(&series, "r"));
        }
        assert!(!Subject::of(Scope::Region, &series, "r").has(&series, "elsewhere"));
    }
}
