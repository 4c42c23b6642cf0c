//! What was asked for and is not there: an error that names what is like it.
//!
//! An answer may be empty because nothing was measured then, or because nothing is called so. The
//! second is a mistake of who asks, mostly of the keyboard, and is told apart here.

use std::collections::BTreeSet;

use tyr::{Error, Result};

use super::{CatalogEntry, CatalogFilter};
use crate::subject::{Scope, Subject};
use crate::telemetry::Telemetry;

/// Generators that are looked through for names.
const ENTRIES_MAX: usize = 100_000;

/// Names that are offered.
const OFFERED_MAX: usize = 3;

/// How alike names must be to be offered, from 0 to 1.
const LIKENESS_MIN: f64 = 0.5;

/// One of the six names of a catalogue's entry.
struct Part {
    what: &'static str,
    of_filter: fn(&mut CatalogFilter) -> &mut Option<String>,
    of_entry: fn(&CatalogEntry) -> &String,
}

const PARTS: [Part; 6] = [
    Part { what: "site", of_filter: |it| &mut it.site, of_entry: |it| &it.series.site },
    Part { what: "cluster", of_filter: |it| &mut it.cluster, of_entry: |it| &it.series.cluster },
    Part { what: "host", of_filter: |it| &mut it.host, of_entry: |it| &it.series.host },
    Part {
        what: "parameter",
        of_filter: |it| &mut it.parameter,
        of_entry: |it| &it.series.parameter,
    },
    Part { what: "job", of_filter: |it| &mut it.job, of_entry: |it| &it.series.job },
    Part { what: "region", of_filter: |it| &mut it.region, of_entry: |it| &it.region },
];

impl CatalogFilter {
    /// Those that `subject` is made of, by what they measure.
    pub fn of(subject: &Subject, parameter: &str) -> Self {
        let mut filter = Self { parameter: Some(parameter.to_owned()), ..Self::default() };
        let named: &[fn(&mut Self) -> &mut Option<String>] = match subject.scope() {
            Scope::Generator => {
                &[|it| &mut it.site, |it| &mut it.cluster, |it| &mut it.host, |it| &mut it.job]
            }
            Scope::Host => &[|it| &mut it.site, |it| &mut it.cluster, |it| &mut it.host],
            Scope::Cluster => &[|it| &mut it.site, |it| &mut it.cluster],
            Scope::Site => &[|it| &mut it.site],
            Scope::Region => &[|it| &mut it.region],
            Scope::Job => &[|it| &mut it.job],
            Scope::All => &[],
        };
        for (field, name) in named.iter().zip(subject.names()) {
            *field(&mut filter) = Some(name.clone());
        }
        filter
    }
}

impl Telemetry {
    /// Asked when an answer was empty: whether each name of the filter is that of something.
    ///
    /// # Errors
    /// `NotFound` for the first that is not, with those that are like it.
    pub async fn check_names(&self, filter: &CatalogFilter) -> Result<()> {
        for part in PARTS {
            let mut filter = filter.clone();
            let Some(name) = (part.of_filter)(&mut filter).take() else { continue };
            let mut alone = CatalogFilter::default();
            *(part.of_filter)(&mut alone) = Some(name.clone());
            if self.catalog(&alone, 1).await?.entries.is_empty() {
                let all = self.catalog(&CatalogFilter::default(), ENTRIES_MAX).await?.entries;
                let names = all.iter().map(part.of_entry).collect();
                return Err(absent(part.what, &name, &names));
            }
        }
        Ok(())
    }

    /// The same, and whether anything has all of them.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn check_series(&self, filter: &CatalogFilter) -> Result<()> {
        self.check_names(filter).await?;
        if !self.catalog(filter, 1).await?.entries.is_empty() {
            return Ok(());
        }
        let mut filter = filter.clone();
        let name = |part: Part| {
            let name = (part.of_filter)(&mut filter).take()?;
            Some(format!("{} \"{}\"", part.what, name.escape_debug()))
        };
        let names: Vec<String> = PARTS.into_iter().filter_map(name).collect();
        Err(Error::not_found(format!(
            "nothing has all of {}; `tyr telemetry list` shows what there is",
            names.join(", ")
        )))
    }
}

fn absent(what: &str, name: &str, names: &BTreeSet<&String>) -> Error {
    let likeness = |other: &String| strsim::normalized_damerau_levenshtein(name, other);
    let mut near: Vec<(f64, &String)> = names.iter().map(|it| (likeness(it), *it)).collect();
    near.retain(|(likeness, _)| *likeness >= LIKENESS_MIN);
    near.sort_by(|left, right| right.0.total_cmp(&left.0));
    let near: Vec<&str> = near.iter().take(OFFERED_MAX).map(|(_, it)| it.as_str()).collect();
    let advice = match near.as_slice() {
        [] => "`tyr telemetry list` shows what there is".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    };
    Error::not_found(format!("there is no {what} \"{}\"; {advice}", name.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_like_it_is_offered_the_most_alike_first_and_nothing_else() {
        let names = ["load.one", "load.five", "memory.used"].map(str::to_owned);
        let names: BTreeSet<&String> = names.iter().collect();
        let text = absent("parameter", "laod.one", &names).to_string();
        assert_eq!(text, "there is no parameter \"laod.one\"; did you mean load.one or load.five?");
        let text = absent("parameter", "x", &names).to_string();
        assert!(text.ends_with("`tyr telemetry list` shows what there is"), "{text}");
    }
}
