//! The trial of arrays and tables: two programs on xarray and one on duckdb share a cluster whose
//! nodes are killed, by the wheel as users install it.
//!
//! What is tried and what is checked is `tyr-trial arrays`; here an environment is made for it. pip
//! gets the packages of others from PyPI.

use std::path::Path;
use std::process::Command;

use crate::command::target;
use crate::python::{environment, succeeds, wheel};

/// What programs on arrays and tables use besides the wheel.
const LIBRARIES: [&str; 3] = ["xarray", "pyarrow", "duckdb"];

/// Builds the wheel and the nodes, and runs the trial for so many minutes, ten unless told; further
/// words are the trial's.
pub fn run(root: &Path, words: &[&str]) -> bool {
    let (minutes, words) = match words {
        [first, rest @ ..] if first.parse::<f64>().is_ok() => (Some(*first), rest),
        _ => (None, words),
    };
    let work = target(root).join("arrays");
    let Some(wheel) = wheel(root, &work) else { return false };
    let user = work.join("user");
    let wheel = format!("{}[fsspec,zarr]", wheel.display());
    let packages: Vec<&str> = std::iter::once(&*wheel).chain(LIBRARIES).collect();
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["build", "--locked", "--profile", "test"]);
    cargo.args(["--package=tyr-cli", "--package=tyr-trial"]);
    let mut trial = Command::new(target(root).join("debug/tyr-trial"));
    trial.current_dir(root).arg("arrays").arg("--python").arg(user.join("bin/python"));
    trial.args(minutes.map(|it| format!("--minutes={it}"))).args(words);
    environment(root, &user, &packages) && succeeds(&mut cargo) && succeeds(&mut trial)
}
