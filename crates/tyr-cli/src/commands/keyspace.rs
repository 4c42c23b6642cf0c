//! `tyr keyspace`: make, list, show and drop keyspaces. Quotas are the affair of
//! [`crate::cluster::quota`].

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use tyr::{Durability, Error, KeyspaceConfig, KeyspaceInfo, PlacedBy};

use crate::cluster::loss::{self, LossArguments};
use crate::cluster::quota::{self, QuotaArguments};
use crate::data::{parse_size, size_text};
use crate::failure::Outcome;
use crate::output::table;
use crate::session::{Access, Session};

/// What to do with keyspaces.
#[derive(Debug, Subcommand)]
pub enum KeyspaceCommand {
    /// Make a keyspace; its configuration is fixed for its life
    Create(CreateArguments),
    /// List the keyspaces
    List(ListArguments),
    /// Show a keyspace's configuration
    Show(ShowArguments),
    /// Remove a keyspace and every blob in it
    Drop(DropArguments),
    /// Limit what a keyspace of a cluster may have, or show the limits and what is used
    Quota(QuotaArguments),
    /// Accept that what nodes that are down alone had of a keyspace is lost
    Loss(LossArguments),
}

/// `tyr keyspace create`
#[derive(Args, Debug)]
#[command(after_help = "\
The store is made if its directory is missing. With --if-missing a keyspace that exists is left \
as it is, if it has the configuration that is asked for.

Examples:
  tyr keyspace create notes --if-missing
  tyr keyspace create notes
  tyr keyspace create cache --durability memory --single-version
  tyr keyspace create disks --chunk-size 4MiB --compress
  tyr keyspace create files --placed-by up-to:/")]
pub struct CreateArguments {
    /// 1 to 64 of a-z 0-9 _ . - ; starts with a letter or digit
    name: String,
    /// When a commit is acknowledged; a cluster syncs every commit, and refuses `memory`
    #[arg(long, value_enum, default_value = "sync")]
    durability: DurabilityArgument,
    /// Bytes of a chunk, a power of two from 4KiB to 256MiB
    #[arg(long, value_parser = parse_size, default_value = "64MiB", value_name = "SIZE")]
    chunk_size: u64,
    /// Replicas of each chunk, 1 to 9; capped by the number of nodes
    #[arg(long, default_value = "3", value_name = "N")]
    replication: u8,
    /// Live replicas that a write needs, 1 to the number of replicas; without, more than half
    #[arg(long, value_name = "N")]
    live_replicas_min: Option<u8>,
    /// Keep only the newest version: saves space, and snapshots may fail with SnapshotTooOld
    #[arg(long = "single-version")]
    is_single_versioned: bool,
    /// Compress large payloads with lz4 on disk
    #[arg(long = "compress")]
    is_compressed: bool,
    /// What of a key says where the blob lies in a cluster: key, first:N (the first N bytes, 1 to
    /// 64) or up-to:BYTE (what comes before the first such byte). Keys that share it are a group,
    /// whose transactions pass few nodes
    #[arg(long, value_parser = PlacedBy::parse, default_value = "key", value_name = "PART")]
    placed_by: PlacedBy,
    /// Let leases of its keys keep others' transactions off: who holds one can go by what it has
    /// read. Its leases last 3 s at most. In a directory this changes nothing
    #[arg(long = "guarded")]
    is_guarded: bool,
    /// If there is one, with this configuration, be content with it
    #[arg(long = "if-missing")]
    if_missing: bool,
}

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DurabilityArgument {
    /// Once the disk has it: survives the loss of power
    Sync,
    /// Once the operating system has it: survives the death of the process
    Buffered,
    /// Once it is in memory: gone after a restart
    Memory,
}

impl From<DurabilityArgument> for Durability {
    fn from(argument: DurabilityArgument) -> Self {
        match argument {
            DurabilityArgument::Sync => Self::Sync,
            DurabilityArgument::Buffered => Self::Buffered,
            DurabilityArgument::Memory => Self::Memory,
        }
    }
}

/// `tyr keyspace list`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr keyspace list --json")]
pub struct ListArguments {}

/// `tyr keyspace show`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr keyspace show notes")]
pub struct ShowArguments {
    /// The keyspace
    name: String,
}

/// `tyr keyspace drop`
#[derive(Args, Debug)]
#[command(after_help = "\
There is no way back, and no question is asked.

Example:
  tyr keyspace drop notes")]
pub struct DropArguments {
    /// The keyspace
    name: String,
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: KeyspaceCommand) -> Outcome {
    match command {
        KeyspaceCommand::Create(arguments) => create(session, &arguments),
        KeyspaceCommand::List(ListArguments {}) => list(session),
        KeyspaceCommand::Show(arguments) => show(session, &arguments),
        KeyspaceCommand::Drop(arguments) => drop(session, &arguments),
        KeyspaceCommand::Quota(arguments) => quota::run(session, &arguments),
        KeyspaceCommand::Loss(arguments) => loss::run(session, &arguments),
    }
}

