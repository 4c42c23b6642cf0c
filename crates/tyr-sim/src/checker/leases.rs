//! Leases: who holds a key or a group exclusively holds it alone (K1, K3, K7).

use super::history::{History, Holding};

/// Checks that no two held one key at one time, itself or with its group, but shared. Each counts
/// for as long as its holder took itself for it.
///
/// # Errors
/// Two that did.
pub fn exclusive_leases_are_held_by_one(history: &History) -> Result<(), String> {
    let mut held: Vec<&Holding> = history.holdings.iter().collect();
    held.sort_by_key(|holding| holding.from_us);
    for (place, first) in held.iter().enumerate() {
        let is_met = |it: &&&Holding| it.of.meets(&first.of) && !it.mode.is_beside(first.mode);
        let mut beside = held[place + 1..].iter().take_while(|it| it.from_us < first.until_us);
        if let Some(second) = beside.find(is_met) {
            let [one, two] = [first, second].map(|it| {
                let Holding { client, of, from_us, until_us, .. } = it;
                format!("{of} by client {client} ({from_us}..{until_us} us)")
            });
            return Err(format!("{one} and {two} were held at once"));
        }
    }
    Ok(())
}
