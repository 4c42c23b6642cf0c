//! The control connections that others open to this node: who they are, and who answers them.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::runtime::Handle;
use tyr_types::{Error, ErrorKind, NodeId, Result};

use tyr_control::{Hello, Identity, Sender, Thread};
use tyr_metadata::access::PREFIX;
use tyr_metadata::{Path, reserved};
use tyr_monitors::{Answering, Responder};
use tyr_net::access::{self, User, Users};
use tyr_net::{ControlStream, is_named};

use crate::gate::Gate;
use crate::quota::Quota;

/// Serves the control connections that others open to this node.
pub(crate) struct Control {
    server: Responder,
    users: Arc<Users>,
    /// With TLS: what the certificate of every node names.
    domain: Option<String>,
    runtime: Handle,
}

/// What is known of a caller before it says anything.
#[derive(Clone, Copy)]
struct Origin {
    from: SocketAddr,
    /// Whether its certificate, if there are any, is a node's.
    may_be_node: bool,
}

impl Control {
    /// Serves them on this thread; who says that it is a node shows a certificate for the domain,
    /// if there is one.
    pub fn new(
        answering: Answering,
        users: Arc<Users>,
        domain: Option<String>,
        control: &Thread,
    ) -> Arc<Self> {
        // Who is there is asked for each connection, with where it comes from.
        let nobody = Arc::new(|_: &Hello| Err(strange()));
        let server = Responder::new(answering, nobody);
        Arc::new(Self { server, users, domain, runtime: control.handle.clone() })
    }

    /// Serves one more.
    pub fn accept(&self, control: ControlStream) {
        let is_named =
            |certificate| self.domain.as_ref().is_none_or(|domain| is_named(certificate, domain));
        let may_be_node = match &control.certificate {
            Some(certificate) => is_named(certificate),
            None => self.domain.is_none(),
        };
        let (users, origin) = (Arc::clone(&self.users), Origin { from: control.from, may_be_node });
        let server = self.server.admitting(Arc::new(move |hello| identify(&users, origin, hello)));
        self.runtime.spawn(async move {
            let ControlStream { stream, place, .. } = control;
            // Nobody need be told how it ended.
            if let Ok(stream) = stream.open() {
                let _ = server.accept(stream).await;
            }
            drop(place);
        });
    }
}

/// Who is there. Who is not who it says is noted, by the name that it gives.
fn identify(users: &Users, origin: Origin, hello: &Hello) -> Result<Identity> {
    let Origin { from, may_be_node } = origin;
    let token = hello.token.as_bytes();
    let (user, identified) = match &hello.sender {
        Sender::Node(node) if !may_be_node => (format!("node {node}"), Err(uncertified(*node))),
        Sender::Node(node) => {
            let identified = match users.is_node(token) {
                true => Ok(Identity::Node(NodeId(*node))),
                false => Err(Error::new(
                    ErrorKind::PermissionDenied,
                    format!("node {node} does not show this cluster's secret"),
                )),
            };
            (format!("node {node}"), identified)
        }
        Sender::User(name) => {
            let identified = users.identify(token).map(|caller| Identity::User {
                name: caller.name().to_owned(),
                is_administrator: caller.is_administrator(),
            });
            (access::printable(name), identified)
        }
    };
    if let Err(error) = &identified {
        tracing::warn!(target: "audit", user, %from, %error, "a control connection was refused");
    }
    identified
}

/// What is said of changed entries for auditors, and in the cluster log: of users, who gets or
/// loses what; of quotas, what they are; of classes, what whoever runs methods says.
pub(crate) fn describe(
    path: &Path,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    gate: &Gate,
) -> Option<String> {
    if let Some(keyspace) = Quota::keyspace(path.as_str()) {
        let name = gate.name_of(keyspace);
        let quota = new.map(Quota::from_bytes).transpose().ok()?;
        return Some(match quota.filter(|quota| !quota.is_unlimited()) {
            Some(quota) => format!("quota of keyspace {name}: {quota}"),
            None => format!("quota of keyspace {name}: taken away"),
        });
    }
    if let Some(prefix) = path.as_str().strip_prefix(PREFIX) {
        let rights = String::from_utf8_lossy(new.unwrap_or_default()).trim().replace('\n', ", ");
        return Some(match new {
            Some(_) => format!("rights on service metadata under {prefix}: {rights}"),
            None => format!("rights on service metadata under {prefix}: taken away"),
        });
    }
    if let (Some(node), None) = (path.as_str().strip_prefix(reserved::NODES), new) {
        return Some(format!("node {node} was forgotten"));
    }
    if let Some(class) = reserved::class(path.as_str()) {
        return gate.methods.host()?.describe_class(class, old, new);
    }
    let name = path.as_str().strip_prefix(reserved::USERS)?;
    let read = |bytes: Option<&[u8]>| bytes.map(User::from_bytes).transpose().ok();
    let (old, new) = (read(old)?, read(new)?);
    let acts = User::difference(old.as_ref(), new.as_ref(), |keyspace| {
        format!("keyspace {}", gate.name_of(keyspace))
    });
    Some(format!("user {name}: {acts}"))
}

fn strange() -> Error {
    Error::new(ErrorKind::PermissionDenied, "nobody said who is there")
}

fn uncertified(node: u16) -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "node {node} shows no certificate for the cluster's domain; give each node one that \
             names tls_domain too, beside the node itself"
        ),
    )
}

#[cfg(test)]
mod tests {
    use tyr_metadata::access::ANYBODY;

    use super::*;

    #[test]
    fn who_has_no_name_is_called_alike_by_those_who_let_in_and_those_who_note() {
        let caller = Users::unchecked().identify(b"").unwrap();
        assert_eq!(caller.name(), ANYBODY);
    }
}
