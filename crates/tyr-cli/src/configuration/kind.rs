//! What a setting's value may be: read from text, checked against its range, and written back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tyr_trace::Endpoint;

use crate::data::{parse_size, size_text};

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A number of things.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Bytes, as `512MiB`.
    Size {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A time, as `2s`; in a range of milliseconds.
    Time {
        /// The shortest.
        min_ms: u64,
        /// The longest.
        max_ms: u64,
        /// Whether `never` is one too.
        has_never: bool,
    },
    /// A number with a fraction.
    Number {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// Yes or no.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A DNS name.
    Name,
    /// A file or folder.
    Path,
    /// Where to listen: an IP address and a port.
    Socket {
        /// Whether `off` is one too.
        has_off: bool,
    },
    /// Where a collector of traces is reached: `http://host:port`.
    Collector,
    /// Where somebody is reached: `host:port`, several with commas.
    Places,
    /// Nodes with their numbers and places: `0=host:port,1=host:port`.
    Nodes,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number of things, or of bytes.
    Count(u64),
    /// A time; `None` for never.
    Time(Option<Duration>),
    /// A number with a fraction.
    Number(f64),
    /// Yes or no.
    Switch(bool),
    /// One of a few words.
    Choice(&'static str),
    /// A DNS name.
    Name(String),
    /// A file or folder.
    Path(PathBuf),
    /// Where to listen; `None` for nowhere.
    Socket(Option<SocketAddr>),
    /// Where a collector of traces is reached.
    Collector(Endpoint),
    /// Where somebody is reached.
    Places(Vec<String>),
    /// Nodes, and where each is reached.
    Nodes(BTreeMap<u16, Vec<String>>),
}

impl Kind {
    /// The value that a text stands for.
    ///
    /// # Errors
    /// What is wrong with it, to follow the setting's name and the text.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        match self {
            Self::Count { min, max } => {
                let count = text.parse::<u64>().map_err(|_| "is not a whole number".to_owned())?;
                in_range(&count, min, max).map(Value::Count)
            }
            Self::Size { min, max } => {
                let size = parse_size(text).map_err(|_| "is not a size".to_owned())?;
                in_range(&size, min, max).map(Value::Count)
            }
            Self::Time { has_never: true, .. } if text == "never" => Ok(Value::Time(None)),
            Self::Time { min_ms, max_ms, .. } => {
                let time = parse_time(text).ok_or_else(|| "is not a time".to_owned())?;
                let bounds = [min_ms, max_ms].map(|ms| Duration::from_millis(*ms));
                in_range(&time, &bounds[0], &bounds[1]).map(|time| Value::Time(Some(time)))
            }
            Self::Number { min, max } => {
                let number = text.parse::<f64>().map_err(|_| "is not a number".to_owned())?;
                in_range(&number, min, max).map(Value::Number)
            }
            Self::Switch => match text {
                "true" | "yes" | "on" | "1" => Ok(Value::Switch(true)),
                "false" | "no" | "off" | "0" => Ok(Value::Switch(false)),
                _ => Err("is neither yes nor no".to_owned()),
            },
            Self::Choice(words) => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Choice(word))
                .ok_or_else(|| "is none of the words there are".to_owned()),
            Self::Name => parse_name(text).map(Value::Name),
            Self::Path if text.is_empty() => Err("is empty".to_owned()),
            Self::Path => Ok(Value::Path(PathBuf::from(text))),
            Self::Socket { has_off: true } if text == "off" => Ok(Value::Socket(None)),
            Self::Socket { .. } => text
                .parse()
                .map(|socket| Value::Socket(Some(socket)))
                .map_err(|_| "is not an IP address with a port".to_owned()),
            Self::Collector => Endpoint::parse(text)
                .map(Value::Collector)
                .map_err(|error| error.message().to_owned()),
            Self::Places => parse_places(text).map(Value::Places),
            Self::Nodes => parse_nodes(text).map(Value::Nodes),
        }
    }

    /// What is allowed, for people.
    pub fn range(&self) -> String {
        match self {
            Self::Count { min, max } => format!("{min} to {max}"),
            Self::Size { min, max } => format!("{} to {}", size_text(*min), size_text(*max)),
            Self::Time { min_ms, max_ms, has_never } => {
                let [min, max] = [min_ms, max_ms].map(|ms| time_text(Duration::from_millis(*ms)));
                format!("{min} to {max}{}", if *has_never { ", or never" } else { "" })
            }
            Self::Number { min, max } => format!("{min} to {max}"),
            Self::Switch => "true or false".to_owned(),
            Self::Choice(words) => words.join(", "),
            Self::Name => "a DNS name".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Socket { has_off } => {
                format!("IP address and port{}", if *has_off { ", or off" } else { "" })
            }
            Self::Collector => "http://host:port, perhaps with a path".to_owned(),
            Self::Places => "host:port, several with commas".to_owned(),
            Self::Nodes => "number=host:port, several with commas".to_owned(),
        }
    }

    /// The word that stands for the value in help.
    pub fn placeholder(&self) -> &'static str {
        match self {
            Self::Count { .. } | Self::Number { .. } => "N",
            Self::Size { .. } => "SIZE",
            Self::Time { .. } => "TIME",
            Self::Switch => "YES|NO",
            Self::Choice(_) => "WORD",
            Self::Name => "NAME",
            Self::Path => "PATH",
            Self::Socket { .. } => "IP:PORT",
            Self::Collector => "URL",
            Self::Places => "HOST:PORT,..",
            Self::Nodes => "N=HOST:PORT,..",
        }
    }

    /// Whether a flag may stand without a value.
    pub fn is_switch(&self) -> bool {
        match self {
            Self::Switch => true,
            Self::Count { .. }
            | Self::Size { .. }
            | Self::Time { .. }
            | Self::Number { .. }
            | Self::Choice(_)
            | Self::Name
            | Self::Path
            | Self::Socket { .. }
            | Self::Collector
            | Self::Places
            | Self::Nodes => false,
        }
    }

    /// The text as a value of TOML.
    pub fn toml(&self, text: &str) -> String {
        match self {
            Self::Count { .. } | Self::Number { .. } => text.to_owned(),
            Self::Switch => {
                let is_on = self.parse(text) == Ok(Value::Switch(true));
                if is_on { "true" } else { "false" }.to_owned()
            }
            Self::Size { .. }
            | Self::Time { .. }
            | Self::Choice(_)
            | Self::Name
            | Self::Path
            | Self::Socket { .. }
            | Self::Collector
            | Self::Places
            | Self::Nodes => {
                format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
        }
    }
}

