//! Bursts over a real socket: what was sent is what the counts add up to.

use std::net::UdpSocket;

use tokio::sync::oneshot;

use super::super::socket::most_for_everybody;
use super::super::tests::{Xdr, every_type};
use super::*;
use crate::fixture::{Fixture, until};
use crate::source::apmon::DatagramCounts;

/// A receiver that a test sends to before and while it runs.
struct Burst {
    fixture: Fixture,
    receiver: Receiver,
    sender: UdpSocket,
    sent: u64,
}

impl Burst {
    async fn new() -> Self {
        Self {
            fixture: Fixture::new().await,
            receiver: Receiver::bind("127.0.0.1:0".parse().unwrap(), ApmonOptions::default())
                .unwrap(),
            sender: UdpSocket::bind("127.0.0.1:0").unwrap(),
            sent: 0,
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.sender.send_to(bytes, self.receiver.address()).unwrap();
        self.sent += 1;
    }

    /// Runs until every datagram is accounted for; answers the counts, and the values recorded.
    async fn run(self) -> (DatagramCounts, Arc<Intake>, Fixture) {
        let (meter, intake) = (self.receiver.meter(), self.fixture.intake("apmon"));
        let (stop, stopped) = oneshot::channel();
        let running = self.receiver.run(Arc::clone(&intake), async { stopped.await.unwrap() });
        let sent = self.sent;
        let counting = async {
            let come = |counts: DatagramCounts| {
                counts.received + counts.dropped_by_kernel.unwrap_or_default()
            };
            until(|| come(meter.counts()) == sent).await;
            stop.send(()).unwrap();
        };
        let (ran, ()) = tokio::join!(running, counting);
        ran.unwrap();
        let counts = meter.counts();
        assert_eq!((counts.waiting, counts.unfinished, counts.overflowed), (0, 0, 0));
        assert_eq!(counts.read + counts.refused.total(), counts.received, "{counts:?}");
        (counts, intake, self.fixture)
    }
}

#[tokio::test]
async fn every_datagram_and_every_value_is_in_one_of_the_counts() {
    let mut burst = Burst::new().await;
    let head = || Xdr::default().string("c").string("n");
    let doubles = |values: &[(&str, f64)]| {
        let head = head().int(i32::try_from(values.len()).unwrap());
        let add = |xdr: Xdr, (name, value): &(&str, f64)| {
            xdr.string(name).int(5).bytes(&value.to_be_bytes())
        };
        values.iter().fold(head, add).0
    };
    for _ in 0..12 {
        burst.send(&every_type().0);
        burst.send(b"GET / HTTP/1.1\r\n\r\n");
    }
    burst.send(&head().int(1).string("x").int(1).int(0).0);
    burst.send(&head().int(1).string("x").0);
    let long = "x".repeat(161);
    burst.send(&doubles(&[("good", 1.0), ("bad", f64::NAN), (&long, 1.0), ("inf", f64::INFINITY)]));
    burst.send(&head().int(2).string("good").int(2).int(1).string("").int(2).int(1).0);
    let (counts, intake, fixture) = burst.run().await;
    assert_eq!((counts.received, counts.read), (28, 14));
    let refused: Vec<u64> = counts.refused.by_reason().iter().map(|(_, count)| *count).collect();
    assert_eq!(refused, [1, 12, 1, 0], "cut, long_string, unknown_type, wrong_password");
    assert_eq!(counts.values_refused.by_reason(), [("name", 1), ("time", 0), ("value", 2)]);
    let values = intake.counts();
    assert_eq!((values.stored, values.ignored, values.failed), (62, 13, 0));
    assert_eq!(values.refused, 14 + 3);
    assert!(fixture.notices().len() <= 2, "{:?}", fixture.notices());
    fixture.verify_clean(62).await;
}

/// Every sender of a site sends at the same second, and the program is not running just then.
#[tokio::test]
async fn a_burst_of_thousands_lies_in_the_receive_buffer() {
    const SENT: u64 = 2000;
    let mut burst = Burst::new().await;
    let datagram = every_type().0;
    (0..SENT).for_each(|_| burst.send(&datagram));
    let (counts, intake, fixture) = burst.run().await;
    let stored = intake.counts().stored;
    assert_eq!(stored, counts.read * 5, "each datagram has five numbers");
    assert_eq!(counts.received + counts.dropped_by_kernel.unwrap_or_default(), SENT);
    if most_for_everybody() >= 2 << 20 {
        assert_eq!((counts.read, counts.lost()), (SENT, 0), "{counts:?}");
    }
    fixture.verify_clean(stored).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_the_kernel_drops_is_counted() {
    let mut burst = Burst::new().await;
    rustix::net::sockopt::set_socket_recv_buffer_size(&burst.receiver.socket, 4096).unwrap();
    let datagram = every_type().0;
    (0..500).for_each(|_| burst.send(&datagram));
    let (counts, intake, _fixture) = burst.run().await;
    let dropped = counts.dropped_by_kernel.unwrap();
    assert!(dropped > 100, "{counts:?}");
    assert_eq!(counts.lost(), dropped);
    assert_eq!((counts.received + dropped, intake.counts().stored), (500, counts.read * 5));
}

#[test]
fn a_full_queue_takes_no_more_and_counts_what_it_does_not_take() {
    let receiver = Receiver::bind("127.0.0.1:0".parse().unwrap(), ApmonOptions::default()).unwrap();
    let (address, meter) = (receiver.address(), receiver.meter());
    let (queue, mut arrivals) = queue(Arc::clone(&meter));
    let bytes = vec![0; DATAGRAM_LEN_MAX];
    let room = QUEUE_BYTES_MAX / (DATAGRAM_LEN_MAX + DATAGRAM_OVERHEAD);
    (0..room).for_each(|_| assert!(queue.push(&bytes, address)));
    assert!(!queue.push(&bytes, address));
    let counts = meter.counts();
    assert_eq!((counts.received, counts.overflowed), (room as u64 + 1, 1));
    assert_eq!((counts.waiting, counts.lost()), (room as u64, 1));
    assert!(arrivals.receiver.try_recv().is_ok());
    meter.stop();
    assert_eq!((meter.counts().waiting, meter.counts().unfinished), (0, room as u64));
}

#[tokio::test]
async fn the_thread_ends_when_nobody_records_any_more() {
    let burst = Burst::new().await;
    let (address, intake) = (burst.receiver.address(), burst.fixture.intake("apmon"));
    let running = tokio::spawn(burst.receiver.run(intake, std::future::pending()));
    tokio::task::yield_now().await;
    running.abort();
    // The address is free again when the thread has let go of its socket.
    until(|| UdpSocket::bind(address).is_ok()).await;
}
