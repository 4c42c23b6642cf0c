//! Tests of leases.

mod grants;
mod holder;
mod safety;
mod world;