fn in_range<T: PartialOrd + Copy>(value: &T, min: &T, max: &T) -> Result<T, String> {
    match (min..=max).contains(&value) {
        true => Ok(*value),
        false => Err("is out of range".to_owned()),
    }
}

/// Names of units of time, longest first where one ends another, with their milliseconds.
const UNITS: [(&str, f64); 9] = [
    ("ms", 1.0),
    ("min", 60_000.0),
    ("sec", 1000.0),
    ("d", 86_400_000.0),
    ("h", 3_600_000.0),
    ("m", 60_000.0),
    ("s", 1000.0),
    ("minutes", 60_000.0),
    ("seconds", 1000.0),
];

fn parse_time(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let ms = number.trim().parse::<f64>().ok()? * factor;
    // Beyond this a float skips whole milliseconds.
    let is_sound = ms.is_finite() && (0.0..=(1_u64 << 53) as f64).contains(&ms);
    is_sound.then(|| Duration::from_micros((ms * 1000.0).round() as u64))
}

/// A time as people read it, and as it is read back: `1.5s`.
pub fn time_text(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    for (name, factor) in
        [("d", 86_400_000.0), ("h", 3_600_000.0), ("min", 60_000.0), ("s", 1000.0)]
    {
        if ms >= factor && (ms % factor == 0.0 || name == "s") {
            return format!("{}{name}", ms / factor);
        }
    }
    format!("{ms}ms")
}

/// A name as certificates have it: labels of letters, digits and dashes, 253 bytes in all.
fn parse_name(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    match text.len() <= 253 && text.split('.').all(is_label) {
        true => Ok(text.to_owned()),
        false => Err("is not a DNS name".to_owned()),
    }
}

fn parse_places(text: &str) -> Result<Vec<String>, String> {
    let places = text.split(',').map(str::trim).filter(|place| !place.is_empty());
    let places: Vec<String> = places.map(parse_place).collect::<Result<_, _>>()?;
    match places.is_empty() {
        false => Ok(places),
        true => Err("is empty".to_owned()),
    }
}

fn parse_place(place: &str) -> Result<String, String> {
    let parts = place.rsplit_once(':');
    let is_sound = parts.is_some_and(|(host, port)| {
        let is_bare_v6 = host.contains(':') && !host.starts_with('[');
        !host.is_empty() && !is_bare_v6 && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    match is_sound {
        true => Ok(place.to_owned()),
        false => Err(format!("has \"{}\", which is not host:port", place.escape_debug())),
    }
}

fn parse_nodes(text: &str) -> Result<BTreeMap<u16, Vec<String>>, String> {
    let mut nodes: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (number, place) = part.split_once('=').ok_or_else(|| {
            format!("has \"{}\", which is not number=host:port", part.escape_debug())
        })?;
        let number = number.trim().parse::<u16>().map_err(|_| {
            format!("has \"{}\", which is not a node's number", number.escape_debug())
        })?;
        nodes.entry(number).or_default().push(parse_place(place.trim())?);
    }
    match nodes.is_empty() {
        false => Ok(nodes),
        true => Err("is empty".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_as_they_are_written() {
        for (text, ms) in
            [("250ms", 250.0), ("2s", 2000.0), ("1.5s", 1500.0), ("10min", 6e5), ("1d", 864e5)]
        {
            let time = parse_time(text).unwrap();
            assert_eq!(time.as_secs_f64() * 1000.0, ms, "{text}");
            assert_eq!(time_text(time), text);
        }
        for bad in ["", "2", "s", "-1s", "2 parsecs", "1e300d", "NaNs"] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn nodes_have_numbers_and_any_number_of_places() {
        let nodes = parse_nodes("0=a:7000, 1=b:7000,0=[::1]:7001").unwrap();
        assert_eq!(nodes[&0], ["a:7000", "[::1]:7001"]);
        assert_eq!(nodes[&1], ["b:7000"]);
        for bad in ["", "a:7000", "x=a:7000", "0=a", "0=:7", "0=a:0", "0=::1:7000", "70000=a:1"] {
            assert!(parse_nodes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let kind = Kind::Size { min: 8 << 20, max: 1 << 40 };
        assert_eq!(kind.parse("8MiB"), Ok(Value::Count(8 << 20)));
        assert_eq!(kind.parse("1MiB"), Err("is out of range".to_owned()));
        assert_eq!(kind.parse("much"), Err("is not a size".to_owned()));
        let kind = Kind::Time { min_ms: 100, max_ms: 1000, has_never: true };
        assert_eq!(kind.parse("never"), Ok(Value::Time(None)));
        assert!(kind.parse("2s").is_err());
        assert_eq!(Kind::Switch.parse("on"), Ok(Value::Switch(true)));
        assert!(Kind::Switch.parse("maybe").is_err());
    }
}
