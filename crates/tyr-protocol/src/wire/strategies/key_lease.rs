//! Any message about a lease of a key.

use proptest::collection::vec;
use proptest::prelude::*;
use tyr_types::LeaseMode;

use super::words::{blob_name, number_u64};
use crate::key_lease::{Message, Wish};

/// One of them.
pub fn message() -> BoxedStrategy<Message> {
    let mode = || prop_oneof![Just(LeaseMode::Shared), Just(LeaseMode::Exclusive)];
    let wish = || prop_oneof![Just(Wish::Wait), Just(Wish::Try), Just(Wish::Keep)];
    let asked = || (number_u64(), blob_name(), mode(), number_u64(), number_u64(), wish());
    let leases = || vec(number_u64(), 0..4);
    prop_oneof![
        asked().prop_map(|(lease, blob, mode, duration_us, sent_us, wish)| {
            Message::Ask { lease, blob, mode, duration_us, sent_us, wish }
        }),
        asked().prop_map(|(lease, group, mode, duration_us, sent_us, wish)| {
            Message::AskGroup { lease, group, mode, duration_us, sent_us, wish }
        }),
        (number_u64(), leases()).prop_map(|(sent_us, leases)| Message::Renew { sent_us, leases }),
        number_u64().prop_map(|lease| Message::GiveBack { lease }),
        (number_u64(), number_u64())
            .prop_map(|(lease, sent_us)| Message::Granted { lease, sent_us }),
        number_u64().prop_map(|lease| Message::Waits { lease }),
        (number_u64(), leases(), leases()).prop_map(|(sent_us, held, unknown)| Message::Renewed {
            sent_us,
            held,
            unknown
        }),
        number_u64().prop_map(|lease| Message::Recall { lease }),
    ]
    .boxed()
}
