//! `tyr telemetry ingest` and `replay`: this machine's metrics, lines, datagrams, CSV files.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tyr::Error;
use tyr_telemetry::source::apmon::{ApmonOptions, Receiver};
use tyr_telemetry::source::csv::{self, Columns, ReplayOptions, TimeFormat};
use tyr_telemetry::source::influx::{LineWriter, Precision, TagNames, default_names};
use tyr_telemetry::source::{live, now_us};
use tyr_telemetry::{ApmonCounts, Intake, IntakeCounts};

use super::names::{NameArguments, PlaceArguments};
use super::service::{advise, live_options};
use super::{
    KeepArguments, every_second, for_a_while, notices, open_to_keep, parse_seconds, runtime,
    summary,
};
use crate::failure::{Failure, Outcome};
use crate::progress::{self, Unit};
use crate::session::Session;

/// Where measurements come from.
#[derive(Debug, Subcommand)]
pub enum IngestCommand {
    /// This machine: processors, memory, load, disks, network interfaces, processes
    Live(LiveArguments),
    /// InfluxDB line protocol from standard input
    Lines(LinesArguments),
    /// ApMon datagrams over UDP
    Apmon(ApmonArguments),
}

/// `tyr telemetry ingest live`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr telemetry ingest live --seconds 60")]
pub struct LiveArguments {
    /// Stop after so many seconds; else at Ctrl-C
    #[arg(long, value_parser = parse_seconds)]
    seconds: Option<f64>,
    /// Seconds between two looks
    #[arg(long, value_parser = parse_seconds, default_value = "1")]
    interval: f64,
    /// Programs to report, those that use most processor time
    #[arg(long, default_value = "10", value_name = "N")]
    processes: usize,
    #[command(flatten)]
    names: PlaceArguments,
    #[command(flatten)]
    keep: KeepArguments,
}

/// `tyr telemetry ingest lines`
#[derive(Args, Debug)]
#[command(after_help = "\
Tags site, cluster, host and job name what is measured; the parameter is measurement.field. Lines \
that cannot be used are reported and passed over (exit code 1 at the end). Lines are recorded as \
they come; those without a time get that of their coming.

Example:
  echo 'cpu,site=cern,host=node17 load=0.5' | tyr telemetry ingest lines")]
pub struct LinesArguments {
    /// The unit of the timestamps: ns, us, ms, s
    #[arg(long, default_value = "ns")]
    precision: String,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    keep: KeepArguments,
}

/// `tyr telemetry ingest apmon`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr telemetry ingest apmon --listen 0.0.0.0:8884 --site cern")]
pub struct ApmonArguments {
    /// Where to listen
    #[arg(long, default_value = "127.0.0.1:8884", value_name = "ADDR")]
    listen: SocketAddr,
    /// What senders must know
    #[arg(long, value_name = "WORD", env = "TYR_APMON_PASSWORD")]
    password: Option<String>,
    /// The site of all senders
    #[arg(long, default_value = "apmon", value_name = "NAME")]
    site: String,
    /// The job of all senders
    #[arg(long, default_value = "apmon", value_name = "NAME")]
    job: String,
    /// Stop after so many seconds; else at Ctrl-C
    #[arg(long, value_parser = parse_seconds)]
    seconds: Option<f64>,
    #[command(flatten)]
    keep: KeepArguments,
}

/// Takes measurements until the source ends, a signal comes, or time is over.
pub fn ingest(session: &mut Session, command: &IngestCommand) -> Outcome {
    match command {
        IngestCommand::Live(arguments) => ingest_live(session, arguments),
        IngestCommand::Lines(arguments) => ingest_lines(session, arguments),
        IngestCommand::Apmon(arguments) => ingest_apmon(session, arguments),
    }
}

fn ingest_live(session: &mut Session, arguments: &LiveArguments) -> Outcome {
    session.interrupt.expect();
    let runtime = runtime()?;
    let telemetry = open_to_keep(session, &runtime, &arguments.keep)?;
    let intake = Intake::new(&telemetry, "live", notices());
    let mut options = live_options(&arguments.names);
    options.interval = Duration::from_secs_f64(arguments.interval);
    options.processes = arguments.processes;
    let looking = live::run(intake.clone(), options);
    runtime.block_on(for_a_while(looking, &session.interrupt, arguments.seconds));
    report(session, intake.counts())
}

