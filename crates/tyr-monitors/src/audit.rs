//! What users change by the control plane, for auditors: who, what, and what came of it.
//!
//! Written by the node that the user is connected with. Values are not: keys of users are among
//! them, if only as hashes.

use tyr_control::hello::Identity;
use tyr_control::message::{Answer, Fault, Request};
use tyr_metadata::{Alteration, Expected, Path, Transaction, reserved};
use tyr_types::NodeId;

/// The entries of which a description says what is done to them, in place of their keys alone:
/// users.
pub(super) fn described(request: &Request) -> impl Iterator<Item = &Path> {
    let alterations = match request {
        Request::Transact(transaction) => &transaction.alterations[..],
        _ => &[],
    };
    let paths = alterations.iter().map(Alteration::path);
    paths.filter(|path| path.as_str().starts_with(reserved::USERS))
}

/// Whether the entry is only made, and not changed if it is there.
pub(super) fn is_to_be_new(request: &Request, path: &Path) -> bool {
    let Request::Transact(Transaction { conditions, .. }) = request else { return false };
    conditions.iter().any(|it| it.path == *path && it.expected == Expected::Absent)
}

/// Says what the user changed, or was not let change; nothing of questions. `of_entry` says it of
/// an entry and its new value, if it knows what that is.
pub(super) fn describe(
    request: &Request,
    of_entry: impl Fn(&Path, Option<&[u8]>) -> Option<String>,
) -> Option<String> {
    match request {
        Request::Transact(transaction) => Some(alterations(transaction, of_entry)),
        Request::Propose(proposal) => Some(format!("{proposal:?}")),
        Request::Appoint { node, is_monitor } => Some(appointed(NodeId(*node), *is_monitor)),
        Request::Raft(_)
        | Request::Get(_)
        | Request::List { .. }
        | Request::Watch { .. }
        | Request::Status
        | Request::Bootstrap
        | Request::Leader
        | Request::Admit { .. }
        | Request::Report
        | Request::Usage
        | Request::Remark(_)
        | Request::Presence(_)
        | Request::Call(_)
        | Request::Seat(_) => None,
    }
}

/// That a node became a monitor, or is one no more.
pub(super) fn appointed(node: NodeId, is_monitor: bool) -> String {
    let now = if is_monitor { "a monitor" } else { "no monitor any more" };
    format!("node {} is {now}", node.0)
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

fn alterations(
    transaction: &Transaction,
    of_entry: impl Fn(&Path, Option<&[u8]>) -> Option<String>,
) -> String {
    let alteration = |it: &Alteration| match it {
        Alteration::Put { path, value } => {
            of_entry(path, Some(value)).unwrap_or_else(|| format!("put {}", path.as_str()))
        }
        Alteration::Delete { path } => {
            of_entry(path, None).unwrap_or_else(|| format!("delete {}", path.as_str()))
        }
    };
    transaction.alterations.iter().map(alteration).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tyr_control::Proposal;

    #[test]
    fn changes_are_described_without_their_values_and_questions_not_at_all() {
        let users = ["users/alice", "users/bob"].map(|text| Path::new(text).unwrap());
        let [alice, bob] = users;
        let transaction = Transaction::new().put(alice.clone(), "secret").delete(bob);
        let request = Request::Transact(transaction.put(Path::new("service/a").unwrap(), "1"));
        assert!(!is_to_be_new(&request, &alice));
        let add = Transaction::new().when(alice.clone(), Expected::Absent);
        assert!(is_to_be_new(&Request::Transact(add), &alice));
        let unknown = |_: &Path, _: Option<&[u8]>| None;
        let text = describe(&request, unknown).unwrap();
        assert_eq!(text, "put users/alice, delete users/bob, put service/a");
        let paths: Vec<&str> = described(&request).map(Path::as_str).collect();
        assert_eq!(paths, ["users/alice", "users/bob"]);
        let text = describe(&request, |path, new| {
            new.is_none().then(|| format!("{} is removed", path.as_str()))
        });
        assert_eq!(text.unwrap(), "put users/alice, users/bob is removed, put service/a");
        assert_eq!(describe(&Request::Propose(Proposal::Drain(3)), unknown).unwrap(), "Drain(3)");
        assert_eq!(describe(&Request::Get(alice), unknown), None);
    }
}
