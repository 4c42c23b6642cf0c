//! A network namespace for each node, all on one bridge, which the clients are on too.
//!
//! ```text
//!   node 0: 10.77.x.10 ──veth──┐
//!   node 1: 10.77.x.11 ──veth──┼── bridge 10.77.x.1: the clients
//!   node 2: 10.77.x.12 ──veth──┘
//! ```
//!
//! A line is cut one way by a wrong entry in the sender's table of neighbours: packets go to an
//! address that nobody has. Nobody is told, as when a cable breaks, and nothing but `ip` is needed.
//! TCP alone is cut by a rule of the sender's that gives it a way of its own, over such an address.
//! Slow is `netem` where the kernel has it, else a narrow token bucket.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use tyr_types::{Error, Result};

use super::{End, Endpoint, Fabric, Slowness};

/// The port that nodes listen at, each in its own network.
const PORT: u16 = 7400;

/// An address of the link layer that nobody has.
const NOBODY: &str = "02:00:00:00:00:99";

/// The host that TCP goes by where it is cut: it has that address. Nodes have lower numbers.
const NOWHERE: u8 = 254;

/// The table of ways for TCP that is cut.
const CUT_TABLE: &str = "77";

/// A bridge with namespaces on it. Dropping it removes them.
#[derive(Debug)]
pub struct Namespaces {
    /// What its names have in common: this process's number, for others may run trials at the same
    /// time, and a letter, for the system takes its time to remove what the fabric before had.
    own: String,
    subnet: u8,
    nodes: Mutex<BTreeSet<u16>>,
    has_netem: bool,
}

impl Namespaces {
    /// An empty bridge; what trials left that were killed goes.
    ///
    /// # Errors
    /// `Unavailable` for who is not root, or without `ip`.
    pub fn new() -> Result<Self> {
        clean();
        static MADE: AtomicU8 = AtomicU8::new(0);
        let pid = std::process::id();
        let letter = b'a' + MADE.fetch_add(1, Ordering::Relaxed) % 26;
        let own = format!("{pid}{}", char::from(letter));
        let bridge = bridge(&own);
        ip(&["link", "add", &bridge, "type", "bridge", "forward_delay", "0"])?;
        let mut fabric = Self { own, subnet: 0, nodes: Mutex::default(), has_netem: false };
        for subnet in (0..=255u8).map(|n| n.wrapping_add(pid as u8)) {
            let address = format!("{}/24", host(subnet, 1));
            if ip(&["addr", "add", &address, "dev", &bridge]).is_ok() {
                fabric.subnet = subnet;
                break;
            }
        }
        ip(&["link", "set", &bridge, "up"])?;
        let netem = ["qdisc", "add", "dev", &bridge, "root", "netem", "delay", "1ms"];
        if run("tc", &netem).is_ok() {
            fabric.has_netem = true;
            run("tc", &["qdisc", "del", "dev", &bridge, "root"])?;
        }
        Ok(fabric)
    }

    fn namespace(&self, node: u16) -> String {
        format!("tyr-{}-{node}", self.own)
    }

    /// The end of a node's line that is on the bridge.
    fn outer(&self, node: u16) -> String {
        format!("ty{}v{node}", self.own)
    }

    fn address(&self, node: u16) -> Ipv4Addr {
        host(self.subnet, 10 + node as u8)
    }

    fn make(&self, node: u16) -> Result<()> {
        let namespace = self.namespace(node);
        let (outer, inner) = (self.outer(node), format!("ty{}i{node}", self.own));
        ip(&["netns", "add", &namespace])?;
        ip(&["link", "add", &outer, "type", "veth", "peer", "name", &inner])?;
        ip(&["link", "set", &inner, "netns", &namespace])?;
        ip(&["link", "set", &outer, "master", &bridge(&self.own), "up"])?;
        let inside = |words: &[&str]| {
            let mut all = vec!["-n", namespace.as_str()];
            all.extend(words);
            ip(&all)
        };
        inside(&["link", "set", &inner, "name", "eth0"])?;
        inside(&["addr", "add", &format!("{}/24", self.address(node)), "dev", "eth0"])?;
        inside(&["link", "set", "lo", "up"])?;
        inside(&["link", "set", "eth0", "up"])
    }
}

