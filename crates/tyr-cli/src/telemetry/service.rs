//! `tyr telemetry serve`: measurements over HTTP and UDP, queries over HTTP, until Ctrl-C.

use std::net::SocketAddr;

use clap::Args;
use serde_json::json;
use tokio::net::{TcpListener, UdpSocket};
use tyr::Error;
use tyr_telemetry::http::{self, HttpOptions};
use tyr_telemetry::source::apmon::{self, ApmonOptions};
use tyr_telemetry::source::live::{self, LiveOptions};
use tyr_telemetry::{Intake, Telemetry};

use super::names::{NameArguments, PlaceArguments};
use super::{KeepArguments, interrupted, notices, open_to_keep, runtime};
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// `tyr telemetry serve`
#[derive(Args, Debug)]
#[command(after_help = "\
Over HTTP: POST /api/v2/write and /write take InfluxDB line protocol (?precision=ns|us|ms|s); GET \
/api/series, /api/aggregate, /api/top and /api/catalog answer queries; GET /healthz says whether \
it is up. There is no access control: listen where only friends can connect.

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
    let socket = match arguments.apmon {
        Some(address) => Some(UdpSocket::bind(address).await.map_err(refuse(address))?),
        None => None,
    };
    let apmon_address = socket.as_ref().and_then(|socket| socket.local_addr().ok());
    let listening = json!({
        "http": http_address.to_string(),
        "apmon": apmon_address.map(|address| address.to_string()),
        "live": arguments.is_live,
    });
    let apmon_text = apmon_address.map(|address| format!(", ApMon on udp://{address}"));
    let text = format!("listening on http://{http_address}{}", apmon_text.unwrap_or_default());
    session.output.record(&listening, &text)?;
    session.output.flush()?;

    let intakes = ["influx", "apmon", "live"].map(|name| Intake::new(&telemetry, name, notices()));
    let [influx, apmon, live] = &intakes;
    let mut options = HttpOptions::default();
    options.defaults = arguments.names.over(options.defaults);
    let shutdown = interrupted(session.interrupt.clone());
    let answering = http::serve(listener, telemetry.clone(), influx.clone(), options, shutdown);
    let receiving = async {
        if let Some(socket) = socket {
            apmon::serve(socket, apmon.clone(), apmon_options(arguments)).await;
        }
        std::future::pending::<()>().await;
    };
    let looking = async {
        if arguments.is_live {
            live::run(live.clone(), live_options(&arguments.names.place)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answered = answering => answered.map_err(refuse(http_address))?,
        () = receiving => {}
        () = looking => {}
    }
    let counts = intakes.each_ref().map(|intake| intake.counts());
    let stored = telemetry.counts().measurements;
    session.output.record(
        &json!({"stored": stored, "influx": counts[0], "apmon": counts[1], "live": counts[2]}),
        &format!("stored {stored} measurements"),
    )
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
