//! What generators there are.

use serde::Serialize;
use tyr::Result;

use crate::layout::{self, Entry};
use crate::series::Series;
use crate::telemetry::Telemetry;

/// Which generators are listed; what is not given matches any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogFilter {
    /// Its site.
    pub site: Option<String>,
    /// Its cluster.
    pub cluster: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// What it measures.
    pub parameter: Option<String>,
    /// Its job.
    pub job: Option<String>,
    /// The region it is counted in.
    pub region: Option<String>,
}

/// Generators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Catalog {
    /// In the order of site, cluster, host, parameter, job, region.
    pub entries: Vec<CatalogEntry>,
    /// Whether there are more; these are the first ones.
    pub is_cut: bool,
}

/// A generator, and the region that it is, or was, counted in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CatalogEntry {
    /// Its names.
    #[serde(flatten)]
    pub series: Series,
    /// The region.
    pub region: String,
}

impl CatalogFilter {
    /// Names of the key that are given from the start, as a prefix to scan.
    fn prefix(&self) -> String {
        let known = [&self.site, &self.cluster, &self.host, &self.parameter, &self.job];
        let known: Vec<&String> = known.into_iter().map_while(Option::as_ref).collect();
        let path = layout::join_path(&known);
        let separator = if known.is_empty() { "" } else { "/" };
        format!("{}{path}{separator}", layout::CATALOG_PREFIX)
    }

    fn has(&self, entry: &CatalogEntry) -> bool {
        let pairs = [
            (&self.site, &entry.series.site),
            (&self.cluster, &entry.series.cluster),
            (&self.host, &entry.series.host),
            (&self.parameter, &entry.series.parameter),
            (&self.job, &entry.series.job),
            (&self.region, &entry.region),
        ];
        pairs.into_iter().all(|(wanted, name)| wanted.as_ref().is_none_or(|text| text == name))
    }
}

impl Telemetry {
    /// The first `limit` generators that the filter matches.
    ///
    /// # Errors
    /// Whatever the store answers.
    pub async fn catalog(&self, filter: &CatalogFilter, limit: usize) -> Result<Catalog> {
        let snapshot = self.store().snapshot().await?;
        let prefix = filter.prefix();
        let mut catalog = Catalog { entries: Vec::new(), is_cut: false };
        let mut after = None;
        loop {
            let page =
                snapshot.scan(self.keyspace(), prefix.as_bytes(), after.as_ref(), 1000).await?;
            let Some((key, _)) = page.last() else { return Ok(catalog) };
            after = Some(key.clone());
            for (key, _) in &page {
                let Some(Entry::Catalog(series, region)) = Entry::parse(key) else { continue };
                let entry = CatalogEntry { series, region };
                if !filter.has(&entry) {
                    continue;
                }
                if catalog.entries.len() >= limit {
                    catalog.is_cut = true;
                    return Ok(catalog);
                }
                catalog.entries.push(entry);
            }
        }
    }
}
