//! A collector on this machine that keeps what is posted to it.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde_json::Value;

use super::Endpoint;

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was posted.
#[derive(Clone, Debug)]
pub struct Post {
    /// Method and path.
    pub asked: String,
    /// The media type.
    pub content_type: String,
    /// The body.
    pub body: Value,
}

/// How the collector answers a post.
#[derive(Clone, Debug)]
pub enum Reply {
    /// So, with this body.
    Says(&'static str, &'static str),
    /// It hangs up.
    HangsUp,
    /// It never answers.
    IsSilent,
}

#[derive(Default)]
struct State {
    posts: Vec<Post>,
    replies: VecDeque<Reply>,
    connections: usize,
}

#[derive(Default)]
struct Inside {
    state: Mutex<State>,
    is_changed: Condvar,
    is_closed: AtomicBool,
}

/// A collector.
pub struct Collector {
    address: SocketAddr,
    inside: Arc<Inside>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    /// One that takes everything.
    pub fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    /// The same at this address.
    pub fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let inside = Arc::<Inside>::default();
        let accepting = Arc::clone(&inside);
        let thread = Some(std::thread::spawn(move || accept(&listener, &accepting)));
        Self { address, inside, thread }
    }

    /// Where nodes reach it.
    pub fn endpoint(&self) -> Endpoint {
        endpoint(self.address)
    }

    /// Answers the next posts so, and those after them as well as can be.
    pub fn replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.inside.state.lock().replies.extend(replies);
    }

    /// Waits until what was posted is as it has to be, and answers that.
    pub fn wait(&self, is_enough: impl Fn(&[Post]) -> bool) -> Vec<Post> {
        let until = Instant::now() + PATIENCE;
        let mut state = self.inside.state.lock();
        while !is_enough(&state.posts) {
            let is_late = self.inside.is_changed.wait_until(&mut state, until).timed_out();
            assert!(!is_late, "posted until now: {:?}", state.posts);
        }
        state.posts.clone()
    }

    /// Waits for so many spans at least, of what this picks; answers those.
    pub fn spans(&self, count: usize, picks: impl Fn(&Value) -> bool) -> Vec<Value> {
        let picked = |posts: &[Post]| -> Vec<Value> {
            posts.iter().flat_map(Post::spans).filter(|span| picks(span)).cloned().collect()
        };
        picked(&self.wait(|posts| picked(posts).len() >= count))
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.inside.state.lock().connections
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.inside.is_closed.store(true, Ordering::Release);
        // Wakes who accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Post {
    /// The spans in it.
    pub fn spans(&self) -> &[Value] {
        self.body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap()
    }
}

/// The collector at this address, if one is there.
pub fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::parse(&format!("http://{address}")).unwrap()
}

fn accept(listener: &TcpListener, inside: &Arc<Inside>) {
    for stream in listener.incoming() {
        if inside.is_closed.load(Ordering::Acquire) {
            return;
        }
        inside.state.lock().connections += 1;
        let inside = Arc::clone(inside);
        // Ends when the other side does.
        std::thread::spawn(move || serve(stream.unwrap(), &inside));
    }
}

/// Answers what is posted on a connection until it ends.
fn serve(stream: TcpStream, inside: &Inside) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    while let Some(post) = read(&mut reader) {
        let reply = {
            let mut state = inside.state.lock();
            state.posts.push(post);
            state.replies.pop_front().unwrap_or(Reply::Says("200 OK", "{}"))
        };
        inside.is_changed.notify_all();
        let (status, body) = match reply {
            Reply::Says(status, body) => (status, body),
            Reply::HangsUp => return,
            Reply::IsSilent => continue,
        };
        let len = body.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n");
        if write!(writer, "{head}Content-Length: {len}\r\n\r\n{body}").is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Post> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |wanted: &str| {
        let mut pairs = lines.iter().filter_map(|line| line.split_once(": "));
        pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).unwrap().1.to_owned()
    };
    let mut body = vec![0; header("content-length").parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    let asked = lines[0].strip_suffix(" HTTP/1.1").unwrap().to_owned();
    let content_type = header("content-type");
    Some(Post { asked, content_type, body: serde_json::from_slice(&body).unwrap() })
}
