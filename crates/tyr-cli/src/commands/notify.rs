//! `tyr notify`: sends a notice to who watches a key, and shows who has acknowledged it.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tyr::Bytes;

use crate::commands::blob::BlobArguments;
use crate::data::{bytes_text, parse_bytes, to_hex};
use crate::failure::{Failure, Outcome};
use crate::session::{Access, Session};

/// `tyr notify`
#[derive(Args, Debug)]
#[command(after_help = "\
Who watches KEY, or what it begins with, gets PAYLOAD and acknowledges it; `tyr watch` does when \
it has shown it. One line for each: `acknowledged` or `missed`, who it is (its client and the \
number of its watch), and its reply. It ends when all have acknowledged, or after --timeout. \
Nothing is stored: who begins to watch later does not get it.

Examples:
  tyr --data tyr://node-1:7070 notify jobs limits
  tyr --data tyr://node-1:7070 notify jobs limits \"read it again\" --timeout 2 --json")]
pub struct NotifyArguments {
    #[command(flatten)]
    blob: BlobArguments,
    /// What is said: text, hex:DIGITS or base64:LETTERS, at most 64 KiB
    #[arg(default_value = "")]
    payload: String,
    /// Seconds that who watches has to acknowledge it, 1 to 30
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=30))]
    timeout: u64,
}

/// Sends it, and shows what became of it.
pub fn run(session: &mut Session, arguments: &NotifyArguments) -> Outcome {
    if !session.is_cluster()? {
        return Err(Failure::Usage(
            "a directory is open in one program at a time, so nobody else watches it: send \
             notices in a cluster, tyr://HOST:PORT, or in the program that has it open"
                .to_owned(),
        ));
    }
    let key = arguments.blob.key()?;
    let payload = Bytes::from(parse_bytes(&arguments.payload)?);
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Write)?;
    let timeout = Duration::from_secs(arguments.timeout);
    let notified = keyspace.notify(key, payload, timeout)?;
    let acknowledged = notified.acknowledged.iter().map(|(watcher, reply)| (watcher, Some(reply)));
    let missed = notified.missed.iter().map(|watcher| (watcher, None));
    for (watcher, reply) in acknowledged.chain(missed) {
        let who = format!("{:016x}/{}", watcher.client, watcher.watch);
        let fields = json!({
            "watcher": who,
            "acknowledged": reply.is_some(),
            "reply_hex": reply.map(|reply| to_hex(reply)),
        });
        let text = match reply {
            Some(reply) => format!("acknowledged  {who}  {}", bytes_text(reply)),
            None => format!("missed        {who}"),
        };
        session.output.record(&fields, text.trim_end())?;
    }
    Ok(())
}
