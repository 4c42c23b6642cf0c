//! The monitors as one machine at the first node: until there is consensus.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tyr_protocol::lease::{Effect, Event, Grants, LeaseConfig};
use tyr_protocol::map::ClusterMap;
use tyr_protocol::message::{Address, Body, Envelope};
use tyr_types::NodeId;

use super::outlet::{Exit, Leader};
use crate::router::gate::MonitorInlet;

/// The monitors.
pub(crate) struct Solo {
    line: Mutex<Sender<Envelope>>,
}

impl Solo {
    pub fn start(map: Arc<ClusterMap>, config: LeaseConfig, exit: Arc<Exit>) -> Arc<Self> {
        let (sender, receiver) = channel::<Envelope>();
        let is_first = exit.node() == NodeId(0);
        let run = move || {
            let started = Instant::now();
            let mut grants = Grants::new(config, map, 0);
            let mut effects = Vec::new();
            loop {
                let event = match receiver.recv_timeout(Duration::from_millis(100)) {
                    Ok(envelope) => {
                        let Address::Node(node) = envelope.from else { continue };
                        let incarnation = envelope.incarnation;
                        match envelope.body {
                            Body::Renew { incarnation, epoch, sent_us } => {
                                Event::Renew { node, incarnation, epoch, sent_us }
                            }
                            Body::Prepared { epoch } => {
                                Event::Prepared { node, incarnation, epoch }
                            }
                            Body::CaughtUp { epoch } => {
                                Event::CaughtUp { node, incarnation, epoch }
                            }
                            Body::Return { incarnation, has_disk } => {
                                Event::Return { node, incarnation, has_disk }
                            }
                            _ => continue,
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => Event::Tick,
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                let now_us = started.elapsed().as_micros() as u64;
                grants.step(now_us, event, &mut effects);
                let epoch = grants.map().epoch;
                let tell = |to: NodeId, body: Body| {
                    let from = Address::Monitors;
                    exit.send_from_monitors(to, Envelope { epoch, incarnation: 0, from, body });
                };
                for effect in effects.drain(..) {
                    match effect {
                        Effect::Grant { to, incarnation, sent_us, duration_us, epoch } => {
                            tell(to, Body::Granted { incarnation, sent_us, duration_us, epoch });
                        }
                        Effect::Prepare { to, map } => tell(to, Body::Prepare(map)),
                        Effect::Inform { to, map } => tell(to, Body::Effective(map)),
                        Effect::Publish(map) => {
                            for node in map.nodes.keys() {
                                tell(*node, Body::Effective(Arc::clone(&map)));
                            }
                        }
                        Effect::Answer { .. } => {}
                    }
                }
            }
        };
        if is_first {
            std::thread::spawn(run);
        }
        Arc::new(Self { line: Mutex::new(sender) })
    }
}

impl MonitorInlet for Solo {
    fn receive(&self, envelope: Envelope) {
        let _ = self.line.lock().send(envelope);
    }

    fn is_monitor(&self, node: NodeId) -> bool {
        node == NodeId(0)
    }
}

impl Leader for Solo {
    fn leader(&self) -> Option<NodeId> {
        Some(NodeId(0))
    }
}
