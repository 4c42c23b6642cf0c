//! Receiving, which never waits for recording.
//!
//! ```text
//!   senders ──► socket's buffer ──► thread ──► queue ──► recorders ──► intake
//!               full: the kernel               full:     on the caller's
//!               drops and counts               counted   threads
//! ```
//!
//! The thread does nothing but carry datagrams from the socket to the queue, so that what the
//! kernel keeps is needed for the moments only in which the thread is not running. A store that is
//! slower than the senders for long fills the queue; what then comes is lost, and counted.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc;
use tyr::Result;

use super::ApmonOptions;
use super::counts::Meter;
use super::datagram::{Datagram, Value, decode};
use super::socket::{KernelDrops, ReceiveBuffer};
use crate::calendar;
use crate::intake::Intake;
use crate::layout;
use crate::series::Measurement;
use crate::source::now_us;

/// Datagrams being recorded at once; further ones wait in the queue.
const RECORDERS: usize = 16;

/// Memory for what waits. It is some 100,000 datagrams of 200 bytes: minutes of a large site.
const QUEUE_BYTES_MAX: usize = 32 << 20;

/// What a datagram takes in memory besides its bytes, rounded up.
const DATAGRAM_OVERHEAD: usize = 128;

/// The largest UDP datagram.
const DATAGRAM_LEN_MAX: usize = 65_535;

/// How soon the thread notices that it is to stop, when nothing comes.
const NAP: Duration = Duration::from_millis(100);

/// Time to take from the kernel what it has when the service stops, however much still comes.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);

/// Time to record what waits when the service stops.
const GRACE: Duration = Duration::from_secs(10);

/// Receives datagrams at one address.
#[derive(Debug)]
pub struct Receiver {
    socket: UdpSocket,
    address: SocketAddr,
    options: ApmonOptions,
    meter: Arc<Meter>,
}

