//! `tyr telemetry query`, `top` and `list`.

use clap::{Args, ValueEnum};
use tyr_telemetry::calendar::parse_time;
use tyr_telemetry::query::{CatalogFilter, TopBy, TopQuery};
use tyr_telemetry::render::{Format, render};
use tyr_telemetry::source::now_us;
use tyr_telemetry::{AggregateName, Scope, Series, Subject, TimeRange, Window};

use super::{LookArguments, open_to_look, runtime};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Columns of text where there is no terminal to ask.
const WIDTH_DEFAULT: usize = 100;

/// Which times.
#[derive(Args, Debug)]
pub struct RangeArguments {
    /// From this time on: 2014-04-01, "2014-04-01 00:00:00", RFC 3339, seconds since 1970, -6h
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    from: Option<String>,
    /// Before this time
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    to: Option<String>,
}

impl RangeArguments {
    fn range(&self) -> tyr::Result<TimeRange> {
        let now_us = now_us();
        let or = |text: &Option<String>, default: i64| match text {
            Some(text) => parse_time(text, now_us),
            None => Ok(default),
        };
        let all = TimeRange::ALL;
        TimeRange::new(or(&self.from, all.from_us)?, or(&self.to, all.to_us)?)
    }
}

/// How the answer looks.
#[derive(Args, Debug)]
pub struct FormatArguments {
    /// How the answer looks; --json is json
    #[arg(long, short, value_enum, default_value = "table")]
    format: FormatArgument,
}

/// How an answer looks.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[allow(missing_docs, reason = "they are the formats of the library")]
pub enum FormatArgument {
    Table,
    Chart,
    Csv,
    Json,
}

impl FormatArguments {
    fn format(&self, session: &Session) -> Format {
        match self.format {
            _ if session.output.is_json() => Format::Json,
            FormatArgument::Table => Format::Table,
            FormatArgument::Chart => Format::Chart,
            FormatArgument::Csv => Format::Csv,
            FormatArgument::Json => Format::Json,
        }
    }
}

/// Columns of the terminal.
pub fn width() -> usize {
    ratatui::crossterm::terminal::size().map_or(WIDTH_DEFAULT, |(columns, _)| columns.into())
}

/// `tyr telemetry query`
#[derive(Args, Debug)]
#[command(after_help = "\
PATH names the subject: a generator is site/cluster/host/job, a host site/cluster/host, a cluster \
site/cluster, then site, region, job; `all` has none. A / inside a name is %2F.

Examples:
  tyr telemetry query all --parameter load --window hour --from -1d --format chart
  tyr telemetry query host cern/batch/node17 --parameter load --format csv
  tyr telemetry query generator cern/batch/node17/reco --parameter load --raw")]
pub struct QueryArguments {
    /// generator, host, cluster, site, region, job, all
    scope: String,
    /// Which one, as a path of names
    #[arg(default_value = "")]
    path: String,
    /// What is measured
    #[arg(long, short, value_name = "NAME")]
    parameter: String,
    /// The width of the aggregates: minute, hour, day
    #[arg(long, short, default_value = "minute")]
    window: String,
    /// The measurements themselves instead of aggregates; generators only
    #[arg(long = "raw")]
    is_raw: bool,
    /// At most so many raw measurements
    #[arg(long, default_value = "100000", value_name = "N")]
    limit: usize,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    format: FormatArguments,
    #[command(flatten)]
    look: LookArguments,
}

