//! Policies that come with the program.

/// Policies by name, each with its script.
pub const BUILT_IN: [(&str, &str); 6] = [
    ("greedy_spill", include_str!("policies/greedy_spill.luau")),
    ("greedy_spill_even", include_str!("policies/greedy_spill_even.luau")),
    ("fill_and_spill", include_str!("policies/fill_and_spill.luau")),
    ("adaptable", include_str!("policies/adaptable.luau")),
    ("sequencer", include_str!("policies/sequencer.luau")),
    ("hard", include_str!("policies/hard.luau")),
];

/// The script of the policy of this name.
pub fn script(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, script)| *script)
}