impl Fabric for Namespaces {
    fn name(&self) -> &'static str {
        "namespaces"
    }

    fn endpoint(&self, node: u16) -> Result<Endpoint> {
        if node >= 200 {
            return Err(Error::invalid("a trial has at most 200 nodes"));
        }
        if self.nodes.lock().insert(node) {
            self.make(node)?;
        }
        let listen = SocketAddr::new(IpAddr::V4(self.address(node)), PORT);
        let command = ["ip", "netns", "exec", &self.namespace(node)].map(str::to_owned);
        Ok(Endpoint { listen, advertise: listen.to_string(), command: command.into() })
    }

    fn started(&self, _: u16, _: u32) {}

    fn cut(&self, from: End, to: End, is_cut: bool) -> Result<()> {
        let target = match to {
            End::Node(node) => self.address(node),
            End::Clients => host(self.subnet, 1),
        };
        let (target, bridge) = (target.to_string(), bridge(&self.own));
        let namespace;
        let mut words = Vec::new();
        let device = match from {
            End::Node(node) => {
                namespace = self.namespace(node);
                words.extend(["-n", namespace.as_str()]);
                "eth0"
            }
            End::Clients => bridge.as_str(),
        };
        let verb = if is_cut { "replace" } else { "del" };
        words.extend(["neigh", verb, &target, "dev", device]);
        if is_cut {
            words.extend(["lladdr", NOBODY, "nud", "permanent"]);
            return ip(&words);
        }
        // What was not cut has no such entry.
        let _ = ip(&words);
        Ok(())
    }

    fn cut_tcp(&self, from: u16, to: u16, is_cut: bool) -> Result<()> {
        let namespace = self.namespace(from);
        let inside = |words: &[&str]| ip(&[&["-n", namespace.as_str()], words].concat());
        let target = self.address(to).to_string();
        let rule = ["to", target.as_str(), "ipproto", "tcp", "lookup", CUT_TABLE];
        // What was not cut has no such rule; one that is cut again is to have one, not two.
        let _ = inside(&[&["rule", "del"], &rule[..]].concat());
        if !is_cut {
            return Ok(());
        }
        let nowhere = host(self.subnet, NOWHERE).to_string();
        let way = ["default", "via", &nowhere, "dev", "eth0", "table", CUT_TABLE];
        let neighbour = [&nowhere, "dev", "eth0", "lladdr", NOBODY, "nud", "permanent"];
        inside(&[&["neigh", "replace"], &neighbour[..]].concat())?;
        inside(&[&["route", "replace"], &way[..]].concat())?;
        inside(&[&["rule", "add"], &rule[..]].concat())
    }

    fn slow(&self, node: u16, slowness: Option<Slowness>) -> Result<()> {
        let namespace = self.namespace(node);
        let inside = |words: &[&str]| {
            let mut all = vec!["netns", "exec", namespace.as_str(), "tc", "qdisc"];
            all.extend(words);
            ip(&all)
        };
        let Some(Slowness { delay, loss_percent }) = slowness else {
            return inside(&["del", "dev", "eth0", "root"]);
        };
        let (delay, loss) = (format!("{}ms", delay.as_millis()), format!("{loss_percent}%"));
        match self.has_netem {
            true => {
                inside(&["replace", "dev", "eth0", "root", "netem", "delay", &delay, "loss", &loss])
            }
            // What waits longer is dropped: a line of 512 kbit/s is slow and loses.
            false => inside(&[
                "replace", "dev", "eth0", "root", "tbf", "rate", "512kbit", "burst", "8kb",
                "latency", &delay,
            ]),
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for node in self.nodes.lock().iter() {
            let _ = ip(&["link", "del", &self.outer(*node)]);
            let _ = ip(&["netns", "del", &self.namespace(*node)]);
        }
        let _ = ip(&["link", "del", &bridge(&self.own)]);
    }
}

/// Removes what processes left that are no more.
fn clean() {
    let is_gone = |own: &str| {
        let pid = own.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        !std::path::Path::new("/proc").join(pid).exists()
    };
    let listed = |words: &[&str]| {
        let output = Command::new("ip").args(words).output();
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default()
    };
    for line in listed(&["netns", "list"]).lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let own = name.strip_prefix("tyr-").and_then(|rest| rest.split_once('-'));
        if own.is_some_and(|(own, _)| is_gone(own)) {
            let _ = ip(&["netns", "del", name]);
        }
    }
    for line in listed(&["-o", "link", "show", "type", "bridge"]).lines() {
        let name = line.split_whitespace().nth(1).unwrap_or_default().trim_end_matches(':');
        if name.strip_prefix("tybr").is_some_and(is_gone) {
            let _ = ip(&["link", "del", name]);
        }
    }
}

fn bridge(own: &str) -> String {
    format!("tybr{own}")
}

fn host(subnet: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, subnet, host)
}

fn ip(words: &[&str]) -> Result<()> {
    run("ip", words)
}

/// Runs a program of the system and waits for it.
///
/// # Errors
/// `Unavailable` with what it said.
pub(crate) fn run(program: &str, words: &[&str]) -> Result<()> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Error::io(program, error))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::unavailable(format!(
            "{program} {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsFd;

    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

    use super::*;

    /// What `work` answers on a thread in a node's network.
    fn inside<T: Send>(fabric: &Namespaces, node: u16, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", fabric.namespace(node))).unwrap();
        let enter = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        };
        std::thread::scope(|scope| scope.spawn(enter).join().unwrap())
    }

    #[test]
    fn tcp_is_cut_one_way_while_datagrams_pass() {
        // Who is not root has none.
        let Ok(fabric) = Namespaces::new() else { return };
        let places = [0, 1].map(|node| fabric.endpoint(node).unwrap().listen);
        let bind = |node: u16| {
            let place = places[usize::from(node)];
            inside(&fabric, node, || {
                (TcpListener::bind(place).unwrap(), UdpSocket::bind(place).unwrap())
            })
        };
        let ((_, zero), (listener, one)) = (bind(0), bind(1));
        let mut caller = inside(&fabric, 0, || TcpStream::connect(places[1]).unwrap());
        let (mut called, _) = listener.accept().unwrap();
        let mut byte = [0];

        fabric.cut_tcp(0, 1, true).unwrap();
        caller.write_all(b"a").unwrap();
        zero.send_to(b"d", places[1]).unwrap();
        assert_eq!(one.recv(&mut byte).unwrap(), 1);
        // The datagram was sent later than the byte, over the same line.
        called.set_nonblocking(true).unwrap();
        assert_eq!(called.read(&mut byte).unwrap_err().kind(), ErrorKind::WouldBlock);
        called.set_nonblocking(false).unwrap();

        fabric.cut_tcp(0, 1, false).unwrap();
        called.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"a");
    }

    #[test]
    fn one_fabric_is_made_right_after_another_is_gone() {
        for _ in 0..5 {
            // Who is not root has none.
            let Ok(fabric) = Namespaces::new() else { return };
            for node in 0..3 {
                fabric.endpoint(node).unwrap();
            }
        }
    }
}
