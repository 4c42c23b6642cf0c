//! Methods of objects, run by the node that the objects are at: on a store that is the node's own
//! cluster, reached at the node itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tyr::{MethodCall, Tyr};
use tyr_net::access::ROOT;
use tyr_object::{Hosting, SeatKind, describe_change};
use tyr_server::{Answering, MethodHost, Remarker, SeatAnswering, Server, ServerOptions};
use tyr_zlog::SequencerKind;

use crate::balancer::host::BalancerHost;

/// How long the transaction of a call may take: with the 10 s that a call may wait less than a
/// client waits for its answer, so that it hears what became of it.
const TIMEOUT: Duration = Duration::from_secs(15);

/// What a node runs methods by.
struct Host(Hosting);

impl MethodHost for Host {
    fn call(&self, user: &str, keyspace: &str, call: MethodCall) -> Answering {
        let (hosting, user, keyspace) = (self.0.clone(), user.to_owned(), keyspace.to_owned());
        Box::pin(async move { hosting.call(&user, &keyspace, call).await })
    }

    fn ask_seat(
        &self,
        keyspace: &str,
        request: &MethodCall,
        is_authority: bool,
    ) -> Option<SeatAnswering> {
        self.0.ask_seat(keyspace, request, is_authority)
    }

    fn describe_class(
        &self,
        class: &str,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Option<String> {
        describe_change(class, old, new)
    }
}

/// Lets the node run methods. What they do is done by the secret of the cluster, which the node
/// has: whether the user who calls may call is found out before. What is answered
/// runs the balancer of seats, where this node leads it, until it is dropped: before the node
/// stops.
pub fn begin(server: &Server, options: &ServerOptions) -> BalancerHost {
    let (listen, options) = (reachable(server.listen()), options.clone());
    let connect = move || {
        let mut connect = Tyr::connect_options().timeout(TIMEOUT);
        if let Some(secret) = &options.secret {
            connect = connect.user(ROOT, secret.as_str());
        }
        if let Some(tls) = &options.network.tls {
            connect = connect.tls_ca(&tls.authorities).tls_domain(&tls.domain);
            if let Some(own) = &tls.own {
                connect = connect.tls_certificate(&own.certificate, &own.key);
            }
        }
        connect.connect_blocking(listen.to_string())
    };
    let kinds: Vec<Arc<dyn SeatKind>> = vec![Arc::new(SequencerKind::default())];
    let hosting = Hosting::serving(server.node(), kinds, connect);
    server.host_methods_by(Arc::new(Host(hosting.clone())));
    let remarker: Remarker = server.remarker();
    BalancerHost::begin(server.node().0, &hosting, Box::new(move |text| remarker.say(text)))
}

/// Where the machine itself reaches what listens there.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let loopback = |ip: IpAddr| match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    match listen.ip().is_unspecified() {
        true => SocketAddr::new(loopback(listen.ip()), listen.port()),
        false => listen,
    }
}
