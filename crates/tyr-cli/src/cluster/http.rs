//! One question to a node over HTTP: as much of the protocol as its own answers need.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde::de::DeserializeOwned;

/// How long a node has to answer: who is busy answers all the same, who is gone never does.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of an answer at most: a report of a thousand nodes has some 300 bytes for each.
const ANSWER_LEN_MAX: u64 = 4 << 20;

/// What a node answers, or why it does not.
pub fn get<T: DeserializeOwned>(address: &str, path: &str) -> Result<T, String> {
    let body = fetch(address, path).map_err(|error| format!("{address}: {error}"))?;
    serde_json::from_str(&body).map_err(|error| format!("{address}: not understood: {error}"))
}

fn fetch(address: &str, path: &str) -> std::io::Result<String> {
    let place = address.to_socket_addrs()?.next();
    let place = place.ok_or_else(|| std::io::Error::other("the name has no address"))?;
    let mut stream = TcpStream::connect_timeout(&place, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_LEN_MAX).read_to_string(&mut answer)?;
    body(&answer).map(str::to_owned).map_err(std::io::Error::other)
}

fn body(answer: &str) -> Result<&str, String> {
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer was cut off")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    match status {
        "200" => Ok(body),
        other => Err(format!("answers {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_after_a_head_that_says_200() {
        assert_eq!(body("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}"), Ok("{}"));
        assert!(body("HTTP/1.0 404 Not Found\r\n\r\n").unwrap_err().contains("404"));
        assert!(body("HTTP/1.0 200 OK\r\n").is_err());
    }

    #[test]
    fn a_node_that_is_not_there_is_named() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let error = get::<serde_json::Value>(&address, "/status").unwrap_err();
        assert!(error.starts_with(&address), "{error}");
    }
}
