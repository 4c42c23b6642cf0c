//! Calls of methods of objects that come to this node: who may have them run here (O9), and where
//! that is done.
//!
//! ```text
//!   control connection ──► may this user call? is the object here? ──► the host of methods
//!                          of a seat the host says whether it is here (S4)
//! ```
//!
//! It must not know what a method is: whoever started the node gives it something that runs them.

use std::sync::Arc;

use tyr_types::{Epoch, FailureCause, MethodCall, MethodFailure, Result};

use crate::gate::Gate;
use tyr_control::Identity;
use tyr_control::call::{CallAnswer, CallKind, Called};
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
    Arc::new(move |identity, kind, called| calls.run(identity, kind, called))
}

impl Calls {
    /// Has a call run, if that is to be.
    fn run(&self, identity: &Identity, kind: CallKind, called: Called) -> Running {
        let Some(place) = self.gate.methods.place() else {
            // The caller asks again, and by then another node is the authority, or this one again.
            return at_once(CallAnswer::Elsewhere(0));
        };
        let Some(host) = self.gate.methods.host() else { return at_once(CallAnswer::Unhosted) };
        let Admitted { user, call, epoch } = match self.admit(identity, called) {
            Ok(admitted) => admitted,
            Err(error) => {
                let (kind, text) = (error.kind(), error.to_string());
                let failure = MethodFailure { cause: FailureCause::Store, kind, text };
                return at_once(Err(failure).into());
            }
        };
        let keyspace = self.gate.name_of(call.blob.keyspace);
        if kind == CallKind::Seat
            && let Some(answering) = host.ask_seat(&keyspace, &call, epoch.is_none())
        {
            self.gate.methods.note();
            return Box::pin(async move {
                let answer = answering.await;
                drop(place);
                answer.into()
            });
        }
        if let Some(epoch) = epoch {
            return at_once(CallAnswer::Elsewhere(epoch.0));
        }
        self.gate.methods.note();
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

    /// Who calls, and what, and whether it is to be asked of another node.
    fn admit(&self, identity: &Identity, called: Called) -> Result<Admitted> {
        let name = match identity {
            Identity::Node(_) => ROOT,
            Identity::User { name, .. } => name,
        };
        let call = called.read()?;
        let caller = self.users.named(name);
        let caller = caller.inspect_err(|error| self.gate.refused.note_permission(name, error))?;
        self.gate.permit_call(&caller, &call.blob)?;
        let epoch = self.gate.authority(&call.blob)?.err();
        Ok(Admitted { user: name.to_owned(), call, epoch })
    }
}

/// A call of somebody who may call.
struct Admitted {
    user: String,
    call: MethodCall,
    /// Of the map by which another node is the authority.
    epoch: Option<Epoch>,
}

fn at_once(answer: CallAnswer) -> Running {
    Box::pin(std::future::ready(answer))
}
