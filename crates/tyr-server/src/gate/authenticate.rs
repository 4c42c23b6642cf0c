//! Who may connect: nodes by the cluster's secret and, with TLS, by their certificates; clients by
//! the keys of their users.

use tyr_net::access;
use tyr_net::{Authenticate, Introduction, Principal, is_named};
use tyr_protocol::message::Address;
use tyr_types::{Error, ErrorKind, NodeId, Result};

use super::Gate;

impl Gate {
    /// Whether a caller's certificate names the node that it says it is, where nodes show any.
    fn is_certified(&self, introduction: &Introduction<'_>, node: NodeId) -> bool {
        let Some(domain) = &self.domain else { return true };
        let name = format!("node-{}.{domain}", node.0);
        introduction.certificate.is_some_and(|certificate| is_named(certificate, &name))
    }
}

impl Authenticate for Gate {
    fn authenticate(&self, introduction: &Introduction<'_>) -> Result<Principal> {
        let token = &introduction.hello.token;
        match introduction.hello.sender {
            Address::Node(node) => {
                // Whom we called is known by its certificate, if there are any, and by its address.
                let is_known = !introduction.is_caller
                    || self.users.is_node(token) && self.is_certified(introduction, node);
                if !is_known {
                    let (error, from) = (strange_node(node), introduction.from);
                    tracing::warn!(
                        target: "audit", node = node.0, %from, %error, "a node was not let in"
                    );
                    return Err(error);
                }
                if let Some(map) = &*self.map.read() {
                    map.check_program(introduction.hello.level)?;
                }
                Ok(Principal::new(node))
            }
            Address::Client(_) => {
                let identified = self.users.identify(token);
                let from = introduction.from;
                if let Err(error) = &identified {
                    let user = access::claimed(token);
                    tracing::warn!(target: "audit", user, %from, %error, "a client was not let in");
                }
                identified.map(Principal::new)
            }
            Address::Monitors => {
                Err(Error::new(ErrorKind::PermissionDenied, "the monitors speak through nodes"))
            }
        }
    }
}

fn strange_node(node: NodeId) -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "node {} does not show this cluster's secret, or no certificate with its name; give \
             all nodes the same secret file, and each a certificate of its own",
            node.0
        ),
    )
}
