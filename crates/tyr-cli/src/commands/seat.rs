//! `tyr seat`: services with a state in memory, and which node has each.

use clap::{Args, Subcommand};
use serde_json::json;
use tyr::ErrorKind;
use tyr_object::{Assignment, SeatDirectory, SeatListing, SeatMode, SeatName};

use crate::failure::{Failure, Outcome};
use crate::output::table;
use crate::session::{Access, Session};

/// What to do with seats.
#[derive(Debug, Subcommand)]
pub enum SeatCommand {
    /// List the seats that nodes have, with how often each is asked
    #[command(after_help = "Example:\n  tyr seat list --json")]
    List,
    /// Show who has a seat, and who should
    Show(ShowArguments),
    /// Say which node should have a seat: whoever has it hands it over
    Move(MoveArguments),
}

/// `tyr seat show`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr seat show zlogs/orders%00lock")]
pub struct ShowArguments {
    /// The seat, as `tyr seat list` prints it
    seat: String,
}

/// `tyr seat move`
#[derive(Args, Debug)]
#[command(after_help = "\
The seat goes with its state, in some tens of milliseconds; who asks it meanwhile waits. Without a \
node it goes where its key is. While the node that should have it is not there it is there, too.

Examples:
  tyr seat move zlogs/orders%00lock 2
  tyr seat move zlogs/orders%00lock 2 --proxy
  tyr seat move zlogs/orders%00lock --home")]
pub struct MoveArguments {
    /// The seat, as `tyr seat list` prints it
    seat: String,
    /// The number of the node
    #[arg(required_unless_present = "home")]
    node: Option<u16>,
    /// The node of its key passes requests on; without it clients are told where the seat is
    #[arg(long)]
    proxy: bool,
    /// To the node of its key
    #[arg(long, conflicts_with_all = ["node", "proxy"])]
    home: bool,
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: SeatCommand) -> Outcome {
    if !session.is_cluster()? {
        return Err(Failure::Usage(
            "nodes have seats, and --data names a directory: say --data tyr://HOST:PORT".to_owned(),
        ));
    }
    match command {
        SeatCommand::List => list(session),
        SeatCommand::Show(arguments) => show(session, &arguments),
        SeatCommand::Move(arguments) => move_seat(session, arguments),
    }
}

fn list(session: &mut Session) -> Outcome {
    let listing = SeatDirectory::of(&session.open(Access::Read)?).list()?;
    let SeatListing { nodes, .. } = &listing;
    if session.output.is_json() {
        return nodes.iter().try_for_each(|node| session.output.json(&json!(node)));
    }
    let mut rows = Vec::new();
    for node in nodes {
        let number = node.node.to_string();
        if node.seats.is_empty() {
            rows.push(vec![number, String::new(), String::new(), String::new()]);
            continue;
        }
        for seat in &node.seats {
            let rate = format!("{:.1}", seat.rate);
            rows.push(vec![number.clone(), seat.name.clone(), seat.kind.clone(), rate]);
        }
    }
    session.output.line(&table(&["node", "seat", "kind", "requests/s"], &rows, &[0, 3]))
}

fn show(session: &mut Session, arguments: &ShowArguments) -> Outcome {
    let name: SeatName = arguments.seat.parse()?;
    let listing = SeatDirectory::of(&session.open(Access::Read)?).list()?;
    let found = listing.find(&name);
    let assigned = listing.assigned.iter().find(|(of, _)| *of == name).map(|(_, it)| it);
    if found.is_none() && assigned.is_none() {
        let text = format!("no node has a seat {name}: `tyr seat list` shows which there are");
        return Err(tyr::Error::not_found(text).into());
    }
    if session.output.is_json() {
        let at = found.map(|(node, _)| node);
        let seat = found.map(|(_, seat)| seat);
        let fields = json!({ "seat": name.as_str(), "node": at, "load": seat, "should": assigned });
        return session.output.json(&fields);
    }
    let at = found.map_or_else(
        || "no node has it: nobody asks it".to_owned(),
        |(node, seat)| format!("node {node} has it, {:.1} requests/s", seat.rate),
    );
    let should = assigned.map_or_else(
        || "the node of its key should have it".to_owned(),
        |Assignment { node, mode, by }| {
            let way = match mode {
                SeatMode::Client => "clients are told",
                SeatMode::Proxy => "requests are passed on",
            };
            format!("node {node} should have it (said by {by}; {way})")
        },
    );
    session.output.line(&format!("{at}\n{should}"))
}

fn move_seat(session: &mut Session, arguments: MoveArguments) -> Outcome {
    let name: SeatName = arguments.seat.parse()?;
    let store = session.open(Access::Write)?;
    let directory = SeatDirectory::of(&store);
    // A key of no seat would be assigned without a word.
    store.keyspace(name.keyspace()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => error.context(format!("there is no seat {name}")),
        _ => error,
    })?;
    let mode = if arguments.proxy { SeatMode::Proxy } else { SeatMode::Client };
    match arguments.node {
        Some(node) => directory.move_to(&name, node, mode, "tyr seat move")?,
        None => directory.assign(&name, None, None)?,
    }
    let fields = json!({ "seat": name.as_str(), "node": arguments.node, "mode": mode.name() });
    session.output.record(&fields, "")
}
