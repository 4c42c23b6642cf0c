//! Tests of the cluster map.
