//! Tests of leases.

mod grants;
mod holder;
mod levels;
mod loss;
mod safety;
mod world;
