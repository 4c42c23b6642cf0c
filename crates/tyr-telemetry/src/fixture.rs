//! What the tests of this crate share: a store in a folder of its own, and an intake.

use std::sync::Arc;

use parking_lot::Mutex;
use tyr::Tyr;

use crate::intake::{Intake, Notify};
use crate::series::Series;
use crate::sources::Sources;
use crate::telemetry::{Config, Telemetry};
use crate::verify;

/// A telemetry store that lives as long as the test.
pub struct Fixture {
    pub telemetry: Telemetry,
    notices: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

impl Fixture {
    pub async fn new() -> Self {
        Self::with(Config::default()).await
    }

    pub async fn with(config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Tyr::open(folder.path()).await.unwrap();
        let telemetry = Telemetry::open(&store, config).await.unwrap();
        Self { telemetry, notices: Arc::default(), _folder: folder }
    }

    pub fn intake(&self, source: &'static str) -> Arc<Intake> {
        Intake::new(&self.telemetry, source, self.notify())
    }

    pub fn sources(&self) -> Sources {
        Sources::new(&self.telemetry, None, &self.notify())
    }

    fn notify(&self) -> Notify {
        let notices = Arc::clone(&self.notices);
        Arc::new(move |text: &str| notices.lock().push(text.to_owned()))
    }

    pub fn notices(&self) -> Vec<String> {
        self.notices.lock().clone()
    }

    /// Everything recorded verifies, and it is this many measurements.
    pub async fn verify_clean(&self, measurements: u64) {
        let report = verify::verify(&self.telemetry, |_| ()).await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.differences);
        assert_eq!(report.measurements, measurements);
    }
}

/// A series that differs from others in its host and parameter.
pub fn series(host: &str, parameter: &str) -> Series {
    Series {
        site: "cern".to_owned(),
        cluster: "batch".to_owned(),
        host: host.to_owned(),
        parameter: parameter.to_owned(),
        job: "reco".to_owned(),
    }
}

/// Gives way to other tasks until the condition holds; a test that waits forever fails by time-out
/// of the runner.
pub async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}
