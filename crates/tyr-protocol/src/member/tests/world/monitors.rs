//! The monitors: what they are told, and what they grant and publish.

use std::sync::Arc;

use tyr_types::NodeId;

use super::World;
use crate::lease;
use crate::message::{Address, Body, Envelope};

impl World {
    pub(super) fn monitors(&mut self, Envelope { from, epoch, incarnation, body }: Envelope) {
        let Address::Node(node) = from else { return };
        self.grant(match body {
            Body::Renew { incarnation, epoch, sent_us, retention } => {
                lease::Event::Renew { node, incarnation, epoch, sent_us, retention }
            }
            Body::Prepared { epoch } => lease::Event::Prepared { node, incarnation, epoch },
            Body::CaughtUp { epoch } => lease::Event::CaughtUp { node, incarnation, epoch },
            Body::Return { incarnation, has_disk, level } => {
                lease::Event::Return { node, incarnation, epoch, has_disk, level }
            }
            Body::FetchMap => {
                if let Some(map) = self.grants.newer_than(epoch) {
                    self.send_as_monitors(node, Body::NewerMap(map));
                }
                return;
            }
            other => panic!("monitors are not told {other:?}"),
        });
    }

    pub(super) fn send_as_monitors(&mut self, to: NodeId, body: Body) {
        let (epoch, from) = (self.grants.map().epoch, Address::Monitors);
        self.send(Address::Node(to), Envelope { epoch, incarnation: 0, from, body });
    }

    pub(super) fn grant(&mut self, event: lease::Event) {
        let mut effects = Vec::new();
        self.grants.step(self.now_us, event, &mut effects);
        for effect in effects {
            match effect {
                lease::Effect::Grant {
                    to,
                    incarnation,
                    sent_us,
                    duration_us,
                    epoch,
                    retention,
                } => {
                    let body =
                        Body::Granted { incarnation, sent_us, duration_us, epoch, retention };
                    self.send_as_monitors(to, body);
                }
                lease::Effect::Prepare { to, map } => self.send_as_monitors(to, Body::Prepare(map)),
                lease::Effect::Inform { to, map } => {
                    self.send_as_monitors(to, Body::Effective(map))
                }
                lease::Effect::Publish(map) => {
                    self.map = Arc::clone(&map);
                    for node in self.machines.keys().copied().collect::<Vec<_>>() {
                        self.send_as_monitors(node, Body::Effective(Arc::clone(&map)));
                    }
                }
                lease::Effect::Answer { result, .. } => {
                    if let Err(error) = result {
                        println!("refused: {error}");
                    }
                }
            }
        }
    }
}
