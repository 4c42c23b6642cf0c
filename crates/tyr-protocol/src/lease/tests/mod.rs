//! Tests of leases.

mod grants;
mod holder;
mod levels;
mod safety;
mod world;
