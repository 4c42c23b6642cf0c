//! The socket that datagrams arrive at: how much the kernel keeps for it, and what it dropped.
//!
//! Senders of ApMon do not wait for anybody, and many of them send at the same second. What the
//! program has not taken yet lies in the socket's receive buffer; what finds it full is gone
//! without a word, but for a counter of the kernel's.

use std::io;
use std::net::UdpSocket;

use rustix::fs::fstat;
use rustix::net::sockopt;
use serde::Serialize;

/// The receive buffer that is asked for. Linux doubles it, and counts what it needs itself for a
/// datagram too, 1,280 bytes for one of 200: it has room for some 13,000 of those.
const ASKED: usize = 8 << 20;

/// Below this there is no point in asking: every system gives as much unasked.
const ASKED_MIN: usize = 64 << 10;

/// Where Linux lists its UDP sockets.
const TABLES: [&str; 2] = ["/proc/net/udp", "/proc/net/udp6"];

/// How much the kernel keeps of what the program has not taken yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiveBuffer {
    /// Bytes asked for.
    pub asked_bytes: u64,
    /// Bytes got.
    pub granted_bytes: u64,
}

impl ReceiveBuffer {
    /// Asks for a large buffer, and looks at what came of it.
    ///
    /// # Errors
    /// When the system does not say how large the buffer is.
    pub fn ask(socket: &UdpSocket) -> io::Result<Self> {
        if !is_forced(socket) {
            // Linux gives the most that it may, other systems refuse what is more than that.
            let mut asked = ASKED;
            while sockopt::set_socket_recv_buffer_size(socket, asked).is_err() && asked > ASKED_MIN
            {
                asked /= 2;
            }
        }
        let mut granted = sockopt::socket_recv_buffer_size(socket)?;
        if cfg!(target_os = "linux") {
            // It doubles what it is asked for, and says so (socket(7)).
            granted /= 2;
        }
        Ok(Self { asked_bytes: ASKED as u64, granted_bytes: granted as u64 })
    }

    /// What an operator should know and do, where less was got than asked for.
    pub fn advice(&self) -> Option<String> {
        let Self { asked_bytes: asked, granted_bytes: granted } = *self;
        (granted < asked).then(|| {
            format!(
                "the socket for ApMon has a receive buffer of {} KiB, {} KiB were asked for; so \
                 that no burst is lost: sysctl -w net.core.rmem_max={asked}, then start again",
                granted >> 10,
                asked >> 10
            )
        })
    }
}

/// Whether the buffer was got whatever the system's bound is; the administrator may do that.
#[cfg(target_os = "linux")]
fn is_forced(socket: &UdpSocket) -> bool {
    sockopt::set_socket_recv_buffer_size_force(socket, ASKED).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn is_forced(_: &UdpSocket) -> bool {
    false
}

/// What the kernel dropped for want of room in a socket's buffer (or because it was damaged).
#[derive(Debug)]
pub struct KernelDrops {
    /// The socket's, while it is open.
    inode: Option<u64>,
    /// What it said last; it counts in 32 bits and begins again at 0.
    last: u32,
    total: Option<u64>,
}

impl KernelDrops {
    /// The drops of this socket.
    pub fn of(socket: &UdpSocket) -> Self {
        Self { inode: fstat(socket).map(|stat| stat.st_ino).ok(), last: 0, total: None }
    }

    /// How many, so far; none where the system does not tell, or has not told while the socket was
    /// open.
    pub fn count(&mut self) -> Option<u64> {
        let mut texts = TABLES.iter().filter_map(|table| std::fs::read_to_string(table).ok());
        let inode = self.inode;
        if let Some(drops) = texts.find_map(|text| drops_in(&text, inode?)) {
            self.take(drops);
        }
        self.total
    }

    /// Counts a last time, before the socket is closed and its inode another's.
    pub fn close(&mut self) {
        self.count();
        self.inode = None;
    }

    fn take(&mut self, drops: u32) {
        let more = drops.wrapping_sub(self.last);
        self.last = drops;
        self.total = Some(self.total.unwrap_or(0) + u64::from(more));
    }
}

/// The drops of the socket with this inode in a table of the kernel's (proc(5)).
fn drops_in(table: &str, inode: u64) -> Option<u32> {
    const INODE: usize = 9;
    const DROPS: usize = 12;
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace();
        let is_it = columns.nth(INODE)?.parse() == Ok(inode);
        let drops = columns.nth(DROPS - INODE - 1)?;
        is_it.then(|| drops.parse().ok()).flatten()
    })
}

/// The largest buffer that this system gives to everybody; 0 where it does not say.
#[cfg(test)]
pub(super) fn most_for_everybody() -> u64 {
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
    most.trim().parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_too_small_is_told_with_what_to_do() {
        let full = ReceiveBuffer { asked_bytes: 8 << 20, granted_bytes: 8 << 20 };
        assert_eq!(full.advice(), None);
        let advice = ReceiveBuffer { granted_bytes: 212_992, ..full }.advice().unwrap();
        assert!(advice.contains("208 KiB, 8192 KiB were asked"), "{advice}");
        assert!(advice.contains("sysctl -w net.core.rmem_max=8388608"), "{advice}");
    }

    #[test]
    fn a_socket_gets_as_much_as_it_may_have() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let buffer = ReceiveBuffer::ask(&socket).unwrap();
        assert_eq!(buffer.asked_bytes, 8 << 20);
        // The administrator gets more than everybody may have.
        let least = most_for_everybody().min(buffer.asked_bytes);
        assert!(buffer.granted_bytes >= least, "{least}, {buffer:?}");
    }

    #[test]
    fn drops_are_found_by_the_inode_and_nothing_else() {
        let head = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                    uid  timeout inode ref pointer drops            \n";
        let row = |inode: u32, drops: u32| {
            format!(
                " 2294: 0100007F:D306 00000000:0000 07 00000000:00033E00 00:00000000 00000000     \
                 0        0 {inode} 2 000000004e858751 {drops}    \n"
            )
        };
        let table = format!("{head}{}{}", row(2834, 7), row(12, 2834));
        assert_eq!(drops_in(&table, 12), Some(2834));
        assert_eq!(drops_in(&table, 2834), Some(7));
        assert_eq!(drops_in(&table, 7), None);
        assert_eq!(drops_in("what is this\nno table\n", 7), None);
    }

    #[test]
    fn a_counter_that_begins_again_goes_on() {
        let mut drops = KernelDrops { inode: None, last: 0, total: None };
        assert_eq!(drops.count(), None);
        drops.take(u32::MAX - 1);
        drops.take(3);
        assert_eq!(drops.count(), Some(u64::from(u32::MAX) + 4));
    }
}
