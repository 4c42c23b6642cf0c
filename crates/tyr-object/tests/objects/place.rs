//! Where a test has its objects, and what it asks of them again and again.

use std::sync::{Arc, Once};

use tyr::blocking::{Keyspace, Tyr};
use tyr::{ConnectOptions, MethodCall};
use tyr_object::blocking::Classes;
use tyr_object::{Call, Failure, Hosting, SeatKind, keyspace_config};
use tyr_server::{Answering, MethodHost, SeatAnswering, Server};

use crate::seats::CounterKind;
use tyr_testing::{Opened, stores};

/// A store, its classes, and the keyspace in it that is this test's.
pub struct Place {
    pub store: Tyr,
    pub classes: Classes,
    pub keyspace: Keyspace,
    /// What this test's classes are called.
    pub class: String,
}

/// Runs the test on each kind of store.
pub fn on_each(test: impl Fn(Place)) {
    for kind in stores() {
        let opened = Opened::new(kind);
        if let Some(cluster) = opened.cluster() {
            static HOSTED: Once = Once::new();
            HOSTED.call_once(|| {
                cluster.servers().iter().for_each(|it| host(it, Tyr::connect_options()))
            });
        }
        let store = opened.tyr.clone();
        let name = opened.name("objects");
        let keyspace = store.create_keyspace(&name, keyspace_config()).unwrap();
        let class = name.replace(|it: char| !it.is_ascii_alphanumeric(), "_");
        test(Place { classes: Classes::of(&store), store, keyspace, class });
    }
}

/// Runs the test on the cluster alone: only there are seats.
pub fn on_cluster(test: impl Fn(Place)) {
    on_each(|place| {
        if place.store.metadata().is_of_cluster() {
            test(place);
        }
    });
}

/// What a node of a test runs methods by.
struct Host(Hosting);

impl MethodHost for Host {
    fn call(&self, user: &str, keyspace: &str, call: MethodCall) -> Answering {
        let (hosting, user, keyspace) = (self.0.clone(), user.to_owned(), keyspace.to_owned());
        Box::pin(async move { hosting.call(&user, &keyspace, call).await })
    }

    fn ask_seat(
        &self,
        keyspace: &str,
        request: &MethodCall,
        is_authority: bool,
    ) -> Option<SeatAnswering> {
        self.0.ask_seat(keyspace, request, is_authority)
    }
}

/// Lets a node run methods, on its own cluster.
pub fn host(server: &Server, options: ConnectOptions) {
    let address = server.listen().to_string();
    let connect = move || options.clone().connect_blocking(&address);
    let kinds: Vec<Arc<dyn SeatKind>> = vec![Arc::new(CounterKind(server.node()))];
    server.host_methods_by(Arc::new(Host(Hosting::serving(server.node(), kinds, connect))));
}

impl Place {
    /// Installs a script in which `NAME` stands for the class, and enables it here.
    pub fn install(&self, script: &str) -> u32 {
        let done = self.classes.install(None, self.script(script).as_bytes()).unwrap();
        assert_eq!(done.class, self.class);
        self.classes.enable(&self.class, self.keyspace.name()).unwrap();
        done.version
    }

    /// A script with the class's name in it.
    pub fn script(&self, script: &str) -> String {
        script.replace("NAME", &self.class)
    }

    /// A call of the test's class.
    pub fn wanted(&self, method: &str, input: &str) -> Call {
        Call::new(self.class.clone(), method, input.to_owned())
    }

    /// Calls a method; the answer as text.
    pub fn call(&self, key: &str, method: &str, input: &str) -> Result<String, Failure> {
        let answer = self.classes.call(&self.keyspace, key, &self.wanted(method, input))?;
        Ok(String::from_utf8(answer.to_vec()).unwrap())
    }
}
