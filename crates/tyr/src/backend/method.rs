//! Methods of objects, at the nodes of a cluster.

use tyr_types::{MethodAnswer, MethodCall, Result};

use super::Space;

impl Space {
    /// Has a method run beside a blob by the node that is its authority; `None` where that is for
    /// the caller to do.
    pub async fn call_method(&self, call: MethodCall) -> Result<Option<MethodAnswer>> {
        let answer = match self {
            Self::Embedded(_) => Ok(None),
            Self::Remote(space) => space.client().call_method(call).await,
        };
        answer.map_err(|error| self.named(error))
    }
}
