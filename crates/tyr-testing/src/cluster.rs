//! Nodes in this process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr_server::{Formation, InitialNode, Observer, Server, ServerOptions};

use crate::free_address;

/// How long a cluster may take to form on a machine that has other things to do.
const FORMING_MAX: Duration = Duration::from_secs(120);

/// A cluster in this process, reached over sockets.
pub struct Cluster {
    servers: Vec<Server>,
    address: String,
}

impl Cluster {
    /// The one of this process, of three nodes. It ends with it, so its folder is left for the next
    /// to remove. If it did not form, each test that needs it says why.
    pub(crate) fn of_process() -> &'static Self {
        static RUNNING: OnceLock<Result<Cluster, String>> = OnceLock::new();
        let formed = RUNNING.get_or_init(|| Self::try_form(&folder_of_process(), 3, |_| {}));
        formed.as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Forms one of so many nodes, all with monitors, in folders of `folder`; `change` is asked how
    /// each node is to be started.
    ///
    /// # Panics
    /// When it does not form.
    pub fn form(folder: &Path, nodes: u16, change: impl Fn(&mut ServerOptions)) -> Self {
        Self::try_form(folder, nodes, change).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_form(
        folder: &Path,
        nodes: u16,
        change: impl Fn(&mut ServerOptions),
    ) -> Result<Self, String> {
        let servers = start(folder, nodes, change)
            .map_err(|error| format!("no node of the cluster started: {error}"))?;
        // Two serve before the third does; tests are about what all three do.
        let until = Instant::now() + FORMING_MAX;
        let well = |server: &Server| Observer::of(server).ready();
        while !servers.iter().all(|server| well(server).is_well()) {
            if Instant::now() >= until {
                let states: Vec<_> = servers.iter().map(well).collect();
                return Err(format!("the cluster has not formed: {states:?}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let places: Vec<String> =
            servers.iter().map(|server| server.listen().to_string()).collect();
        Ok(Self { servers, address: format!("tyr://{}", places.join(",")) })
    }

    /// Its nodes.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// How clients name it: `tyr://` and where its nodes listen.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A program that uses it.
    ///
    /// # Panics
    /// When it cannot be reached.
    pub fn connect(&self) -> Tyr {
        let options = Tyr::connect_options().connect_timeout(FORMING_MAX);
        options.connect_blocking(&self.address).unwrap()
    }
}

fn start(
    folder: &Path,
    nodes: u16,
    change: impl Fn(&mut ServerOptions),
) -> tyr::Result<Vec<Server>> {
    let places: Vec<_> = (0..nodes).map(|_| free_address()).collect();
    let initial = |(n, place): (u16, &std::net::SocketAddr)| InitialNode {
        node: tyr::NodeId(n),
        address: place.to_string(),
        is_monitor: true,
    };
    let initial: Vec<_> = (0..).zip(&places).map(initial).collect();
    let start = |(node, place): (&InitialNode, _)| {
        let mut options = ServerOptions::new(folder.join(node.node.0.to_string()), place);
        options.node = Some(node.node);
        options.formation = Formation::Initial(initial.clone());
        change(&mut options);
        Server::start(options)
    };
    initial.iter().zip(places.iter().copied()).map(start).collect()
}

/// A folder for this process, after those of processes that are no more are gone.
fn folder_of_process() -> PathBuf {
    const NAME: &str = "tyr-testing-cluster-of-";
    let place = std::env::temp_dir();
    for entry in std::fs::read_dir(&place).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let process = name.strip_prefix(NAME).filter(|_| Path::new("/proc/self").exists());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // Another test may be at it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    place.join(format!("{NAME}{}", std::process::id()))
}
