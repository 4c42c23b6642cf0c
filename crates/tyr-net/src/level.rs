//! The feature level that this process speaks.
//!
//! That is the program's [`LEVEL`]. Builds for tests can be told another one, to meet programs of
//! other releases: `TYR_LEVEL` says which, up to [`wire::LEVEL_KNOWN`](tyr_protocol::wire).

use tyr_protocol::wire::LEVEL;

/// The highest feature level that this process speaks.
#[cfg(not(feature = "next-level"))]
pub fn spoken() -> u8 {
    LEVEL
}

/// The highest feature level that this process speaks, by `TYR_LEVEL`.
#[cfg(feature = "next-level")]
pub fn spoken() -> u8 {
    use std::sync::OnceLock;
    use tyr_protocol::wire::{LEVEL_KNOWN, LEVEL_MIN};
    static SPOKEN: OnceLock<u8> = OnceLock::new();
    *SPOKEN.get_or_init(|| {
        let said = std::env::var("TYR_LEVEL").ok().and_then(|text| text.parse().ok());
        said.unwrap_or(LEVEL).clamp(LEVEL_MIN, LEVEL_KNOWN)
    })
}
