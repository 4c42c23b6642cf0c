//! The names that measurements get when their source does not say them.

use clap::Args;
use tyr_telemetry::Series;

/// Where something is measured.
#[derive(Args, Debug)]
pub struct PlaceArguments {
    /// The site of what names none
    #[arg(long, value_name = "NAME")]
    pub site: Option<String>,
    /// The cluster of what names none
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The host of what names none
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
}

/// Where, and for which job.
#[derive(Args, Debug)]
pub struct NameArguments {
    #[command(flatten)]
    pub place: PlaceArguments,
    /// The job of what names none
    #[arg(long, value_name = "NAME")]
    pub job: Option<String>,
}

impl NameArguments {
    /// `defaults`, with the names that were given.
    pub fn over(&self, mut defaults: Series) -> Series {
        for (given, name) in [
            (&self.place.site, &mut defaults.site),
            (&self.place.cluster, &mut defaults.cluster),
            (&self.place.host, &mut defaults.host),
            (&self.job, &mut defaults.job),
        ] {
            if let Some(given) = given {
                name.clone_from(given);
            }
        }
        defaults
    }
}
