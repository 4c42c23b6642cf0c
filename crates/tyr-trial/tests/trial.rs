//! The suite of trials, as continuous integration runs it: `cargo test --workspace --test trial`.

use std::process::Command;

#[test]
fn real_nodes_keep_their_promises_under_faults() {
    let status = Command::new(env!("CARGO_BIN_EXE_tyr-trial")).arg("suite").status();
    assert!(status.unwrap().success(), "something is wrong; it says what, and how to see it again");
}
