//! `tyr user`: who is let into a cluster, and what they may do.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tyr::{Error, ErrorKind};
use tyr_client::LEVEL_CALLING;
use tyr_metadata::{Expected, Path, Transaction, reserved};
use tyr_net::access::{Key, ROOT, Right, User};

use super::Connection;
use crate::failure::{Failure, Outcome};
use crate::output::table;
use crate::session::Session;

/// Users that are listed at a time.
const PAGE: u32 = 500;

/// What to do with users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Make a user, and print the key by which it is let in
    Add(AddArguments),
    /// List the users with their rights
    List(ListArguments),
    /// Remove a user; what it has open ends at the next request
    Remove(RemoveArguments),
    /// Let a user read, call methods in, write or administer a keyspace
    Grant(GrantArguments),
    /// Take a user's right on a keyspace away
    Revoke(RevokeArguments),
    /// Draw another key for a user, and print it
    Key(KeyArguments),
}

/// `tyr user add`
#[derive(Args, Debug)]
#[command(after_help = "\
The key is shown once and kept nowhere. Redirect it into a file that only its user can read.

Example:
  (umask 077; tyr user add alice > alice.key)")]
pub struct AddArguments {
    /// Letters, digits, . _ -
    name: String,
    /// May change users, nodes and keyspaces, and do all else
    #[arg(long = "administrator")]
    is_administrator: bool,
}

/// `tyr user list`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr user list")]
pub struct ListArguments {}

/// `tyr user remove`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr user remove alice")]
pub struct RemoveArguments {
    /// The user
    name: String,
}

/// `tyr user grant`
#[derive(Args, Debug)]
#[command(after_help = "\
Who may call, and not write, changes blobs of the keyspace by the methods of classes that are \
enabled there, and in no other way.

Example:
  tyr user grant alice photos write")]
pub struct GrantArguments {
    /// The user
    name: String,
    /// The keyspace
    keyspace: String,
    /// read, call (methods of objects), write or admin; each includes those before
    right: String,
}

/// `tyr user revoke`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  tyr user revoke alice photos")]
pub struct RevokeArguments {
    /// The user
    name: String,
    /// The keyspace
    keyspace: String,
}

/// `tyr user key`
#[derive(Args, Debug)]
#[command(after_help = "\
The old keys go on to work, so that programs can change one after the other, until --replace.

Example:
  (umask 077; tyr user key alice --replace > alice.key)")]
pub struct KeyArguments {
    /// The user
    name: String,
    /// The old keys end now
    #[arg(long = "replace")]
    is_replacing: bool,
}

/// Does what the command line says.
pub fn run(session: &mut Session, command: UserCommand) -> Outcome {
    let connection = Connection::open(session)?;
    match command {
        UserCommand::Add(arguments) => add(session, &connection, &arguments),
        UserCommand::List(ListArguments {}) => list(session, &connection),
        UserCommand::Remove(arguments) => remove(session, &connection, &arguments),
        UserCommand::Grant(GrantArguments { name, keyspace, right }) => {
            let right = Right::parse(&right)?;
            grant(session, &connection, &name, &keyspace, Some(right))
        }
        UserCommand::Revoke(RevokeArguments { name, keyspace }) => {
            grant(session, &connection, &name, &keyspace, None)
        }
        UserCommand::Key(arguments) => renew(session, &connection, &arguments),
    }
}

/// Where a user lies.
fn path(name: &str) -> Outcome<Path> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_sound = (1..=64).contains(&name.len()) && name.chars().all(is_plain) && name != ROOT;
    match is_sound {
        true => Ok(Path::new(format!("{}{name}", reserved::USERS))?),
        false => Err(Failure::Usage(format!(
            "a user's name has 1 to 64 letters, digits, dots, dashes and underscores, and is not \
             {ROOT}; \"{}\" is none",
            name.escape_debug()
        ))),
    }
}

fn add(session: &mut Session, connection: &Connection, arguments: &AddArguments) -> Outcome {
    let path = path(&arguments.name)?;
    let key = Key::draw()?;
    let mut user = User::new(key.hash());
    user.is_administrator = arguments.is_administrator;
    let transaction =
        Transaction::new().when(path.clone(), Expected::Absent).put(path, user.to_bytes());
    let added = connection.ask(|client| async move { client.transact(transaction).await });
    match added {
        Err(Failure::Store(error)) if error.kind() == ErrorKind::Conflict => {
            let text = format!(
                "there is a user {} already; `tyr user key` draws another key for it",
                arguments.name
            );
            Err(Error::new(ErrorKind::AlreadyExists, text).into())
        }
        Err(error) => Err(error),
        Ok(_) => show_key(session, &arguments.name, &key),
    }
}

