//! Leases: who holds a key exclusively holds it alone (K1, K3).

use std::collections::BTreeMap;

use tyr_types::BlobName;

use super::history::{History, Holding};

/// Checks that no two held one key at one time, but shared. Each counts for as long as its holder
/// took itself for it.
///
/// # Errors
/// Two that did.
pub fn exclusive_leases_are_held_by_one(history: &History) -> Result<(), String> {
    let mut by_key: BTreeMap<&BlobName, Vec<&Holding>> = BTreeMap::new();
    for holding in &history.holdings {
        by_key.entry(&holding.blob).or_default().push(holding);
    }
    for (blob, mut held) in by_key {
        held.sort_by_key(|holding| holding.from_us);
        for (place, first) in held.iter().enumerate() {
            let mut beside = held[place + 1..].iter().take_while(|it| it.from_us < first.until_us);
            if let Some(second) = beside.find(|it| !it.mode.is_beside(first.mode)) {
                let [one, two] = [first, second]
                    .map(|it| format!("client {} ({}..{} us)", it.client, it.from_us, it.until_us));
                return Err(format!("\"{}\" was held by {one} and {two} at once", blob.key));
            }
        }
    }
    Ok(())
}