fn ingest_apmon(session: &mut Session, arguments: &ApmonArguments) -> Outcome {
    session.interrupt.expect();
    let runtime = runtime()?;
    let telemetry = open_to_keep(session, &runtime, &arguments.keep)?;
    let intake = Intake::new(&telemetry, "apmon", notices());
    let options = ApmonOptions {
        site: arguments.site.clone(),
        job: arguments.job.clone(),
        password: arguments.password.clone(),
    };
    let refuse = |error| Error::io(format!("cannot listen on {}", arguments.listen), error);
    let receiver = Receiver::bind(arguments.listen, options).map_err(refuse)?;
    let (address, meter) = (receiver.address(), receiver.meter());
    session
        .output
        .record(&json!({"apmon": address.to_string()}), &format!("listening on udp://{address}"))?;
    session.output.flush()?;
    advise(&receiver);
    let stop =
        for_a_while(every_second(|| intake.tell_rest()), &session.interrupt, arguments.seconds);
    let received = runtime.block_on(receiver.run(Arc::clone(&intake), stop));
    received.map_err(|error| Error::io("cannot receive datagrams", error))?;
    let counts = ApmonCounts { intake: intake.counts(), datagrams: Some(meter.counts()) };
    let text = [
        summary::of_intake(&counts.intake),
        counts.datagrams.as_ref().map(summary::of_datagrams).unwrap_or_default(),
    ];
    session.output.record(&json!(counts), &text.join("\n"))
}

/// Bytes of lines that are handed on together, at most, but for a single long one.
const LINES_LEN: usize = 256 << 10;

fn ingest_lines(session: &mut Session, arguments: &LinesArguments) -> Outcome {
    let precision = Precision::parse(&arguments.precision)?;
    let runtime = runtime()?;
    let telemetry = open_to_keep(session, &runtime, &arguments.keep)?;
    let intake = Intake::new(&telemetry, "lines", notices());
    let (tags, defaults) = (TagNames::default(), arguments.names.over(default_names()));
    let writer = LineWriter { intake: &intake, tags: &tags, defaults: &defaults };
    let bar = progress::bar(None, Unit::Bytes, session.output.is_json());
    let mut input = BufReader::with_capacity(LINES_LEN, io::stdin().lock());
    let mut lines = Vec::new();
    loop {
        session.interrupt.check()?;
        let is_over = read_lines(&mut input, &mut lines)
            .map_err(|error| Error::io("cannot read standard input", error))?;
        runtime.block_on(writer.write(&lines, precision, now_us()));
        bar.inc(lines.len() as u64);
        if is_over {
            break;
        }
    }
    let counts = intake.counts();
    report(session, counts)?;
    complain(counts)
}

/// The next line, and those that have come with it: what a program writes into a pipe is recorded
/// when it comes, not when there is more. Answers whether the input is over.
fn read_lines(input: &mut BufReader<impl Read>, lines: &mut Vec<u8>) -> io::Result<bool> {
    lines.clear();
    // One line of any length: it is refused as a whole further on.
    if input.read_until(b'\n', lines)? == 0 {
        return Ok(true);
    }
    let come = input.buffer();
    let whole = come.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    lines.extend_from_slice(&come[..whole]);
    input.consume(whole);
    Ok(false)
}

/// `tyr telemetry replay`
#[derive(Args, Debug)]
#[command(after_help = "\
Without other flags a file has a header with timestamp and value (2014-04-01 00:00:00,0.5); its \
folder names the cluster and its stem the host. Rows that cannot be used are reported and passed \
over (exit code 1 at the end).

