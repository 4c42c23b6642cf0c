//! The control connections that others open to this node: who they are, and who answers them.

use std::sync::Arc;

use tokio::runtime::Handle;
use tyr_types::{Error, ErrorKind, NodeId};

use crate::monitors::control::{self, Answering};
use crate::router::access::Users;
use crate::router::network::{ControlStream, is_named};

/// Serves the control connections that others open to this node.
pub(crate) struct Control {
    server: control::Server,
    /// For callers whose certificate is not a node's.
    server_of_users: control::Server,
    /// With TLS: what the certificate of every node names.
    domain: Option<String>,
    runtime: Handle,
}

impl Control {
    /// Serves them on this runtime; who says that it is a node shows a certificate for the domain,
    /// if there is one.
    pub fn new(
        answering: Answering,
        users: Arc<Users>,
        domain: Option<String>,
        runtime: Handle,
    ) -> Arc<Self> {
        let authenticate = move |hello: &control::Hello| match &hello.sender {
            control::Sender::Node(node) => match users.is_node(hello.token.as_bytes()) {
                true => Ok(control::Identity::Node(NodeId(*node))),
                false => Err(Error::new(
                    ErrorKind::PermissionDenied,
                    format!("node {node} does not show this cluster's secret"),
                )),
            },
            control::Sender::User(_) => {
                let identified = users.identify(hello.token.as_bytes());
                if let Err(error) = &identified {
                    tracing::warn!(target: "audit", %error, "a control connection was refused");
                }
                identified.map(|caller| control::Identity::User {
                    name: caller.name().to_owned(),
                    is_administrator: caller.is_administrator(),
                })
            }
        };
        let of_all: control::Authenticate = Arc::new(authenticate);
        let anybody = Arc::clone(&of_all);
        let of_users = move |hello: &control::Hello| match &hello.sender {
            control::Sender::Node(node) => {
                let error = uncertified(*node);
                tracing::warn!(target: "audit", %error, "a control connection was refused");
                Err(error)
            }
            control::Sender::User(_) => anybody(hello),
        };
        let server = control::Server::new(answering.clone(), of_all);
        let server_of_users = control::Server::new(answering, Arc::new(of_users));
        Arc::new(Self { server, server_of_users, domain, runtime })
    }

    /// Serves one more.
    pub fn accept(&self, control: ControlStream) {
        let is_named =
            |certificate| self.domain.as_ref().is_none_or(|domain| is_named(certificate, domain));
        let may_be_node = match &control.certificate {
            Some(certificate) => is_named(certificate),
            None => self.domain.is_none(),
        };
        let server = if may_be_node { &self.server } else { &self.server_of_users }.clone();
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

fn uncertified(node: u16) -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "node {node} shows no certificate for the cluster's domain; give each node one that \
             names tls_domain too, beside the node itself"
        ),
    )
}