impl Receiver {
    /// Binds the address, with a large receive buffer.
    ///
    /// # Errors
    /// When the address is in use or not this machine's.
    pub fn bind(address: SocketAddr, options: ApmonOptions) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let address = socket.local_addr()?;
        socket.set_read_timeout(Some(NAP))?;
        let meter = Meter::new(ReceiveBuffer::ask(&socket)?, KernelDrops::of(&socket));
        Ok(Self { socket, address, options, meter: Arc::new(meter) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What counts its datagrams, also after it has ended.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// What an operator should know and do before it runs, if anything.
    pub fn advice(&self) -> Option<String> {
        self.meter.counts().receive_buffer.advice()
    }

    /// Records what arrives until `stop` completes, and then what has arrived before; what is not
    /// recorded 10 seconds later is counted as unfinished.
    ///
    /// # Errors
    /// When there is no thread to be had, or it panics.
    pub async fn run(self, intake: Arc<Intake>, stop: impl Future<Output = ()>) -> io::Result<()> {
        let Self { socket, options, meter, .. } = self;
        let (queue, arrivals) = queue(Arc::clone(&meter));
        let stopping = Stopping::default();
        let (is_stopping, receiving) = (Arc::clone(&stopping.0), Arc::clone(&intake));
        thread::Builder::new()
            .name("tyr-apmon".to_owned())
            .spawn(move || receive(&socket, &queue, &receiving, &is_stopping))?;
        let recorder = Recorder { intake: &intake, options: &options, meter: &meter };
        let mut recording = std::pin::pin!(arrivals.record(&recorder));
        tokio::select! {
            () = &mut recording => {
                return Err(io::Error::other("the thread that receives datagrams has panicked"));
            }
            () = stop => {
                drop(stopping);
                // What is late is counted below.
                let _ = tokio::time::timeout(GRACE, recording).await;
            }
        }
        meter.stop();
        Ok(())
    }
}

/// Tells the thread to stop when it is dropped, so also when nobody waits for the recorders.
#[derive(Default)]
struct Stopping(Arc<AtomicBool>);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The thread.
fn receive(socket: &UdpSocket, queue: &Queue, intake: &Intake, is_stopping: &AtomicBool) {
    let mut buffer = vec![0; DATAGRAM_LEN_MAX];
    let mut drained_by = None;
    loop {
        if drained_by.is_none() && is_stopping.load(Ordering::Relaxed) {
            // From here on nothing is waited for. Where that cannot be said, NAP is the most.
            let _ = socket.set_nonblocking(true);
            drained_by = Some(Instant::now() + DRAIN_TIME_MAX);
        }
        if drained_by.is_some_and(|by| Instant::now() > by) {
            break;
        }
        match socket.recv_from(&mut buffer) {
            Ok((len, sender)) => {
                if !queue.push(&buffer[..len], sender) {
                    intake.tell("the store is too slow: datagrams are dropped unread");
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut if drained_by.is_some() => break,
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                _ => {
                    intake.fail(1, format_args!("cannot receive: {error}"));
                    // A broken socket must not turn this loop into a hot one.
                    thread::sleep(NAP);
                }
            },
        }
    }
    queue.meter.close();
}

/// A datagram as it came.
struct Arrival {
    bytes: Box<[u8]>,
    sender: SocketAddr,
    time_us: i64,
}

impl Arrival {
    fn memory(&self) -> usize {
        self.bytes.len() + DATAGRAM_OVERHEAD
    }
}

/// The way into the queue.
struct Queue {
    sender: mpsc::UnboundedSender<Arrival>,
    /// Memory of what is in it, which bounds it.
    memory: Arc<AtomicUsize>,
    meter: Arc<Meter>,
}

/// The way out of the queue.
struct Arrivals {
    receiver: mpsc::UnboundedReceiver<Arrival>,
    memory: Arc<AtomicUsize>,
}

fn queue(meter: Arc<Meter>) -> (Queue, Arrivals) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let memory = Arc::new(AtomicUsize::new(0));
    (Queue { sender, memory: Arc::clone(&memory), meter }, Arrivals { receiver, memory })
}

impl Queue {
    /// Whether there was room.
    fn push(&self, bytes: &[u8], sender: SocketAddr) -> bool {
        let memory = bytes.len() + DATAGRAM_OVERHEAD;
        if self.memory.load(Ordering::Relaxed) + memory > QUEUE_BYTES_MAX {
            self.meter.overflow();
            return false;
        }
        self.meter.take();
        self.memory.fetch_add(memory, Ordering::Relaxed);
        // When nobody takes it any more, it is one of those that are unfinished.
        let _ = self.sender.send(Arrival { bytes: bytes.into(), sender, time_us: now_us() });
        true
    }
}

impl Arrivals {
    /// Records all that comes, until the way in is gone.
    async fn record(mut self, recorder: &Recorder<'_>) {
        let memory = Arc::clone(&self.memory);
        poll_fn(|context| self.receiver.poll_recv(context))
            .for_each_concurrent(RECORDERS, |arrival| {
                memory.fetch_sub(arrival.memory(), Ordering::Relaxed);
                recorder.record(arrival)
            })
            .await;
    }
}

/// Turns datagrams into measurements, and records them.
struct Recorder<'a> {
    intake: &'a Intake,
    options: &'a ApmonOptions,
    meter: &'a Meter,
}

impl Recorder<'_> {
    async fn record(&self, arrival: Arrival) {
        let datagram = match decode(&arrival.bytes, self.options.password.as_deref()) {
            Ok(datagram) => datagram,
            Err(error) => {
                self.meter.refuse(&error);
                let sender = arrival.sender;
                return self.intake.refuse(1, format_args!("datagram from {sender}: {error}"));
            }
        };
        let time_us = datagram.time_us.unwrap_or(arrival.time_us);
        let measurements = self.measurements(&datagram, time_us);
        self.intake.record(&measurements).await;
        self.meter.finish();
    }

    /// The datagram's numbers that can be recorded; the others are counted.
    fn measurements<'a>(&'a self, datagram: &'a Datagram, time_us: i64) -> Vec<Measurement<'a>> {
        let numbers = datagram.parameters.iter().filter_map(|parameter| match parameter.value {
            Value::Number(value) => Some((parameter.name.as_str(), value)),
            Value::Text => None,
        });
        let mut measurements: Vec<Measurement<'_>> = numbers
            .map(|(parameter, value)| Measurement {
                site: &self.options.site,
                cluster: &datagram.cluster,
                host: &datagram.node,
                parameter,
                job: &self.options.job,
                time_us,
                value,
            })
            .collect();
        let texts = datagram.parameters.len() - measurements.len();
        self.intake.ignore(texts as u64 + datagram.unread);
        measurements.retain(|measurement| self.is_in_range(measurement));
        measurements
    }

    fn is_in_range(&self, measurement: &Measurement<'_>) -> bool {
        let error = if let Err(error) = calendar::validate_time(measurement.time_us) {
            self.meter.refuse_values(|refused| refused.time += 1);
            error
        } else if let Err(error) = measurement.validate() {
            self.meter.refuse_values(|refused| refused.value += 1);
            error
        } else if let Err(error) = check_names(measurement) {
            self.meter.refuse_values(|refused| refused.name += 1);
            error
        } else {
            return true;
        };
        self.intake.refuse(1, error);
        false
    }
}

fn check_names(measurement: &Measurement<'_>) -> Result<()> {
    let mut names = measurement.names().into_iter();
    names.try_for_each(|(what, name)| layout::validate_name(what, name))
}

#[cfg(test)]
mod tests;
