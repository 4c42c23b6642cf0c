//! `tyr watch`: shows what changes in a keyspace.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tyr::{Bytes, Key, Notice, WatchEvent};

use crate::commands::blob::parse_key_bytes;
use crate::data::{bytes_text, key_text, parse_bytes, time_text, to_hex, with_key};
use crate::failure::{Failure, Outcome};
use crate::session::{Access, Session};

/// How often a watch looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// `tyr watch`
#[derive(Args, Debug)]
#[command(after_help = "\
Each line is the time (UTC) of the last change and a key that was changed; look with `tyr get` or \
`tyr stat` what it is now. Changes that come close together may be one line. A line without a key \
says that something may have changed that is not shown: at the beginning, after an interruption, \
and where more keys were changed at once than are named.

A line with a colon is a notice that somebody has sent with `tyr notify`; it is acknowledged with \
--reply when it was shown.

Examples:
  tyr --data tyr://node-1:7070 watch jobs
  tyr --data tyr://node-1:7070 watch jobs --prefix nightly/ --json
  tyr --data tyr://node-1:7070 watch jobs --key limits --lines 2")]
pub struct WatchArguments {
    /// The keyspace
    keyspace: String,
    /// Only keys that begin with this
    #[arg(long, short, default_value = "", conflicts_with = "key")]
    prefix: String,
    /// Only this key
    #[arg(long, short)]
    key: Option<String>,
    /// The prefix or key is given as hexadecimal digits, two a byte
    #[arg(long = "hex-key")]
    is_hex: bool,
    /// What notices are acknowledged with: text, hex:DIGITS or base64:LETTERS
    #[arg(long, default_value = "")]
    reply: String,
    /// End after so many lines
    #[arg(long, short = 'n', value_name = "N")]
    lines: Option<u64>,
}

/// Shows what changes, until Ctrl-C.
pub fn run(session: &mut Session, arguments: &WatchArguments) -> Outcome {
    if !session.is_cluster()? {
        return Err(Failure::Usage(
            "a directory is open in one program at a time, so nobody else changes it: watch a \
             cluster, tyr://HOST:PORT, or the program that has it open by its own API"
                .to_owned(),
        ));
    }
    let (_, keyspace) = session.open_keyspace(&arguments.keyspace, Access::Read)?;
    let watch = match &arguments.key {
        Some(key) => keyspace.watch(Key::new(parse_key_bytes(key, arguments.is_hex)?)?)?,
        None => keyspace.watch_prefix(parse_key_bytes(&arguments.prefix, arguments.is_hex)?)?,
    };
    let reply = Bytes::from(parse_bytes(&arguments.reply)?);
    let mut left = arguments.lines.unwrap_or(u64::MAX);
    while left > 0 {
        session.interrupt.check()?;
        let Some(event) = watch.changed_within(LOOK)? else { continue };
        for (fields, text, notice) in lines(&event) {
            if left > 0 {
                session.output.record(&fields, &text)?;
                session.output.flush()?;
                notice.map_or(Ok(()), |notice| watch.acknowledge(notice, reply.clone()))?;
                left -= 1;
            }
        }
    }
    Ok(())
}

/// A line in JSON and as people read it, and the notice that it is of.
type Line<'a> = (serde_json::Value, String, Option<&'a Notice>);

/// What there is to show of an event.
fn lines(event: &WatchEvent) -> Vec<Line<'_>> {
    let changes = &event.changes;
    let time = match changes.at.clock {
        0 => " ".repeat(time_text(0).len()),
        clock => time_text(clock),
    };
    let version = changes.at.to_string();
    let mut lines = Vec::new();
    if event.is_anew {
        lines.push((json!({ "anew": true }), format!("{time}  (look what is there)"), None));
    }
    for key in &changes.keys {
        let fields = json!({
            "key": key_text(key),
            "key_hex": to_hex(key.as_bytes()),
            "version": version,
        });
        lines.push((fields, format!("{time}  {}", key_text(key)), None));
    }
    if changes.is_more {
        let fields = json!({ "more": true, "version": version });
        lines.push((fields, format!("{time}  (and others)"), None));
    }
    for notice in &event.notices {
        let Notice { key, payload, .. } = notice;
        let fields = json!({ "notice": bytes_text(payload), "notice_hex": to_hex(payload) });
        let text = format!("{time}  {}: {}", key_text(key), bytes_text(payload));
        lines.push((with_key(key, fields), text, Some(notice)));
    }
    lines
}
