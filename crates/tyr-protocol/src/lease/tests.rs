//! Tests of leases.