/// Shows one series.
pub fn query(session: &mut Session, arguments: &QueryArguments) -> Outcome {
    let subject = Subject::parse(Scope::parse(&arguments.scope)?, &arguments.path)?;
    let range = arguments.range.range()?;
    let window = Window::parse(&arguments.window)?;
    let format = arguments.format.format(session);
    let raw = arguments.is_raw.then(|| series_of(&subject, &arguments.parameter)).transpose()?;
    let filter = CatalogFilter::of(&subject, &arguments.parameter);
    let runtime = runtime()?;
    let telemetry = open_to_look(session, &runtime, &arguments.look)?;
    let text = match raw {
        Some(series) => {
            let found = runtime.block_on(telemetry.raw(&series, range, arguments.limit))?;
            if found.samples.is_empty() {
                runtime.block_on(telemetry.check_series(&filter))?;
            }
            render(&found, format, width())
        }
        None => {
            let name = AggregateName { subject, parameter: arguments.parameter.clone() };
            let found = runtime.block_on(telemetry.aggregate(&name, window, range))?;
            if found.points.is_empty() {
                runtime.block_on(telemetry.check_series(&filter))?;
            }
            render(&found, format, width())
        }
    };
    session.output.line(text.trim_end())
}

/// The series of a generator's parameter.
fn series_of(subject: &Subject, parameter: &str) -> Outcome<Series> {
    match (subject.scope(), subject.names()) {
        (Scope::Generator, [site, cluster, host, job]) => Ok(Series {
            site: site.clone(),
            cluster: cluster.clone(),
            host: host.clone(),
            parameter: parameter.to_owned(),
            job: job.clone(),
        }),
        (_, _) => Err(Failure::Usage(
            "--raw shows the measurements of one generator: \
             tyr telemetry query generator SITE/CLUSTER/HOST/JOB --parameter NAME --raw"
                .to_owned(),
        )),
    }
}

/// `tyr telemetry top`
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  tyr telemetry top host --parameter load --by mean --from -1h --limit 5")]
pub struct TopArguments {
    /// generator, host, cluster, site, region, job
    scope: String,
    /// Only this parameter
    #[arg(long, short, value_name = "NAME")]
    parameter: Option<String>,
    /// By which number: count, sum, mean, max
    #[arg(long, default_value = "sum")]
    by: String,
    /// How many
    #[arg(long, short = 'n', default_value = "10", value_name = "N")]
    limit: usize,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    format: FormatArguments,
    #[command(flatten)]
    look: LookArguments,
}

/// Shows the largest.
pub fn top(session: &mut Session, arguments: &TopArguments) -> Outcome {
    let query = TopQuery {
        scope: Scope::parse(&arguments.scope)?,
        parameter: arguments.parameter.clone(),
        by: TopBy::parse(&arguments.by)?,
        range: arguments.range.range()?,
        limit: arguments.limit,
    };
    let format = arguments.format.format(session);
    let runtime = runtime()?;
    let telemetry = open_to_look(session, &runtime, &arguments.look)?;
    let found = runtime.block_on(telemetry.top(&query))?;
    if found.entries.is_empty() {
        let filter = CatalogFilter { parameter: query.parameter, ..CatalogFilter::default() };
        runtime.block_on(telemetry.check_names(&filter))?;
    }
    session.output.line(render(&found, format, width()).trim_end())
}

/// `tyr telemetry list`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr telemetry list --site cern --parameter load")]
pub struct CatalogArguments {
    /// Only this site
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only this host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only this parameter
    #[arg(long, short, value_name = "NAME")]
    parameter: Option<String>,
    /// Only this job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Only this region
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// At most so many
    #[arg(long, short = 'n', default_value = "100000", value_name = "N")]
    limit: usize,
    #[command(flatten)]
    format: FormatArguments,
    #[command(flatten)]
    look: LookArguments,
}

/// Lists what is measured.
pub fn list(session: &mut Session, arguments: &CatalogArguments) -> Outcome {
    let filter = CatalogFilter {
        site: arguments.site.clone(),
        cluster: arguments.cluster.clone(),
        host: arguments.host.clone(),
        parameter: arguments.parameter.clone(),
        job: arguments.job.clone(),
        region: arguments.region.clone(),
    };
    let format = arguments.format.format(session);
    let runtime = runtime()?;
    let telemetry = open_to_look(session, &runtime, &arguments.look)?;
    let found = runtime.block_on(telemetry.catalog(&filter, arguments.limit))?;
    if found.entries.is_empty() {
        runtime.block_on(telemetry.check_names(&filter))?;
    }
    session.output.line(render(&found, format, width()).trim_end())
}
