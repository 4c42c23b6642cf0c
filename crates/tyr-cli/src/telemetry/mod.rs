//! `tyr telemetry`: the monitoring store from a shell.
//!
//! [`intake`] takes measurements in, [`service`] does it over the network, [`queries`] asks,
//! [`verification`] recomputes every aggregate, [`summary`] says what became of the input. What a
//! measurement is, and how it is kept, is the affair of the crate `tyr-telemetry`.

mod intake;
mod names;
mod queries;
mod service;
mod summary;
mod verification;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::runtime::{Builder, Runtime};
use tyr::{Durability, Error, KeyspaceConfig};
use tyr_telemetry::{Config, Notify, Telemetry};

pub use queries::width;

use crate::commands::keyspace::DurabilityArgument;
use crate::failure::Outcome;
use crate::interrupt::Interrupt;
use crate::session::{Access, Session};

/// What to do with the monitoring store.
#[derive(Debug, Subcommand)]
pub enum TelemetryCommand {
    /// Take measurements from the network and answer queries, until Ctrl-C
    Serve(service::ServeArguments),
    /// Take measurements of this machine, or lines from standard input
    #[command(subcommand)]
    Ingest(intake::IngestCommand),
    /// Take measurements from CSV files, with the times they say
    Replay(intake::ReplayArguments),
    /// Show one series: an aggregate over time, or raw measurements
    Query(queries::QueryArguments),
    /// Show the largest generators, hosts, clusters, sites, regions or jobs
    Top(queries::TopArguments),
    /// List what is measured
    List(queries::CatalogArguments),
    /// Recompute every aggregate from the raw measurements and report any difference
    Verify(verification::VerifyArguments),
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: TelemetryCommand) -> Outcome {
    match command {
        TelemetryCommand::Serve(arguments) => service::serve(session, &arguments),
        TelemetryCommand::Ingest(command) => intake::ingest(session, &command),
        TelemetryCommand::Replay(arguments) => intake::replay(session, &arguments),
        TelemetryCommand::Query(arguments) => queries::query(session, &arguments),
        TelemetryCommand::Top(arguments) => queries::top(session, &arguments),
        TelemetryCommand::List(arguments) => queries::list(session, &arguments),
        TelemetryCommand::Verify(arguments) => verification::verify(session, &arguments),
    }
}

/// How measurements are kept.
#[derive(Args, Debug)]
pub struct KeepArguments {
    /// The keyspace of the measurements; made if it is missing
    #[arg(long, default_value = "telemetry", value_name = "NAME")]
    keyspace: String,
    /// When a measurement is acknowledged; counts when the keyspace is made
    #[arg(long, value_enum, default_value = "buffered")]
    durability: DurabilityArgument,
    /// The region of a site; may be given many times
    #[arg(long = "region", value_name = "SITE=REGION", value_parser = parse_region)]
    regions: Vec<(String, String)>,
    /// The region of the other sites
    #[arg(long, default_value = "default", value_name = "REGION")]
    default_region: String,
    /// Measurements in one transaction
    #[arg(long, default_value = "1", value_name = "N")]
    batch: usize,
}

impl KeepArguments {
    fn config(&self) -> Config {
        let durability: Durability = self.durability.into();
        Config {
            keyspace: self.keyspace.clone(),
            keyspace_config: KeyspaceConfig { durability, ..KeyspaceConfig::default() },
            regions: self.regions.iter().cloned().collect::<BTreeMap<_, _>>(),
            default_region: self.default_region.clone(),
            batch: self.batch,
        }
    }
}

fn parse_region(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((site, region)) if !site.is_empty() && !region.is_empty() => {
            Ok((site.to_owned(), region.to_owned()))
        }
        Some(_) | None => Err("give SITE=REGION, like cern=europe".to_owned()),
    }
}

/// Where measurements are looked for.
#[derive(Args, Debug)]
pub struct LookArguments {
    /// The keyspace of the measurements
    #[arg(long, default_value = "telemetry", value_name = "NAME")]
    keyspace: String,
}

/// The threads that async code runs on.
pub fn runtime() -> Outcome<Runtime> {
    Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::io("cannot start the threads of async code", error).into())
}

/// Opens the monitoring store to take measurements in.
fn open_to_keep(session: &Session, runtime: &Runtime, keep: &KeepArguments) -> Outcome<Telemetry> {
    let store = session.open(Access::Create)?.into_async();
    Ok(runtime.block_on(Telemetry::open(&store, keep.config()))?)
}

/// Opens the monitoring store to look at it.
fn open_to_look(session: &Session, runtime: &Runtime, look: &LookArguments) -> Outcome<Telemetry> {
    let store = session.open(Access::Read)?;
    // Telemetry would make the keyspace; whoever looks wants to hear that there is none.
    store.keyspace(&look.keyspace)?;
    let config = Config { keyspace: look.keyspace.clone(), ..Config::default() };
    Ok(runtime.block_on(Telemetry::open(&store.into_async(), config))?)
}

/// Ends when a signal comes.
pub async fn interrupted(interrupt: Interrupt) {
    /// How soon a signal is noticed.
    const NAP: Duration = Duration::from_millis(50);
    while !interrupt.is_raised() {
        tokio::time::sleep(NAP).await;
    }
}

/// Runs `work` until it ends, a signal comes, or `seconds` are over.
async fn for_a_while(work: impl Future<Output = ()>, interrupt: &Interrupt, seconds: Option<f64>) {
    let timer = async {
        match seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs_f64(seconds)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = work => {}
        () = interrupted(interrupt.clone()) => {}
        () = timer => {}
    }
}

/// Does this at once and every second, for as long as it is waited for.
async fn every_second(work: impl Fn()) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        work();
    }
}

/// Prints notices of bad input on standard error.
pub fn notices() -> Notify {
    Arc::new(|notice| eprintln!("tyr: {notice}"))
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err("give a number of seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_needs_a_site_and_a_name() {
        assert_eq!(parse_region("cern=eu"), Ok(("cern".to_owned(), "eu".to_owned())));
        for bad in ["cern", "=eu", "cern=", ""] {
            assert!(parse_region(bad).is_err(), "{bad}");
        }
    }
}