fn create(session: &mut Session, arguments: &CreateArguments) -> Outcome {
    let config = KeyspaceConfig {
        chunk_size: arguments.chunk_size,
        replication: arguments.replication,
        live_replicas_min: arguments.live_replicas_min,
        is_multi_versioned: !arguments.is_single_versioned,
        durability: arguments.durability.into(),
        is_compressed: arguments.is_compressed,
        placed_by: arguments.placed_by,
        is_guarded: arguments.is_guarded,
    };
    let store = session.open(Access::Create)?;
    let keyspace = match arguments.if_missing {
        true => store.keyspace_or_create(&arguments.name, config)?,
        false => store.create_keyspace(&arguments.name, config)?,
    };
    let info = find(&store.keyspaces()?, keyspace.name())?.clone();
    session.output.record(&as_json(&info), "")
}

fn list(session: &mut Session) -> Outcome {
    let infos = session.open(Access::Read)?.keyspaces()?;
    let waiting = loss::waiting_in(session)?;
    if session.output.is_json() {
        return infos.iter().try_for_each(|info| session.output.json(&waited(info, &waiting)));
    }
    let is_cluster = session.is_cluster()?;
    // A directory has one copy of everything, whatever a cluster would make of it.
    let replicas = |info: &KeyspaceInfo| is_cluster.then(|| info.config.replication.to_string());
    let rows: Vec<Vec<String>> = infos
        .iter()
        .map(|info| {
            let cells = [
                info.name.to_string(),
                info.config.durability.name().to_owned(),
                size_text(info.config.chunk_size),
                if info.config.is_multi_versioned { "many" } else { "newest" }.to_owned(),
                if info.config.is_compressed { "lz4" } else { "none" }.to_owned(),
            ];
            cells.into_iter().chain(replicas(info)).collect()
        })
        .collect();
    let heads = ["name", "durability", "chunk", "versions", "compression", "replicas"];
    let shown = heads.len() - usize::from(!is_cluster);
    session.output.line(&table(&heads[..shown], &rows, &[2, 5]))?;
    waiting.iter().try_for_each(|(name, nodes)| session.output.line(&loss::warning(name, nodes)))
}

fn show(session: &mut Session, arguments: &ShowArguments) -> Outcome {
    let infos = session.open(Access::Read)?.keyspaces()?;
    let info = find(&infos, &arguments.name)?;
    let waiting = loss::waiting_in(session)?;
    let config = &info.config;
    let replicas = match session.is_cluster()? {
        true => format!(
            "\nreplication        {}\nlive replicas min  {}",
            config.replication,
            config.live_replicas_needed()
        ),
        false => String::new(),
    };
    let mut text = format!(
        "name               {}\nid                 {}\ndurability         {}\n\
         chunk size         {} ({}){replicas}\nversions           {}\ncompression        {}\n\
         placed by          {}\nguarded            {}",
        info.name,
        info.id.0,
        config.durability.name(),
        config.chunk_size,
        size_text(config.chunk_size),
        if config.is_multi_versioned { "many" } else { "newest only" },
        if config.is_compressed { "lz4" } else { "none" },
        config.placed_by,
        if config.is_guarded { "by leases" } else { "no" },
    );
    if let Some((name, nodes)) = waiting.iter().find(|(name, _)| name == info.name.as_str()) {
        text.push('\n');
        text.push_str(&loss::warning(name, nodes));
    }
    session.output.record(&waited(info, &waiting), &text)
}

/// A keyspace in JSON, with the nodes that it waits for, if it does.
fn waited(info: &KeyspaceInfo, waiting: &[(String, Vec<u16>)]) -> Value {
    let mut fields = as_json(info);
    if let Some((_, nodes)) = waiting.iter().find(|(name, _)| name == info.name.as_str()) {
        fields["unavailable_with_nodes"] = json!(nodes);
    }
    fields
}

fn drop(session: &mut Session, arguments: &DropArguments) -> Outcome {
    let store = session.open(Access::Write)?;
    store.drop_keyspace(&arguments.name)?;
    session.output.record(&json!({"name": arguments.name, "dropped": true}), "")
}

fn find<'a>(infos: &'a [KeyspaceInfo], name: &str) -> tyr::Result<&'a KeyspaceInfo> {
    infos.iter().find(|info| info.name.as_str() == name).ok_or_else(|| {
        Error::not_found(format!(
            "there is no keyspace \"{}\"; `tyr keyspace list` shows those there are",
            name.escape_debug()
        ))
    })
}

/// A keyspace in JSON.
pub fn as_json(info: &KeyspaceInfo) -> Value {
    json!({
        "name": info.name.as_str(),
        "id": info.id.0,
        "chunk_size": info.config.chunk_size,
        "replication": info.config.replication,
        "live_replicas_min": info.config.live_replicas_needed(),
        "multi_versioned": info.config.is_multi_versioned,
        "durability": info.config.durability.name(),
        "compressed": info.config.is_compressed,
        "placed_by": info.config.placed_by.to_string(),
        "guarded": info.config.is_guarded,
    })
}
