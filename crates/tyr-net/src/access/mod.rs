//! Who may do what: users with keys, and their rights on keyspaces.
//!
//! A right on a keyspace is a right on all of it. Users lie in the service metadata, where
//! administrators change them; every node has them all and checks each request itself, without
//! asking anybody. Keys are drawn by a machine and long, so their SHA-256 is all that is kept:
//! there is nothing to guess, and a check costs no more than a hash.
//!
//! ```text
//!   hello: token ──► Users::identify ──► Caller (on the connection) ──► permits(keyspace, right)
//!                        ▲ hashes                  ▲ rights, as they are now
//!                        └── users/<name> in the service metadata ──┘
//! ```
//!
//! Nodes, and whoever has the cluster's secret, may do everything.

mod key;
mod user;

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::RwLock;
use tyr_types::{Error, ErrorKind, KeyspaceId, Result};

pub use self::key::{Key, KeyHash};
pub use self::user::{Right, User};

/// Whoever has the cluster's secret goes by this name.
pub const ROOT: &str = "root";

/// The name of those who come without any to a cluster that checks nothing.
pub const ANYBODY: &str = "anybody";

/// Characters of a name that are logged.
const NAME_LEN_SHOWN: usize = 64;

/// A user as everybody who came as that user sees it; `None` when it was removed.
type Shared = Arc<RwLock<Option<User>>>;

/// Somebody who was let in.
#[derive(Clone, Debug)]
pub struct Caller {
    name: Arc<str>,
    /// What the user may do now; `None`: everything.
    user: Option<Shared>,
}

impl Caller {
    /// Somebody who may do everything.
    fn almighty(name: &str) -> Self {
        Self { name: name.into(), user: None }
    }

    /// Who it is.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it may change users, nodes and keyspaces.
    pub fn is_administrator(&self) -> bool {
        match &self.user {
            None => true,
            Some(user) => user.read().as_ref().is_some_and(|user| user.is_administrator),
        }
    }

    /// Whether it may do this with a keyspace now.
    pub fn permits(&self, keyspace: KeyspaceId, right: Right) -> bool {
        match &self.user {
            None => true,
            Some(user) => user.read().as_ref().is_some_and(|user| user.permits(keyspace, right)),
        }
    }

    /// Whether it may read any keyspace at all.
    pub fn reads_anything(&self) -> bool {
        match &self.user {
            None => true,
            Some(user) => user.read().as_ref().is_some_and(User::reads_anything),
        }
    }

    /// The error that says what is missing and who can help.
    pub fn refusal(&self, keyspace: &str, right: Right) -> Error {
        debug_assert!(self.user.is_some(), "{} may do everything, and is refused", self.name);
        let (name, right) = (&self.name, right.name());
        Error::new(
            ErrorKind::PermissionDenied,
            format!(
                "user {name} may not {right} keyspace {keyspace}; an administrator can allow it: \
                 tyr user grant {name} {keyspace} {right}"
            ),
        )
    }
}

/// All users, as the service metadata has them.
#[derive(Debug)]
pub struct Users {
    /// `None`: nothing is checked.
    secret: Option<KeyHash>,
    users: RwLock<HashMap<String, Shared, RandomState>>,
}

impl Users {
    /// Users of a cluster with this secret.
    pub fn with_secret(secret: &Key) -> Self {
        Self { secret: Some(secret.hash()), users: RwLock::default() }
    }

    /// Everybody may do everything.
    pub fn unchecked() -> Self {
        Self { secret: None, users: RwLock::default() }
    }

    /// Whether anything is checked.
    pub fn is_checked(&self) -> bool {
        self.secret.is_some()
    }

    /// A user was made, changed or removed.
    pub fn update(&self, name: &str, user: Option<User>) {
        let mut users = self.users.write();
        match users.get(name) {
            Some(known) => *known.write() = user,
            None => {
                users.insert(name.to_owned(), Arc::new(RwLock::new(user)));
            }
        }
    }

    /// Who shows this token: `name:key`.
    ///
    /// # Errors
    /// `PermissionDenied`. It does not say whether there is such a user.
    pub fn identify(&self, token: &[u8]) -> Result<Caller> {
        let denied = |why: &str| Error::new(ErrorKind::PermissionDenied, why.to_owned());
        let Some(secret) = &self.secret else {
            let name = split(token).map_or(ANYBODY, |(name, _)| name);
            return Ok(Caller::almighty(name));
        };
        let Some((name, key)) = split(token) else {
            return Err(denied(
                "this cluster wants a user and a key: give both to the client, or ask an \
                 administrator for them (tyr user add)",
            ));
        };
        let hash = Key::of(key).hash();
        if name == ROOT && hash == *secret {
            return Ok(Caller::almighty(ROOT));
        }
        let known = self.users.read().get(name).cloned();
        let is_theirs =
            |user: &Shared| user.read().as_ref().is_some_and(|user| user.has_key(&hash));
        match known.filter(is_theirs) {
            Some(user) => Ok(Caller { name: name.into(), user: Some(user) }),
            None => Err(denied(
                "no such user, or not the user's key; an administrator can make a new key \
                 (tyr user key)",
            )),
        }
    }

