//! What a policy is given, and what it answers: lines of words between tabs.
//!
//! ```text
//!   given    whoami N │ state TYPE VALUE │ node NUMBER │ metric NAME VALUE │
//!            seat NAME KIND RATE WAITING SINCE
//!   answered load AMOUNT │ target INDEX AMOUNT │ pick INDEX NAME │ mode NAME │ state TYPE VALUE │
//!            log LEVEL TEXT
//! ```
//!
//! Metrics and seats are those of the node above them. Nothing in a line has a tab or a new line:
//! names are escaped, and what a policy says of its own has its control characters replaced.

use std::fmt::Write as _;

use crate::metrics::NodeMetrics;

/// What comes behind a policy.
pub const HOST: &str = include_str!("policies/host.luau");

/// How requests get to a seat that was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Clients are told where it is.
    #[default]
    Client,
    /// The authority of its key passes them on.
    Proxy,
}

/// A line for the cluster log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How much it matters, in the policy's words.
    pub level: String,
    /// What it says.
    pub text: String,
}

/// What a policy says a node is to give.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What load the policy says that the node has.
    pub load: f64,
    /// How much of its load goes to which node, by the nodes' places in the list.
    pub targets: Vec<(usize, f64)>,
    /// Seats that go to a node, in this order, where the policy says so.
    pub picks: Vec<(usize, String)>,
    /// How requests get there.
    pub mode: Mode,
    /// What it is given the next time.
    pub state: Option<String>,
    /// What it wants to be in the cluster log.
    pub lines: Vec<Line>,
}

/// What the policy of a node, at this place in the list, is given.
pub fn given(at: usize, nodes: &[NodeMetrics], state: Option<&str>) -> String {
    let mut text = format!("whoami\t{}\n", at + 1);
    if let Some(state) = state {
        let _ = writeln!(text, "state\t{state}");
    }
    for node in nodes {
        let _ = writeln!(text, "node\t{}", node.node);
        let (rate, waiting) = (node.rate(), node.waiting());
        let own = [("all", rate), ("auth", rate), ("req", rate), ("q", waiting), ("cpu", node.cpu)];
        let values = node.values.iter().map(|(name, value)| (*name, *value));
        for (name, value) in own.into_iter().chain(values) {
            let _ = writeln!(text, "metric\t{name}\t{value}");
        }
        for seat in &node.seats {
            let (rate, waiting, since) = (seat.rate, seat.waiting, seat.since);
            let _ =
                writeln!(text, "seat\t{}\t{}\t{rate}\t{waiting}\t{since}", seat.name, seat.kind);
        }
    }
    text
}

/// Reads what a policy answered.
///
/// # Errors
/// What it has said that makes no sense, in words.
pub fn answered(text: &str, nodes: usize) -> Result<Answer, String> {
    let mut answer = Answer::default();
    for line in text.lines() {
        let words: Vec<&str> = line.splitn(3, '\t').collect();
        match words[..] {
            ["load", load] => {
                let load = load.parse::<f64>().ok().filter(|it| it.is_finite());
                answer.load = load.ok_or_else(|| "load(n) answered no number".to_owned())?;
            }
            ["target", index, amount] => {
                let amount = amount.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
                let amount = amount.ok_or_else(|| format!("targets[{index}] is no amount"))?;
                answer.targets.push((place(index, nodes)?, amount));
            }
            ["pick", index, name] => answer.picks.push((place(index, nodes)?, name.to_owned())),
            ["mode", "client"] => answer.mode = Mode::Client,
            ["mode", "proxy"] => answer.mode = Mode::Proxy,
            ["mode", other] => {
                return Err(format!("mode() is \"client\" or \"proxy\", not \"{other}\""));
            }
            ["state", of, value] => answer.state = Some(format!("{of}\t{value}")),
            ["log", level, text] => {
                answer.lines.push(Line { level: level.to_owned(), text: text.to_owned() });
            }
            _ => return Err(format!("it answered \"{}\"", line.escape_debug())),
        }
    }
    Ok(answer)
}

/// A node's place in the list, of its index in a policy.
fn place(index: &str, nodes: usize) -> Result<usize, String> {
    let place = index.parse::<usize>().ok().and_then(|index| index.checked_sub(1));
    place.filter(|place| *place < nodes).ok_or_else(|| format!("there is no node {index}"))
}
