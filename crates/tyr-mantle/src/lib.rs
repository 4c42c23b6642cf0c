//! Who should have which seat: a policy of whoever runs the cluster decides it, and what bounds
//! policies.
//!
//! ```text
//!   Balancer ── once a tick: what nodes say of themselves ──► moves
//!    ├─ policy      a script in Luau, run for each node: load, when, where, howmuch, mode
//!    │   ├─ script      what it is given and answers, as lines
//!    │   └─ builtin     policies that come with the program
//!    ├─ metrics     what nodes say
//!    └─ bounds      how often a seat may be moved, whatever a policy says
//!   simulation ── nodes, clients and seats from a seed, to try policies with
//! ```
//!
//! The division of labour is that of Mantle (Sevilla et al., SC 2015): policies say when, where and
//! how much; how a seat is moved is the affair of who has seats. All of it is pure: the caller has
//! clock, metadata and log.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use tyr_mantle::{Balancer, NodeMetrics, Policy, SeatMetrics};
//!
//! let script = r#"
//!     function when() return mds[whoami]["load"] > .01 and mds[whoami+1]["load"] < .01 end
//!     function where() targets[whoami+1] = mds[whoami]["load"]/2 end
//! "#;
//! let clock = Arc::new(|| Duration::ZERO);
//! let policy = Policy::compile(script, Duration::from_secs(5), clock)?;
//! let mut balancer = Balancer::new(policy, 10_000_000);
//! let seat = |name: &str| SeatMetrics {
//!     name: name.to_owned(),
//!     kind: "zlog.sequencer".to_owned(),
//!     rate: 500.0,
//!     waiting: 0.0,
//!     since: 60.0,
//! };
//! let busy = NodeMetrics { node: 7, seats: vec![seat("a"), seat("b")], ..Default::default() };
//! let idle = NodeMetrics { node: 8, ..Default::default() };
//! let tick = balancer.tick(0, &[busy, idle]);
//! assert_eq!((tick.moves[0].seat.as_str(), tick.moves[0].to), ("a", 8));
//! # Ok::<(), tyr_types::Error>(())
//! ```

pub mod balancer;
pub mod bounds;
pub mod builtin;
pub mod metrics;
pub mod policy;
pub mod script;
pub mod simulation;

pub use balancer::{Balancer, Move, Tick};
pub use metrics::{NodeMetrics, SeatMetrics};
pub use policy::Policy;
pub use script::{Line, Mode};
