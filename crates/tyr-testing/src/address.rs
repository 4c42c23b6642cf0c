//! Addresses for nodes of tests.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// The lowest port that is given.
const FIRST: u16 = 18_000;
/// How many ports there are to give: they end below those that the system gives to who connects
/// or binds to port 0 (Linux: from 32,768).
const PORTS: u16 = 14_000;
/// From where one process begins to search to where the next does.
const STRIDE: u32 = 32;

/// An address of this machine that is free for TCP and for UDP, as a node needs it, and that no
/// other call answers while this process lives: not in this process, and not in another.
///
/// # Panics
/// When none of 14,000 ports is free.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = std::process::id().wrapping_mul(STRIDE) % u32::from(PORTS);
    let next = || (first + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % u32::from(PORTS);
    std::iter::repeat_with(|| FIRST + next() as u16)
        .take(usize::from(PORTS))
        .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .find(|address| is_free(*address) && is_reserved(address.port()))
        .expect("one of 14,000 ports is free")
}

fn is_free(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
}

/// Takes a name that stands for the port among the processes of this machine. The system takes it
/// back when the process ends.
fn is_reserved(port: u16) -> bool {
    let name = UnixAddress::from_abstract_name(format!("tyr-testing/port/{port}"));
    let reserved = name.and_then(|name| UnixListener::bind_addr(&name));
    reserved.map(std::mem::forget).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn an_address_is_given_once_and_is_free_for_tcp_and_udp() {
        let (given, held): (BTreeSet<_>, Vec<_>) = (0..100)
            .map(|_| free_address())
            .map(|it| (it, (TcpListener::bind(it).unwrap(), UdpSocket::bind(it).unwrap())))
            .unzip();
        assert_eq!((given.len(), held.len()), (100, 100));
        assert!(given.iter().all(|it| !is_reserved(it.port())));
    }
}
