//! A node of a cluster: its parts, put together.
mod identity;
pub use self::identity::Identity;