    /// Who was let in by this name, with what they may do now.
    ///
    /// # Errors
    /// `PermissionDenied` when the user was removed since.
    pub fn named(&self, name: &str) -> Result<Caller> {
        if self.secret.is_none() || name == ROOT {
            return Ok(Caller::almighty(name));
        }
        let known = self.users.read().get(name).cloned();
        match known.filter(|user| user.read().is_some()) {
            Some(user) => Ok(Caller { name: name.into(), user: Some(user) }),
            None => Err(Error::new(
                ErrorKind::PermissionDenied,
                format!("user {name} was removed; an administrator can make one (tyr user add)"),
            )),
        }
    }

    /// Whether the token is that of a node of this cluster.
    pub fn is_node(&self, token: &[u8]) -> bool {
        match &self.secret {
            None => true,
            Some(secret) => split(token)
                .is_some_and(|(name, key)| name == ROOT && Key::of(key).hash() == *secret),
        }
    }
}

/// The two parts of a token.
fn split(token: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(token).ok()?.split_once(':')
}

/// Whom a token is of by its own word, for logs of who was refused; never the key.
pub fn claimed(token: &[u8]) -> String {
    match split(token) {
        Some((name, _)) => printable(name),
        None => printable(""),
    }
}

/// A name that somebody gives who need not be that, short and without control characters.
pub fn printable(name: &str) -> String {
    if name.is_empty() {
        return "nobody".to_owned();
    }
    let shown = name.chars().take(NAME_LEN_SHOWN).collect::<String>().escape_debug().to_string();
    debug_assert!(!shown.contains(char::is_control), "{shown:?} would break a line of the log");
    shown
}

/// What shows that one is `name`: the token of a hello.
pub fn token(name: &str, key: &Key) -> String {
    let token = format!("{name}:{}", key.as_str());
    debug_assert!(split(token.as_bytes()).is_some(), "a token has two parts");
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: KeyspaceId = KeyspaceId(3);

    fn users() -> (Users, Key) {
        let secret = Key::draw().unwrap();
        let users = Users::with_secret(&secret);
        (users, secret)
    }

    #[test]
    fn a_user_is_let_in_by_a_key_and_may_do_what_was_granted() {
        let (users, _) = users();
        let key = Key::draw().unwrap();
        let user = User::new(key.hash()).granted(DATA, Some(Right::Read));
        users.update("alice", Some(user.clone()));
        let alice = users.identify(token("alice", &key).as_bytes()).unwrap();
        assert!(alice.permits(DATA, Right::Read));
        assert!(!alice.permits(DATA, Right::Write));
        assert!(!alice.permits(KeyspaceId(4), Right::Read));
        users.update("alice", Some(user.granted(DATA, Some(Right::Write))));
        assert!(alice.permits(DATA, Right::Write), "a change counts at once");
        assert!(users.named("alice").unwrap().permits(DATA, Right::Write));
        users.update("alice", None);
        assert!(users.named("alice").is_err() && users.named("bob").is_err());
        assert!(!alice.permits(DATA, Right::Read));
        assert!(users.identify(token("alice", &key).as_bytes()).is_err());
    }

    #[test]
    fn a_wrong_key_a_strange_name_and_no_token_are_refused() {
        let (users, secret) = users();
        users.update("alice", Some(User::new(Key::draw().unwrap().hash())));
        for refused in [
            token("alice", &Key::draw().unwrap()),
            token("bob", &secret),
            token(ROOT, &Key::draw().unwrap()),
            String::new(),
            "no colon".to_owned(),
        ] {
            let error = users.identify(refused.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            assert!(!users.is_node(refused.as_bytes()));
        }
    }

    #[test]
    fn a_name_that_is_claimed_is_shown_and_no_key() {
        assert_eq!(claimed(token("alice", &Key::draw().unwrap()).as_bytes()), "alice");
        assert_eq!(claimed(b"a-key-without-a-name"), "nobody");
        assert_eq!(claimed(b"bob\nroot was let in:key"), "bob\\nroot was let in");
        assert_eq!(claimed(format!("{}:key", "x".repeat(1000)).as_bytes()).len(), 64);
    }

    #[test]
    fn whoever_has_the_secret_may_do_everything() {
        let (users, secret) = users();
        let root = users.identify(token(ROOT, &secret).as_bytes()).unwrap();
        assert!(root.is_administrator() && root.permits(DATA, Right::Admin));
        assert!(users.is_node(token(ROOT, &secret).as_bytes()));
        assert!(Users::unchecked().identify(b"").unwrap().permits(DATA, Right::Write));
    }
}
