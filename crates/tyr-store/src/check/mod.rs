//! `tyr check`: being written; the lead's facade calls `run` and `run_closed`.
#![allow(missing_docs, unused_variables)]
use crate::base::Base;
use crate::disk::Disk;
use crate::extents::Extents;
use std::path::Path;
use std::sync::Arc;
use tyr_types::{Error, Result};
#[derive(Clone, Debug, Default)]
pub struct Report {}
pub fn run(
    disk: &dyn Disk,
    extents: &Arc<Extents>,
    base: &Base,
    progress: &mut dyn FnMut(f64),
) -> Result<Report> {
    Err(Error::unavailable("not yet"))
}
pub fn run_closed(disk: &dyn Disk, index: &Path, progress: &mut dyn FnMut(f64)) -> Result<Report> {
    Err(Error::unavailable("not yet"))
}