fn show_key(session: &mut Session, name: &str, key: &Key) -> Outcome {
    session.output.record(&json!({"user": name, "key": key.as_str()}), key.as_str())
}

fn list(session: &mut Session, connection: &Connection) -> Outcome {
    let names = keyspaces(connection)?;
    let mut after: Option<String> = None;
    let mut rows = Vec::new();
    loop {
        let from = after.clone();
        let (page, _) = connection.ask(|client| async move {
            client.list(reserved::USERS, from.as_deref(), PAGE).await
        })?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.as_str().to_owned());
        for (path, entry) in page {
            let name = path.as_str().trim_start_matches(reserved::USERS).to_owned();
            let user = User::from_bytes(&entry.value)?;
            rows.push((name, user));
        }
    }
    let rights = |user: &User| -> BTreeMap<String, &'static str> {
        let named = |id: u32| names.get(&id).cloned().unwrap_or_else(|| format!("number {id}"));
        user.rights().map(|(keyspace, right)| (named(keyspace.0), right.name())).collect()
    };
    if session.output.is_json() {
        return rows.iter().try_for_each(|(name, user)| {
            session.output.json(&json!({
                "user": name,
                "administrator": user.is_administrator,
                "keys": user.keys(),
                "rights": rights(user),
            }))
        });
    }
    let line = |(name, user): &(String, User)| {
        let rights = rights(user);
        let rights = rights.iter().map(|(keyspace, right)| format!("{keyspace}: {right}"));
        let administrator = if user.is_administrator { "yes" } else { "no" };
        let rights = rights.collect::<Vec<_>>().join(", ");
        vec![name.clone(), administrator.to_owned(), user.keys().to_string(), rights]
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    session.output.line(&table(&["user", "administrator", "keys", "rights"], &lines, &[2]))
}

fn remove(session: &mut Session, connection: &Connection, arguments: &RemoveArguments) -> Outcome {
    let path = path(&arguments.name)?;
    let transaction = Transaction::new().when(path.clone(), Expected::Present).delete(path);
    let removed = connection.ask(|client| async move { client.transact(transaction).await });
    match removed {
        Err(Failure::Store(error)) if error.kind() == ErrorKind::Conflict => {
            Err(no_user(&arguments.name))
        }
        Err(error) => Err(error),
        Ok(_) => {
            let fields: Value = json!({"user": arguments.name, "removed": true});
            session.output.record(&fields, "")
        }
    }
}

fn grant(
    session: &mut Session,
    connection: &Connection,
    name: &str,
    keyspace: &str,
    right: Option<Right>,
) -> Outcome {
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    let map = bootstrap.cluster_map()?;
    let found = map.keyspace_named(keyspace).map(|(id, _)| id);
    let id = found.ok_or_else(|| {
        Error::not_found(format!("there is no keyspace \"{}\"", keyspace.escape_debug()))
    })?;
    if right == Some(Right::Call) {
        // A node of before could not read the user, and would not know any of its rights.
        map.check_level(LEVEL_CALLING)?;
    }
    change(connection, name, |user| Ok(user.granted(id, right)))?;
    let right = right.map(Right::name);
    session.output.record(&json!({"user": name, "keyspace": keyspace, "right": right}), "")
}

fn renew(session: &mut Session, connection: &Connection, arguments: &KeyArguments) -> Outcome {
    let key = Key::draw()?;
    change(connection, &arguments.name, |user| match arguments.is_replacing {
        true => Ok(user.with_only_key(key.hash())),
        false => user.with_key(key.hash()),
    })?;
    show_key(session, &arguments.name, &key)
}

/// Changes a user, whatever others change meanwhile.
fn change(
    connection: &Connection,
    name: &str,
    change: impl Fn(User) -> tyr::Result<User>,
) -> Outcome {
    connection.change(&path(name)?, |known| {
        let known = known.ok_or_else(|| no_user(name))?;
        Ok((Some(change(User::from_bytes(known)?)?.to_bytes()), ()))
    })
}

fn no_user(name: &str) -> Failure {
    Error::not_found(format!("there is no user {name}; `tyr user list` shows those there are"))
        .into()
}

/// Names of keyspaces by their numbers.
fn keyspaces(connection: &Connection) -> Outcome<BTreeMap<u32, String>> {
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    let map = bootstrap.cluster_map()?;
    let named = map.keyspaces.iter().map(|(id, keyspace)| (id.0, keyspace.name.to_string()));
    Ok(named.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_users_are_plain_and_root_is_taken() {
        assert_eq!(path("alice.b-1").unwrap().as_str(), "users/alice.b-1");
        for bad in ["", "a b", "a/b", "ä", ROOT, &"x".repeat(65)] {
            assert!(matches!(path(bad), Err(Failure::Usage(_))), "{bad}");
        }
    }
}
