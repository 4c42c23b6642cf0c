//! Questions over HTTP: the parameters of a request become a query, its answer is rendered.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tyr::{Error, Result};

use super::{Refusal, Service, influx, json};
use crate::calendar::{TimeRange, Window, parse_time};
use crate::query::{CatalogFilter, TopBy, TopQuery};
use crate::render::{Answer, Format, render};
use crate::series::Series;
use crate::source::now_us;
use crate::sources::SourceCounts;
use crate::subject::{AggregateName, Scope, Subject};

/// Most rows of an answer.
const LIMIT_MAX: usize = 1_000_000;

/// The parameters of a request.
struct Parameters(BTreeMap<String, String>);

type Asked = Query<BTreeMap<String, String>>;

impl Parameters {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    fn required(&self, name: &str) -> Result<&str> {
        self.text(name).ok_or_else(|| Error::invalid(format!("the parameter {name} is missing")))
    }

    fn limit(&self, otherwise: usize) -> Result<usize> {
        let Some(text) = self.text("limit") else { return Ok(otherwise) };
        text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit)).ok_or_else(|| {
            Error::invalid(format!("limit is 1 to {LIMIT_MAX}, not \"{}\"", text.escape_debug()))
        })
    }

    fn range(&self) -> Result<TimeRange> {
        let now_us = now_us();
        let time = |name: &str, otherwise: i64| {
            self.text(name).map_or(Ok(otherwise), |text| parse_time(text, now_us))
        };
        let all = TimeRange::ALL;
        TimeRange::new(time("from", all.from_us)?, time("to", all.to_us)?)
    }

    /// Refuses parameters that the question does not have: a misspelt one would change the answer
    /// without a word.
    fn check(&self, known: &[&str]) -> Result<()> {
        let unknown = self.0.keys().find(|name| {
            !known.contains(&name.as_str()) && !["format", "width"].contains(&name.as_str())
        });
        match unknown {
            None => Ok(()),
            Some(name) => Err(Error::invalid(format!(
                "there is no parameter \"{}\" here; there are {}, format, width",
                name.escape_debug(),
                known.join(", ")
            ))),
        }
    }

    fn answer(&self, answer: &(impl Answer + Serialize)) -> Result<Response> {
        let format = self.text("format").map_or(Ok(Format::Json), Format::parse)?;
        let width = match self.text("width").map(str::parse) {
            None => 100,
            Some(Ok(width)) => width,
            Some(Err(_)) => return Err(Error::invalid("width is a number of characters")),
        };
        let content_type = match format {
            Format::Json => "application/json",
            Format::Csv => "text/csv; charset=utf-8",
            Format::Table | Format::Chart => "text/plain; charset=utf-8",
        };
        let text = render(answer, format, width);
        Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
    }
}

/// The raw samples of one series.
pub async fn series(
    State(service): State<Arc<Service>>,
    Query(asked): Asked,
) -> Result<Response, Refusal> {
    let _permit = service.readers.acquire().await.expect("the semaphore is never closed");
    let asked = Parameters(asked);
    asked.check(&["site", "cluster", "host", "parameter", "job", "from", "to", "limit"])?;
    let series = Series {
        site: asked.required("site")?.to_owned(),
        cluster: asked.required("cluster")?.to_owned(),
        host: asked.required("host")?.to_owned(),
        parameter: asked.required("parameter")?.to_owned(),
        job: asked.required("job")?.to_owned(),
    };
    let limit = asked.limit(10_000)?;
    let answer = service.sources.telemetry.raw(&series, asked.range()?, limit).await?;
    Ok(asked.answer(&answer)?)
}

/// One aggregate over time.
pub async fn aggregate(
    State(service): State<Arc<Service>>,
    Query(asked): Asked,
) -> Result<Response, Refusal> {
    let _permit = service.readers.acquire().await.expect("the semaphore is never closed");
    let asked = Parameters(asked);
    asked.check(&["scope", "path", "parameter", "window", "from", "to"])?;
    let scope = Scope::parse(asked.required("scope")?)?;
    let name = AggregateName {
        subject: Subject::parse(scope, asked.text("path").unwrap_or_default())?,
        parameter: asked.required("parameter")?.to_owned(),
    };
    let window = asked.text("window").map_or(Ok(Window::Minute), Window::parse)?;
    let answer = service.sources.telemetry.aggregate(&name, window, asked.range()?).await?;
    Ok(asked.answer(&answer)?)
}

/// The top of a scope.
pub async fn top(
    State(service): State<Arc<Service>>,
    Query(asked): Asked,
) -> Result<Response, Refusal> {
    let _permit = service.readers.acquire().await.expect("the semaphore is never closed");
    let asked = Parameters(asked);
    asked.check(&["scope", "parameter", "by", "from", "to", "limit"])?;
    let query = TopQuery {
        scope: asked.text("scope").map_or(Ok(Scope::Host), Scope::parse)?,
        parameter: asked.owned("parameter"),
        by: asked.text("by").map_or(Ok(TopBy::Count), TopBy::parse)?,
        range: asked.range()?,
        limit: asked.limit(10)?,
    };
    let answer = service.sources.telemetry.top(&query).await?;
    Ok(asked.answer(&answer)?)
}

/// What generators there are.
pub async fn catalog(
    State(service): State<Arc<Service>>,
    Query(asked): Asked,
) -> Result<Response, Refusal> {
    let _permit = service.readers.acquire().await.expect("the semaphore is never closed");
    let asked = Parameters(asked);
    asked.check(&["site", "cluster", "host", "parameter", "job", "region", "limit"])?;
    let filter = CatalogFilter {
        site: asked.owned("site"),
        cluster: asked.owned("cluster"),
        host: asked.owned("host"),
        parameter: asked.owned("parameter"),
        job: asked.owned("job"),
        region: asked.owned("region"),
    };
    let answer = service.sources.telemetry.catalog(&filter, asked.limit(10_000)?).await?;
    Ok(asked.answer(&answer)?)
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
    #[serde(flatten)]
    counts: SourceCounts,
}

/// Whether the store answers, and what became of all that came so far.
pub async fn health(State(service): State<Arc<Service>>) -> Result<Response, Refusal> {
    service.sources.telemetry.store().snapshot().await?;
    let health = Health { status: "ok", counts: service.sources.counts() };
    Ok(json(StatusCode::OK, &health))
}

/// Whether the store answers, in InfluxDB's words.
pub async fn influx_health(State(service): State<Arc<Service>>) -> Response {
    let outcome = service.sources.telemetry.store().snapshot().await;
    influx::health(outcome.as_ref().map(drop))
}
