//! What happens, in a few words: for whoever reads a run that went wrong.

use tyr_protocol::commit::recovery::{self, Known};
use tyr_protocol::commit::{self, Decision, Message};
use tyr_protocol::message::Body;
use tyr_types::TransactionId;

use super::case::number;
use super::node::Happening;

/// What happens, in a line.
pub fn of(happening: &Happening) -> String {
    match happening {
        Happening::Submit(transaction, _) => format!("submit {}", number(transaction.id)),
        Happening::Retry(transaction, _) => format!("retry {}", number(transaction.id)),
        Happening::Install(map) => format!("install epoch {}", map.epoch.0),
        Happening::Tick => "time passes".to_owned(),
        Happening::Age(clock_us) => format!("the clock is {clock_us}"),
        Happening::Renew(horizon_us) => format!("says how far it was done at {horizon_us}"),
        Happening::Retain(floor_us) => format!("all are done to {floor_us}"),
        Happening::Done(event) => done(event),
        Happening::Message(Body::Commit(message)) => of_commit(message),
        Happening::Message(Body::Recovery(message)) => of_recovery(message),
        Happening::Message(other) => format!("{other:?}"),
    }
}

fn done(event: &commit::Event) -> String {
    match event {
        commit::Event::Persisted { id, attempt } => about("durable", *id, *attempt),
        commit::Event::Fenced { id, attempt, is_cleared } => {
            about(if *is_cleared { "cleared" } else { "fenced" }, *id, *attempt)
        }
        commit::Event::Noted { id } => format!("abort of {} is durable", number(*id)),
        other => format!("{other:?}"),
    }
}

fn about(what: &str, id: TransactionId, attempt: commit::Attempt) -> String {
    let commit::Attempt { epoch, number: count, coordinator } = attempt;
    format!("{what} {} (attempt {}.{count} of {})", number(id), epoch.0, coordinator.0)
}

fn of_commit(message: &Message) -> String {
    match message {
        Message::Forward { transaction, attempt, highest, known, chain, .. } => {
            let hops: Vec<u16> = chain.hops().iter().map(|hop| hop.node.0).collect();
            let forward = about("forward", transaction.id, *attempt);
            let known = known.map(|at| format!(", known at {at}")).unwrap_or_default();
            format!("{forward} over {hops:?}, highest {highest}{known}")
        }
        Message::Backward { id, attempt, decision: Decision::Commit(at), .. } => {
            format!("{} commit at {at}", about("backward", *id, *attempt))
        }
        Message::Backward { id, attempt, decision: Decision::Abort(abort), .. } => {
            format!("{} abort {:?}", about("backward", *id, *attempt), abort.kind)
        }
        Message::Misplaced { id, attempt, .. } => about("misplaced", *id, *attempt),
        Message::Withdrawn { id, attempt } => about("withdrawn", *id, *attempt),
        Message::Again { id, attempt } => about("again", *id, *attempt),
        Message::Decided { id, attempt, at } => {
            format!("{} at {at}", about("decided", *id, *attempt))
        }
        Message::Anchored { id, attempt, by } => {
            format!("{} by {}", about("anchored", *id, *attempt), by.0)
        }
        Message::Stable { id, by, .. } => format!("stable {} by {}", number(*id), by.0),
        Message::AskStable { id, by, .. } => format!("ask stable {} by {}", number(*id), by.0),
    }
}

fn of_recovery(message: &recovery::Message) -> String {
    match message {
        recovery::Message::Ask { transaction, .. } => format!("ask {}", number(transaction.id)),
        recovery::Message::Query { id, attempt, .. } => about("query", *id, *attempt),
        recovery::Message::Report { id, attempt, known, .. } => {
            let known = match known {
                Known::Nothing => "nothing".to_owned(),
                Known::Validated { attempt, proposal, .. } => {
                    format!("{} at {proposal}", about("validated", *id, *attempt))
                }
                Known::Committed { at, .. } => format!("committed at {at}"),
                Known::Aborted(abort) => format!("aborted {:?}", abort.kind),
                Known::Forgotten => "forgotten".to_owned(),
            };
            format!("{}: {known}", about("report", *id, *attempt))
        }
        recovery::Message::Behind { id, attempt, .. } => about("behind", *id, *attempt),
        recovery::Message::Clear { id, attempt } => about("clear", *id, *attempt),
        recovery::Message::Abort { id, attempt, .. } => about("abort", *id, *attempt),
        recovery::Message::Aborted { id, attempt, .. } => about("aborted", *id, *attempt),
    }
}
