//! What users change by the control plane, for auditors: who, what, and what came of it.
//!
//! Written by the node that the user is connected with. Values are not: keys of users are among
//! them, if only as hashes.

use super::hello::Identity;
use super::message::{Answer, Fault, Request};
use crate::monitors::metadata::{Alteration, Transaction};

/// Says what the user changed, or was not let change; nothing of questions.
pub(super) fn describe(request: &Request) -> Option<String> {
    match request {
        Request::Transact(transaction) => Some(paths(transaction)),
        Request::Propose(proposal) => Some(format!("{proposal:?}")),
        Request::Appoint { node, is_monitor: true } => Some(format!("node {node} is a monitor")),
        Request::Appoint { node, is_monitor: false } => {
            Some(format!("node {node} is no monitor any more"))
        }
        Request::Raft(_)
        | Request::Get(_)
        | Request::List { .. }
        | Request::Watch { .. }
        | Request::Status
        | Request::Bootstrap
        | Request::Leader
        | Request::Admit { .. }
        | Request::Report => None,
    }
}

/// Notes it.
pub(super) fn note(identity: &Identity, what: &str, result: &Result<Answer, Fault>) {
    // What nodes do they do for the cluster, or hand on from users of theirs, who note it.
    let Identity::User { name, .. } = identity else { return };
    match result {
        Ok(_) => tracing::info!(target: "audit", user = name, what, "changed"),
        Err(fault) => tracing::warn!(target: "audit", user = name, what, ?fault, "not changed"),
    }
}

fn paths(transaction: &Transaction) -> String {
    let alteration = |it: &Alteration| match it {
        Alteration::Put { path, .. } => format!("put {}", path.as_str()),
        Alteration::Delete { path } => format!("delete {}", path.as_str()),
    };
    transaction.alterations.iter().map(alteration).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitors::control::Proposal;
    use crate::monitors::metadata::Path;

    #[test]
    fn changes_are_described_without_their_values_and_questions_not_at_all() {
        let users = ["users/alice", "users/bob"].map(|text| Path::new(text).unwrap());
        let [alice, bob] = users;
        let transaction = Transaction::new().put(alice.clone(), "secret").delete(bob);
        let text = describe(&Request::Transact(transaction)).unwrap();
        assert_eq!(text, "put users/alice, delete users/bob");
        assert_eq!(describe(&Request::Propose(Proposal::Drain(3))).unwrap(), "Drain(3)");
        assert_eq!(describe(&Request::Get(alice)), None);
    }
}
