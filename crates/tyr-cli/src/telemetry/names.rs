//! The names that measurements get when their source does not say them.

use clap::Args;
use tyr_telemetry::Series;

/// Names for what the input does not name.
#[derive(Args, Debug)]
pub struct NameArguments {
    /// The site of what names none
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// The cluster of what names none
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The host of what names none
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// The job of what names none
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
}

impl NameArguments {
    /// `defaults`, with the names that were given.
    pub fn over(&self, mut defaults: Series) -> Series {
        for (given, name) in [
            (&self.site, &mut defaults.site),
            (&self.cluster, &mut defaults.cluster),
            (&self.host, &mut defaults.host),
            (&self.job, &mut defaults.job),
        ] {
            if let Some(given) = given {
                name.clone_from(given);
            }
        }
        defaults
    }
}
