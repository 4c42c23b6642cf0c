//! What is bound to a client's presence, and when it goes (M5).

use std::time::Duration;

use tokio::time::Instant;
use tyr_types::{ErrorKind, Result};

use super::nodes::World;
use tyr_control::presence::Presence;
use tyr_control::{MetadataClient, Sender};
use tyr_metadata::{Expected, Path, Transaction, presence};

const TTL: Duration = Duration::from_secs(4);

fn path(text: &str) -> Path {
    Path::new(text).unwrap()
}

fn put(key: &str) -> Transaction {
    Transaction::new().put(path(key), "x")
}

/// A client that is there, as far as it says so.
struct Guest {
    client: MetadataClient,
    id: u64,
}

impl Guest {
    async fn new(world: &World, id: u64) -> Self {
        let client = world.client_as(3, Sender::User("root".to_owned()));
        let guest = Self { client, id };
        guest.begin().await.unwrap();
        guest
    }

    async fn begin(&self) -> Result<u64> {
        let ttl_ms = TTL.as_millis() as u32;
        self.client.presence(Presence::Begin { id: self.id, ttl_ms }).await
    }

    async fn bind(&self, transaction: Transaction) -> Result<u64> {
        self.client.presence(Presence::Bind { id: self.id, transaction }).await
    }

    async fn renew(&self) -> Result<u64> {
        self.client.presence(Presence::Renew { id: self.id }).await
    }

    async fn end(&self) -> Result<u64> {
        self.client.presence(Presence::End { id: self.id }).await
    }
}

async fn keys(client: &MetadataClient, prefix: &str) -> Vec<String> {
    let (entries, _) = client.list(prefix, None, 1000).await.unwrap();
    entries.into_iter().map(|(path, _)| path.to_string()).collect()
}

/// How long it takes until there is nothing under a prefix any more.
async fn gone_after(client: &MetadataClient, prefix: &str, since: Instant) -> Duration {
    while !keys(client, prefix).await.is_empty() {
        assert!(since.elapsed() < Duration::from_secs(60), "it stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    since.elapsed()
}

#[tokio::test(start_paused = true)]
async fn what_is_bound_goes_when_its_client_is_silent_and_not_before() {
    let world = World::formed(3, 3).await;
    let guest = Guest::new(&world, 7).await;
    guest.bind(put("s/a").put(path("s/b"), "y")).await.unwrap();
    for _ in 0..10 {
        world.pass(TTL * 9 / 10).await;
        guest.renew().await.unwrap();
    }
    assert_eq!(keys(&world.client(0), "s/").await, ["s/a", "s/b"]);
    let (_, revision) = world.client(0).list("s/", None, 10).await.unwrap();
    let mut watch = world.client(1).watch("s/", revision);
    let took = gone_after(&world.client(0), "s/", Instant::now()).await;
    assert!((TTL..TTL * 3 / 2).contains(&took), "{took:?}");
    let mut told = Vec::new();
    while told.len() < 2 {
        told.extend(watch.next().await.unwrap().0);
    }
    assert!(told.iter().all(|change| change.value.is_none()), "{told:?}");
    for refused in [guest.renew().await, guest.bind(put("s/c")).await] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert!(keys(&world.client(0), presence::BOUND).await.is_empty());
    assert!(keys(&world.client(0), presence::PRESENCE).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_waits_a_whole_time_before_it_takes_anybody_for_gone() {
    let mut world = World::formed(5, 5).await;
    let guest = Guest::new(&world, 7).await;
    guest.bind(put("s/a")).await.unwrap();
    // Each time it is nearly over, and nobody is there to hear it.
    for _ in 0..2 {
        world.pass(TTL).await;
        let leader = world.wait_for_leader().await;
        world.kill_monitor(leader).await;
        world.pass(Duration::from_secs(3)).await;
        world.wait_for_leader().await;
        guest.renew().await.unwrap();
    }
    let last = Instant::now();
    let leader = world.wait_for_leader().await;
    let client = world.client((0..5).find(|it| *it != leader).unwrap());
    let took = gone_after(&client, "s/", last).await;
    assert!((TTL..TTL * 3 / 2).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_silent_while_the_leader_changes_is_gone_after_that() {
    let mut world = World::formed(3, 3).await;
    let guest = Guest::new(&world, 7).await;
    guest.bind(put("s/a")).await.unwrap();
    world.pass(TTL / 2).await;
    let leader = world.wait_for_leader().await;
    let killed = Instant::now();
    world.kill_monitor(leader).await;
    let left = (0..3).find(|it| *it != leader).unwrap();
    let took = gone_after(&world.client(left), "s/", killed).await;
    assert!((TTL..TTL * 5 / 2).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_has_changed_stays_and_what_was_ended_goes_at_once() {
    let world = World::formed(3, 3).await;
    let (guest, other) = (Guest::new(&world, 7).await, Guest::new(&world, 8).await);
    let claim = put("s/leader").when(path("s/leader"), Expected::Absent);
    guest.bind(claim.clone()).await.unwrap();
    assert_eq!(other.bind(claim.clone()).await.unwrap_err().kind(), ErrorKind::Conflict);
    guest.bind(put("s/a")).await.unwrap();
    world.client(0).transact(put("s/a")).await.unwrap();
    guest.end().await.unwrap();
    assert_eq!(keys(&world.client(0), "s/").await, ["s/a"]);
    other.bind(claim).await.unwrap();
    guest.end().await.unwrap();
    assert_eq!(keys(&world.client(0), "s/").await, ["s/a", "s/leader"], "another's stays");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_write_binds_nothing_and_a_presence_is_its_users_own() {
    let world = World::formed(3, 3).await;
    let guest = Guest::new(&world, 7).await;
    let alice = Guest { client: world.client_as(3, Sender::User("alice".to_owned())), id: 7 };
    assert_eq!(alice.renew().await.unwrap_err().kind(), ErrorKind::NotFound);
    let alice = Guest { id: 9, ..alice };
    alice.begin().await.unwrap();
    alice.begin().await.unwrap();
    let refused = alice.bind(put("s/a")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    let rights = Transaction::new().put(path("access/s/"), "write: alice");
    world.client(0).transact(rights).await.unwrap();
    alice.bind(put("s/a")).await.unwrap();
    let own = guest.bind(put("users/mallory")).await.unwrap_err();
    assert_eq!(own.kind(), ErrorKind::InvalidArgument, "{own}");
    let short = Presence::Begin { id: 10, ttl_ms: 999 };
    let short = guest.client.presence(short).await.unwrap_err();
    assert_eq!(short.kind(), ErrorKind::InvalidArgument, "{short}");
}