Examples:
  tyr telemetry replay data/*/*.csv
  tyr telemetry replay log.csv --time-column ts --time-format ms --host-column machine")]
pub struct ReplayArguments {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The column of the time
    #[arg(long, default_value = "timestamp", value_name = "COLUMN")]
    time_column: String,
    /// The column of the value
    #[arg(long, default_value = "value", value_name = "COLUMN")]
    value_column: String,
    /// The column of the site
    #[arg(long, value_name = "COLUMN")]
    site_column: Option<String>,
    /// The column of the cluster
    #[arg(long, value_name = "COLUMN")]
    cluster_column: Option<String>,
    /// The column of the host
    #[arg(long, value_name = "COLUMN")]
    host_column: Option<String>,
    /// The column of the parameter
    #[arg(long, value_name = "COLUMN")]
    parameter_column: Option<String>,
    /// The column of the job
    #[arg(long, value_name = "COLUMN")]
    job_column: Option<String>,
    /// The parameter of what names none
    #[arg(long, value_name = "NAME")]
    parameter: Option<String>,
    /// How times are written: auto, s, ms, us, ns
    #[arg(long, default_value = "auto")]
    time_format: String,
    /// Do not name cluster and host by the file's folder and stem
    #[arg(long = "no-path-names")]
    is_path_ignored: bool,
    /// Transactions in flight
    #[arg(long, default_value = "16", value_name = "N")]
    concurrency: usize,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    keep: KeepArguments,
}

/// Replays CSV files.
pub fn replay(session: &mut Session, arguments: &ReplayArguments) -> Outcome {
    let mut options = ReplayOptions {
        columns: Columns {
            time: arguments.time_column.clone(),
            value: arguments.value_column.clone(),
            site: arguments.site_column.clone(),
            cluster: arguments.cluster_column.clone(),
            host: arguments.host_column.clone(),
            parameter: arguments.parameter_column.clone(),
            job: arguments.job_column.clone(),
        },
        is_named_by_path: !arguments.is_path_ignored,
        time_format: TimeFormat::parse(&arguments.time_format)?,
        concurrency: arguments.concurrency,
        ..ReplayOptions::default()
    };
    options.defaults = arguments.names.over(options.defaults);
    if let Some(parameter) = &arguments.parameter {
        options.defaults.parameter.clone_from(parameter);
    }
    let runtime = runtime()?;
    let telemetry = open_to_keep(session, &runtime, &arguments.keep)?;
    let intake = Intake::new(&telemetry, "csv", notices());
    let total = arguments.files.iter().filter_map(|file| file.metadata().ok()).map(|m| m.len());
    let bar = progress::bar(Some(total.sum()), Unit::Bytes, session.output.is_json());
    let moving = bar.clone();
    let report = runtime.block_on(async {
        let replaying = csv::replay(intake, &arguments.files, options, move |done| {
            moving.set_position(done.bytes_read);
        });
        tokio::select! {
            report = replaying => report.map_err(Failure::from),
            () = super::interrupted(session.interrupt.clone()) => {
                Err(session.interrupt.check().err().unwrap_or(Failure::Interrupted(2)))
            }
        }
    })?;
    bar.finish_and_clear();
    let text = format!(
        "{} files, {} rows: {} stored, {} refused",
        report.files, report.rows, report.counts.stored, report.counts.refused
    );
    session.output.record(&json!(report), &text)?;
    complain(report.counts)
}

fn report(session: &mut Session, counts: IntakeCounts) -> Outcome {
    session.output.record(&json!(counts), &summary::of_intake(&counts))
}

/// A failure when some of a finite input was lost.
fn complain(counts: IntakeCounts) -> Outcome {
    match counts.refused + counts.failed {
        0 => Ok(()),
        lost => Err(Failure::Differences(format!("{lost} inputs were not recorded"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each read gives, as of a pipe that a program writes to.
    struct Pieces(Vec<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            out[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn lines_are_handed_on_whole_and_as_soon_as_they_come() {
        let pieces: Vec<&[u8]> = vec![b"a\nb\nc", b"d", b"e\nf\n", b"g"];
        let left = |input: &BufReader<Pieces>| input.get_ref().0.len();
        let (mut input, mut lines) = (BufReader::new(Pieces(pieces)), Vec::new());
        for (expected, unread) in [(b"a\nb\n".as_slice(), 3), (b"cde\nf\n", 1), (b"g", 0)] {
            assert!(!read_lines(&mut input, &mut lines).unwrap());
            assert_eq!(
                (lines.as_slice(), left(&input)),
                (expected, unread),
                "nothing is waited for"
            );
        }
        assert!(read_lines(&mut input, &mut lines).unwrap() && lines.is_empty());
    }
}
