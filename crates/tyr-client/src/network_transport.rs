//! A client's way to its cluster: messages over the network, questions to the monitors over
//! control connections, and where the nodes are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tyr_protocol::map::{Change, ClusterMap};
use tyr_protocol::message::{Address, Envelope};
use tyr_types::{Epoch, Error, NodeId, Result};

use super::Transport;
use super::answer::closed;
use super::control::{Asked, CalledAt, Control, UsageOfNodes};
use super::presence::Presence;
use tyr_control::call::{CallKind, Called};
use tyr_control::status::Bootstrap;
use tyr_control::{Answer, CallError, MetadataClient, NodeRecord, Request, Thread};
use tyr_metadata::KeyChange;
use tyr_net::{Network, NodeAddresses};

/// While it is not known where the nodes are, it is asked again after so long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A client without any node to talk to asks after so long where they are: all may have moved.
const LOST_AFTER: Duration = Duration::from_secs(2);

const _: () =
    assert!(LOOK_AGAIN.as_millis() < LOST_AFTER.as_millis(), "that it is alone is seen in time");

/// A task that ends when nobody waits for it.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The way to a cluster, by a network.
pub(super) struct NetworkTransport {
    network: Network,
    monitors: MetadataClient,
    handle: Handle,
    /// Where control connections and what follows the cluster run.
    thread: Mutex<Option<Thread>>,
    /// Of the newest map that the client goes by.
    epoch: watch::Sender<Epoch>,
    /// Where the nodes are, as far as known.
    places: Arc<Mutex<BTreeMap<NodeId, NodeAddresses>>>,
}

impl NetworkTransport {
    /// The way by this network, which asks the monitors on this thread.
    pub fn new(
        network: Network,
        monitors: MetadataClient,
        thread: Thread,
        places: BTreeMap<NodeId, NodeAddresses>,
    ) -> Arc<Self> {
        let places = Arc::new(Mutex::new(places));
        let placing = Arc::clone(&places);
        let (epoch, newest) = watch::channel(Epoch(0));
        let handle = thread.handle.clone();
        let asking = monitors.clone();
        let look = move || {
            let monitors = asking.clone();
            async move { monitors.bootstrap().await }
        };
        let (following, connected) = (network.clone(), network.clone());
        handle.spawn(follow(
            newest,
            move || connected.statistics().nodes == 0,
            look,
            move |nodes| {
                placing.lock().clone_from(nodes);
                following.set_nodes(nodes);
            },
        ));
        let thread = Mutex::new(Some(thread));
        Arc::new(Self { network, monitors, handle, thread, epoch, places })
    }

    /// Has something asked on the control thread; what nobody waits for any more ends there.
    fn run<T: Send + 'static>(
        &self,
        asking: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Asked<T> {
        let mut asked = AbortOnDrop(self.handle.spawn(asking));
        Box::pin(async move { (&mut asked.0).await.unwrap_or_else(|_| Err(closed())) })
    }
}

impl Transport for NetworkTransport {
    fn send(&self, to: NodeId, envelope: Envelope) {
        // What is lost is sent again (F6); the network counts it.
        self.network.send(Address::Node(to), &envelope);
    }

    fn flush(&self) {
        self.network.flush();
    }

    fn learn(&self, map: &Arc<ClusterMap>) {
        let before = self.epoch.send_replace(map.epoch);
        debug_assert!(before <= map.epoch, "maps are learned in their order");
    }
}

impl Control for NetworkTransport {
    fn newest(&self) -> Asked<Bootstrap> {
        let monitors = self.monitors.clone();
        self.run(async move { monitors.newest().await })
    }

    fn propose(&self, change: Change) -> Asked<Epoch> {
        let monitors = self.monitors.clone();
        self.run(async move { monitors.propose(change).await })
    }

    fn ask(&self, request: Request) -> Asked<Answer> {
        let monitors = self.monitors.clone();
        self.run(async move { monitors.ask(request).await })
    }

    fn usage_of(&self, nodes: BTreeMap<u16, NodeRecord>) -> Asked<UsageOfNodes> {
        let monitors = self.monitors.clone();
        self.run(async move { Ok(monitors.usage_of(nodes).await) })
    }

    fn call_at(
        &self,
        node: NodeId,
        kind: CallKind,
        called: Called,
        pause: Duration,
        patience: Duration,
    ) -> Asked<CalledAt> {
        let (monitors, places) = (self.monitors.clone(), Arc::clone(&self.places));
        self.run(async move {
            if !pause.is_zero() {
                // None is up to a millisecond, too.
                tokio::time::sleep(pause).await;
            }
            let address = places.lock().get(&node).and_then(|it| it.addresses.first().cloned());
            let Some(address) = address else {
                let text = format!("where node {} is has not been heard yet", node.0);
                return Ok(Err(CallError::NotSent(text)));
            };
            Ok(monitors.call_at(&address, kind, called, patience).await)
        })
    }

