//! The tyr command.

fn main() {}
