//! Methods of objects, at the nodes of a cluster.

use tyr_types::{MethodAnswer, MethodCall, NodeId, Result, SeatAnswer};

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

    /// Asks a seat at a node, whether or not that has it; `None` where nodes have none.
    pub async fn ask_seat_at(
        &self,
        node: NodeId,
        request: MethodCall,
    ) -> Result<Option<SeatAnswer>> {
        let answer = match self {
            Self::Embedded(_) => Ok(None),
            Self::Remote(space) => space.client().ask_seat_at(node, request).await,
        };
        answer.map_err(|error| self.named(error))
    }

    /// Asks a seat at the node that has it; `None` where nodes have none.
    pub async fn ask_seat(&self, request: MethodCall) -> Result<Option<MethodAnswer>> {
        let answer = match self {
            Self::Embedded(_) => Ok(None),
            Self::Remote(space) => space.client().ask_seat(request).await,
        };
        answer.map_err(|error| self.named(error))
    }
}
