//! `tyr telemetry serve`: measurements over HTTP and UDP, queries over HTTP, until Ctrl-C.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;
use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;
use tyr::Error;
use tyr_telemetry::http::{self, HttpOptions};
use tyr_telemetry::source::apmon::{ApmonOptions, Receiver};
use tyr_telemetry::source::live::{self, LiveOptions};
use tyr_telemetry::{Sources, Telemetry};

use super::names::{NameArguments, PlaceArguments};
use super::{KeepArguments, every_second, interrupted, notices, open_to_keep, runtime, summary};
use crate::failure::{Failure, Outcome};
use crate::metrics::Metrics;
use crate::session::Session;

/// `tyr telemetry serve`
#[derive(Args, Debug)]
#[command(after_help = "\
Over HTTP: POST /api/v2/write and /write take InfluxDB line protocol (?precision=ns|us|ms|s), also \
packed by gzip; GET /api/series, /api/aggregate, /api/top and /api/catalog answer queries; GET \
/healthz says whether it is up and what became of all input, GET /metrics the same for \
Prometheus. There is no access control: listen where only friends can connect.

Examples:
  tyr telemetry serve --data /tmp/store --live
  tyr telemetry serve --http 127.0.0.1:8086 --apmon 0.0.0.0:8884
  curl -d 'cpu,site=cern,host=node17 load=0.5' http://127.0.0.1:8086/api/v2/write")]
pub struct ServeArguments {
    /// Where to listen for HTTP
    #[arg(long, default_value = "127.0.0.1:8086", value_name = "ADDR")]
    http: SocketAddr,
    /// Where to listen for ApMon datagrams, for example 0.0.0.0:8884
    #[arg(long, value_name = "ADDR")]
    apmon: Option<SocketAddr>,
    /// What senders of ApMon datagrams must know
    #[arg(long, value_name = "WORD", requires = "apmon", env = "TYR_APMON_PASSWORD")]
    apmon_password: Option<String>,
    /// Take this machine's own metrics too, once a second
    #[arg(long = "live")]
    is_live: bool,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    keep: KeepArguments,
}

/// Serves until a signal comes, then says what became of the input.
pub fn serve(session: &mut Session, arguments: &ServeArguments) -> Outcome {
    session.interrupt.expect();
    let runtime = runtime()?;
    let telemetry = open_to_keep(session, &runtime, &arguments.keep)?;
    runtime.block_on(serve_on(session, arguments, telemetry))
}

async fn serve_on(
    session: &mut Session,
    arguments: &ServeArguments,
    telemetry: Telemetry,
) -> Outcome {
    let refuse = |address: SocketAddr| {
        move |error| Failure::from(Error::io(format!("cannot listen on {address}"), error))
    };
    let listener = TcpListener::bind(arguments.http).await.map_err(refuse(arguments.http))?;
    let http_address = listener.local_addr().map_err(refuse(arguments.http))?;
    let receiver = match arguments.apmon {
        Some(address) => {
            Some(Receiver::bind(address, apmon_options(arguments)).map_err(refuse(address))?)
        }
        None => None,
    };
    announce(session, arguments, http_address, receiver.as_ref())?;

    let meter = receiver.as_ref().map(Receiver::meter);
    let sources = Sources::new(&telemetry, meter, &notices());
    let mut options = HttpOptions::default();
    options.defaults = arguments.names.over(options.defaults);
    options.more = metrics_route(&sources);
    let stop = || interrupted(session.interrupt.clone());
    let answering = async {
        let answered = http::serve(listener, sources.clone(), options, stop()).await;
        answered.map_err(refuse(http_address))
    };
    let receiving = async {
        let Some(receiver) = receiver else { return Ok(()) };
        let received = receiver.run(Arc::clone(&sources.apmon), stop()).await;
        received.map_err(|error| Error::io("cannot receive datagrams", error).into())
    };
    let looking = async {
        if arguments.is_live {
            live::run(Arc::clone(&sources.live), live_options(&arguments.names.place)).await;
        }
        std::future::pending::<()>().await;
    };
    let noting = every_second(|| sources.tell_rest());
    // What runs until it is dropped ends with what is stopped.
    tokio::select! {
        served = async { tokio::try_join!(answering, receiving) } => served.map(drop)?,
        () = looking => {}
        () = noting => {}
    }
    let counts = sources.counts();
    session.output.record(
        &json!({
            "stored": counts.recorded.measurements,
            "influx": counts.influx,
            "apmon": counts.apmon,
            "live": counts.live,
        }),
        &summary::of_service(&counts),
    )
}

/// Says where it listens, and what is short.
fn announce(
    session: &mut Session,
    arguments: &ServeArguments,
    http_address: SocketAddr,
    receiver: Option<&Receiver>,
) -> Outcome {
    let apmon_address = receiver.map(Receiver::address);
    let listening = json!({
        "http": http_address.to_string(),
        "apmon": apmon_address.map(|address| address.to_string()),
        "live": arguments.is_live,
    });
    let apmon_text = apmon_address.map(|address| format!(", ApMon on udp://{address}"));
    let text = format!("listening on http://{http_address}{}", apmon_text.unwrap_or_default());
    session.output.record(&listening, &text)?;
    session.output.flush()?;
    receiver.into_iter().for_each(advise);
    Ok(())
}

/// Says what an operator should do before many send.
pub fn advise(receiver: &Receiver) {
    if let Some(advice) = receiver.advice() {
        notices()(&advice);
    }
}

fn metrics_route(sources: &Sources) -> Router {
    let metrics = Arc::new(Metrics::of_store(sources.clone()));
    let answer = move |headers: HeaderMap| async move { metrics.answer(&headers) };
    Router::new().route("/metrics", get(answer))
}

fn apmon_options(arguments: &ServeArguments) -> ApmonOptions {
    let mut options =
        ApmonOptions { password: arguments.apmon_password.clone(), ..ApmonOptions::default() };
    if let Some(site) = &arguments.names.place.site {
        options.site.clone_from(site);
    }
    if let Some(job) = &arguments.names.job {
        options.job.clone_from(job);
    }
    options
}

/// This machine, named as the command line says.
pub fn live_options(names: &PlaceArguments) -> LiveOptions {
    let mut options = LiveOptions::default();
    for (given, name) in [
        (&names.site, &mut options.site),
        (&names.cluster, &mut options.cluster),
        (&names.host, &mut options.host),
    ] {
        if let Some(given) = given {
            name.clone_from(given);
        }
    }
    options
}