    fn changes(&self, prefix: String, after: u64) -> Asked<(Vec<KeyChange>, u64)> {
        let monitors = self.monitors.clone();
        let mut watch = monitors.watch(prefix, after);
        self.run(async move {
            loop {
                // Comes from time to time even if nothing has changed.
                let (changes, revision) = watch.next().await?;
                if !changes.is_empty() {
                    return Ok((changes, revision));
                }
            }
        })
    }

    fn presence(&self, ttl: Duration) -> Asked<Presence> {
        let monitors = self.monitors.clone();
        self.run(async move { Presence::begin(monitors, ttl).await })
    }

    fn close(&self) {
        self.network.close();
        if let Some(mut thread) = self.thread.lock().take() {
            thread.close();
        }
    }
}

/// Tells the network where the nodes are, whenever there is a newer map, and when nobody is
/// reached any more.
///
/// A monitor that has just started again knows of few nodes, or of none, before it has heard the
/// others: what it says of an older map than the client's does not count.
async fn follow<Looking: Future<Output = Result<Bootstrap>>>(
    mut newest: watch::Receiver<Epoch>,
    is_lost: impl Fn() -> bool,
    look: impl Fn() -> Looking,
    place: impl Fn(&BTreeMap<NodeId, NodeAddresses>),
) {
    loop {
        match tokio::time::timeout(LOST_AFTER, newest.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) if is_lost() => {}
            Err(_) => continue,
        }
        let mut is_said = false;
        while let Err(error) =
            look().await.and_then(|seen| place_by(&seen, *newest.borrow(), &place))
        {
            if !std::mem::replace(&mut is_said, true) {
                tracing::warn!(%error, "where the nodes are is not known yet; it is asked again");
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// Tells where nodes are by what was seen, if it is as new as `epoch`.
fn place_by(
    seen: &Bootstrap,
    epoch: Epoch,
    place: impl Fn(&BTreeMap<NodeId, NodeAddresses>),
) -> Result<()> {
    let known = seen.cluster_map()?.epoch;
    if known < epoch {
        return Err(Error::unavailable(format!(
            "a monitor knows the map of epoch {} only, the client that of {}",
            known.0, epoch.0
        )));
    }
    place(&addresses(seen));
    Ok(())
}

/// Where the nodes are.
pub(super) fn addresses(bootstrap: &Bootstrap) -> BTreeMap<NodeId, NodeAddresses> {
    let of_node = |(node, record): (&u16, &tyr_control::NodeRecord)| {
        let addresses = record.addresses.clone();
        (NodeId(*node), NodeAddresses { addresses, tls_name: None })
    };
    bootstrap.nodes.iter().map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tyr_protocol::map::Newcomer;
    use tyr_protocol::wire::{Outgoing, encode_map};
    use tyr_types::Bytes;

    use super::*;

    /// What a monitor says that knows the map of this epoch, and one node.
    fn seen(epoch: u32) -> Bootstrap {
        let formed = ClusterMap::form(&[Newcomer::default()]).unwrap();
        let mut outgoing = Outgoing::new();
        encode_map(&formed.at(Epoch(epoch)), &mut outgoing);
        let map = Some(outgoing.take_bytes());
        let nodes = BTreeMap::from([(0, NodeRecord::at("10.0.0.1:7400"))]);
        Bootstrap { cluster: Some(1), map, nodes, leader: None, revision: 1 }
    }

    /// What one says that has just started, and not heard the others.
    fn nothing() -> Bootstrap {
        let nodes = BTreeMap::new();
        Bootstrap { cluster: None, map: None, nodes, leader: None, revision: 0 }
    }

    /// Follows with these answers of the monitors until all are used up; answers how often the
    /// network was told of how many nodes.
    async fn followed(
        epochs: &[u32],
        is_lost: bool,
        answers: Vec<Result<Bootstrap>>,
    ) -> Vec<usize> {
        let (epoch, newest) = watch::channel(Epoch(0));
        let answers = Mutex::new(VecDeque::from(answers));
        let placed = Mutex::new(Vec::new());
        let look = || {
            let answer = answers.lock().pop_front();
            async move {
                match answer {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            }
        };
        for known in epochs {
            epoch.send_replace(Epoch(*known));
        }
        let following = follow(newest, || is_lost, look, |nodes| placed.lock().push(nodes.len()));
        let _ = tokio::time::timeout(Duration::from_secs(10), following).await;
        assert!(answers.lock().is_empty());
        placed.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_monitor_that_knows_less_than_the_client_is_not_believed() {
        let refused = Err(Error::unavailable("nobody answers"));
        let answers = vec![Ok(nothing()), refused, Ok(seen(6)), Ok(seen(7))];
        assert_eq!(followed(&[5, 7], false, answers).await, [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reaches_nobody_asks_again_and_who_does_not_is_quiet() {
        assert_eq!(followed(&[], true, vec![Ok(seen(1)), Ok(seen(1))]).await, [1, 1]);
        assert_eq!(followed(&[], false, vec![]).await, [] as [usize; 0]);
    }

    #[test]
    fn bytes_of_a_map_that_is_none_place_nobody() {
        let broken = Bootstrap { map: Some(Bytes::from_static(b"x")), ..seen(1) };
        assert!(place_by(&broken, Epoch(0), |_| panic!("it tells of nobody")).is_err());
    }
}
