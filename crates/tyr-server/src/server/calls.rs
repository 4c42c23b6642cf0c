//! Calls of methods of objects that come to this node: who may have them run here, and where that
//! is done.
//!
//! ```text
//!   control connection ──► may this user call? is the object here? ──► the host of methods
//! ```
//!
//! It must not know what a method is: whoever started the node gives it something that runs them.

use std::sync::Arc;

use tyr_types::{FailureCause, MethodCall, MethodFailure, Result};

use crate::gate::Gate;
use tyr_control::Identity;
use tyr_control::call::{CallAnswer, Called};
use tyr_monitors::{RunCall, Running};
use tyr_net::access::{ROOT, Users};

/// Where calls come in.
struct Calls {
    gate: Arc<Gate>,
    users: Arc<Users>,
}

/// What has calls run that come to a node.
pub(super) fn runner(gate: &Arc<Gate>, users: &Arc<Users>) -> RunCall {
    let calls = Calls { gate: Arc::clone(gate), users: Arc::clone(users) };
    Arc::new(move |identity, called| calls.run(identity, called))
}

impl Calls {
    /// Has a call run, if that is to be.
    fn run(&self, identity: &Identity, called: Called) -> Running {
        let Some(place) = self.gate.methods.place() else {
            // The caller asks again, and by then another node is the authority, or this one again.
            return at_once(CallAnswer::Elsewhere(0));
        };
        let Some(host) = self.gate.methods.host() else { return at_once(CallAnswer::Unhosted) };
        match self.admit(identity, called) {
            Ok(Ok((user, call))) => {
                self.gate.methods.note();
                let keyspace = self.gate.name_of(call.blob.keyspace);
                let (gate, class, method) =
                    (Arc::clone(&self.gate), call.class.clone(), call.method.clone());
                let answering = host.call(&user, &keyspace, call);
                Box::pin(async move {
                    let answer = answering.await;
                    if let Err(MethodFailure { cause: FailureCause::Limit { name }, .. }) = &answer
                        && let Some(remarks) = gate.remarks()
                    {
                        remarks.say_limit(&class, &method, name, &user);
                    }
                    drop(place);
                    answer.into()
                })
            }
            Ok(Err(elsewhere)) => at_once(elsewhere),
            Err(error) => {
                let (kind, text) = (error.kind(), error.to_string());
                let failure = MethodFailure { cause: FailureCause::Store, kind, text };
                at_once(Err(failure).into())
            }
        }
    }

    /// Who calls, and what; or that it is to be asked of another node.
    fn admit(
        &self,
        identity: &Identity,
        called: Called,
    ) -> Result<std::result::Result<(String, MethodCall), CallAnswer>> {
        let name = match identity {
            Identity::Node(_) => ROOT,
            Identity::User { name, .. } => name,
        };
        let call = called.read()?;
        let caller = self.users.named(name);
        let caller = caller.inspect_err(|error| self.gate.refused.note_permission(name, error))?;
        self.gate.permit_call(&caller, &call.blob)?;
        Ok(match self.gate.authority(&call.blob)? {
            Ok(()) => Ok((name.to_owned(), call)),
            Err(epoch) => Err(CallAnswer::Elsewhere(epoch.0)),
        })
    }
}

fn at_once(answer: CallAnswer) -> Running {
    Box::pin(std::future::ready(answer))
}
