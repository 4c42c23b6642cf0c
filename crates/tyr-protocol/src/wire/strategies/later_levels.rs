//! Any message that a feature level brought which came later, but those that have their own place.

use proptest::option;
use proptest::prelude::*;

use super::words::{number_u64, timestamp};
use super::{key_lease, key_watch, scan, upload};
use crate::message::Body;

/// One of them.
pub fn message() -> BoxedStrategy<Body> {
    let moment = (number_u64(), option::of((number_u64(), timestamp())))
        .prop_map(|(read, placed)| Body::Moment { read, placed });
    let watch = key_watch::message().prop_map(Body::KeyWatch);
    let lease = key_lease::message().prop_map(Body::KeyLease);
    let copy = upload::copy_message().prop_map(Body::Upload);
    prop_oneof![scan::message(), lease, moment, watch, copy].boxed()
}
