//! Whoever else comes to the port: it is closed, counted, and harms nobody.

use super::*;

/// A node that has little patience, and two that speak meanwhile.
fn port() -> Site {
    let config = NetworkConfig {
        greeting_timeout: Duration::from_millis(300),
        waiting_max: 40,
        waiting_per_address_max: 20,
        ..config()
    };
    start(config, hello(node(2), 1))
}

/// Node 1, connected with the port from another address of this machine.
fn assert_still_taken(site: &Site) {
    let one = start(config(), hello(node(1), 1));
    one.network.set_nodes(&nodes(&[(2, site.address)]));
    one.inbox.wait("node 2 is here", |seen| (!seen.here.is_empty()).then_some(()));
    assert_speak(&one, site, node(1), node(2));
}

#[test]
fn a_browser_is_closed_at_its_first_byte() {
    let site = port();
    let mut raw = Raw::connect(site.address);
    raw.send(b"GET / HTTP/1.1\r\nHost: tyr\r\n\r\n");
    // A refusal in our own words goes out; that it cannot be read is the browser's affair.
    let mut answer = Vec::new();
    let _ = raw.stream.read_to_end(&mut answer);
    assert_refused(&site, Refusal::Protocol, 1);
    assert_still_taken(&site);
}

#[test]
fn random_bytes_are_closed() {
    let site = port();
    let seed = tyr_runtime::clock::random_u64();
    println!("seed {seed}");
    let mut state = seed | 1;
    for _ in 0..50 {
        let mut raw = Raw::connect(site.address);
        let bytes: Vec<u8> = (0..1000)
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        // It may be closed in the middle of this.
        let _ = raw.stream.write_all(&bytes);
        let mut answer = Vec::new();
        let _ = raw.stream.read_to_end(&mut answer);
    }
    let is_refused = |statistics: &NetworkStatistics| {
        statistics.refused(Refusal::Protocol) + statistics.refused(Refusal::Tls)
    };
    eventually("all are refused", || is_refused(&site.network.statistics()) == 50);
    assert_still_taken(&site);
}

#[test]
fn a_hello_that_was_damaged_is_refused() {
    let site = port();
    let mut bytes = BytesMut::from(&hello(node(1), 1).to_bytes().unwrap()[..]);
    bytes[30] ^= 1;
    let mut raw = Raw::connect(site.address);
    raw.send(&bytes);
    assert!(raw.hear_hello().unwrap_err().message().contains("checksum"));
    assert_refused(&site, Refusal::Protocol, 1);
}

#[test]
fn a_port_scanner_is_counted() {
    let site = port();
    for _ in 0..10 {
        drop(Raw::connect(site.address));
    }
    assert_refused(&site, Refusal::Vanished, 10);
    assert_still_taken(&site);
}

#[test]
fn who_says_hello_byte_by_byte_does_not_get_to_its_end() {
    let site = port();
    let bytes = hello(Address::Client(1), 0).to_bytes().unwrap();
    let mut raw = Raw::connect(site.address);
    raw.send(&bytes[..1]);
    let mut silent = Raw::connect(site.address);
    for byte in &bytes[1..20] {
        raw.send(&[*byte]);
    }
    assert!(raw.is_closed() && silent.is_closed());
    assert_refused(&site, Refusal::Slow, 2);
    assert_still_taken(&site);
}

#[test]
fn a_flood_of_silent_connections_pushes_out_itself() {
    let patient = NetworkConfig { greeting_timeout: DEADLINE * 2, ..port_config() };
    let site = start(patient, hello(node(2), 1));
    let raws: Vec<_> = (0..200).map(|_| Raw::connect(site.address)).collect();
    assert_refused(&site, Refusal::Flood, 180);
    // From the same address as the flood, which goes on.
    assert_still_taken(&site);
    eventually("those of the flood still wait", || {
        let waiting = site.network.statistics().waiting;
        (1..=20).contains(&waiting)
    });
    drop(raws);
    eventually("nobody waits", || site.network.statistics().waiting == 0);
}

fn port_config() -> NetworkConfig {
    NetworkConfig { waiting_max: 40, waiting_per_address_max: 20, ..config() }
}

#[test]
fn a_frame_that_was_damaged_ends_the_connection_and_no_other() {
    let site = port();
    let other = client(8, 2, &site);
    for damage in 0..3 {
        let mut raw = Raw::connect(site.address);
        raw.greet(&hello(Address::Client(7), 0)).unwrap();
        let mut outgoing = Outgoing::new();
        encode(&small(Address::Client(7), 1), &mut outgoing).unwrap();
        let mut bytes = outgoing.take_bytes().to_vec();
        match damage {
            0 => bytes[9] ^= 1,
            1 => bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes()),
            _ => bytes[4..8].copy_from_slice(&[0; 4]),
        }
        raw.send(&bytes);
        assert!(raw.is_closed());
        assert_eq!(site.network.statistics().broken, damage + 1);
    }
    assert_eq!(site.inbox.count(), 0);
    assert_speak(&other, &site, Address::Client(8), node(2));
}

#[test]
fn a_connection_cut_in_the_middle_of_a_frame_gives_nothing_of_it() {
    let site = port();
    let mut raw = Raw::connect(site.address);
    raw.greet(&hello(Address::Client(7), 0)).unwrap();
    raw.say(&small(Address::Client(7), 1));
    let mut outgoing = Outgoing::new();
    encode(&small(Address::Client(7), 2), &mut outgoing).unwrap();
    raw.send(&outgoing.take_bytes()[..12]);
    drop(raw);
    site.inbox.wait("it is gone", |seen| (seen.gone.len() == 1).then_some(()));
    assert_eq!(site.inbox.take(1), [1]);
    assert_eq!(site.inbox.count(), 0);
}

#[test]
fn the_control_plane_gets_its_connections_from_their_first_byte_on() {
    let (send, handed) = std::sync::mpsc::channel();
    let send = Mutex::new(send);
    let control: Arc<dyn Fn(ControlStream) + Send + Sync> = Arc::new(move |control| {
        let send = send.lock().clone();
        tokio::spawn(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut bytes = [0; 13];
            let mut stream = control.stream.open().unwrap();
            stream.read_exact(&mut bytes).await.unwrap();
            stream.write_all(b"welcome").await.unwrap();
            send.send((bytes, control.from, control.certificate.is_some())).unwrap();
        });
    });
    let address = "127.0.0.1:0".parse().unwrap();
    let site = start_with(config(), hello(node(2), 1), address, Some(control));
    let mut raw = Raw::connect(site.address);
    raw.send(b"TYR-");
    raw.send(b"CTRLhello");
    let from = raw.stream.local_addr().unwrap();
    let got = handed.recv_timeout(DEADLINE).unwrap();
    assert_eq!(got, (*b"TYR-CTRLhello", from, false));
    let mut answer = [0; 7];
    raw.stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"welcome");
    assert_eq!(site.network.statistics().accepted, 1);
    assert_eq!(site.network.statistics().waiting, 0);
}

#[test]
fn who_wants_the_control_plane_where_it_is_not_served_is_closed() {
    let site = port();
    let mut raw = Raw::connect(site.address);
    raw.send(&CONTROL_MAGIC);
    assert!(raw.is_closed());
    assert_refused(&site, Refusal::Protocol, 1);
}
