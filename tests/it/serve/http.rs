//! A small client of HTTP, which sends exactly what a test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// The time after which a reply counts as lost.
const TIMEOUT: Duration = Duration::from_mins(5);

/// A client of a server, with its token.
#[derive(Debug, Clone)]
pub(crate) struct PageClient {
    pub(crate) address: String,
    pub(crate) token: String,
}

/// A reply.
#[derive(Debug)]
pub(crate) struct PageReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl PageReply {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("JSON: {self:?}"))
    }
}

impl PageClient {
    pub(crate) fn new(address: &str, token: &str) -> Self {
        Self { address: address.to_owned(), token: token.to_owned() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream
    }

    /// Sends a head and a body as they are, and returns the reply.
    #[track_caller]
    pub(crate) fn raw(&self, head: &str, body: &[u8]) -> PageReply {
        let mut stream = self.connect();
        let head = format!("{}\r\n\r\n", head.trim().replace('\n', "\r\n"));
        stream.write_all(head.as_bytes()).expect("sent");
        // A server that refuses a body may not read all of it.
        let _ = stream.write_all(body);
        let mut reader = BufReader::new(stream);
        let head = head_of(&mut reader);
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let mut reply = PageReply { status, head, body: String::new() };
        let length = reply.header("content-length").and_then(|length| length.parse().ok());
        let mut bytes = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut bytes).expect("a whole body");
        reply.body = String::from_utf8(bytes).expect("text");
        reply
    }

    /// Asks for a path with the token.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> PageReply {
        let Self { address, token } = self;
        self.raw(
            &format!("GET {path} HTTP/1.1\nhost: {address}\nauthorization: Bearer {token}"),
            b"",
        )
    }

    /// Asks for a document.
    #[track_caller]
    pub(crate) fn document(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    /// Takes an action.
    #[track_caller]
    pub(crate) fn act(&self, name: &str, body: &Value) -> PageReply {
        let (Self { address, token }, body) = (self, body.to_string());
        let head = format!(
            "POST /api/actions/{name} HTTP/1.1\nhost: {address}\nauthorization: Bearer {token}\ncontent-type: application/json\ncontent-length: {}",
            body.len()
        );
        self.raw(&head, body.as_bytes())
    }

    /// Opens a stream of events, perhaps from a position on.
    #[track_caller]
    pub(crate) fn stream(&self, path: &str, position: Option<&str>) -> EventReader {
        let mut stream = self.connect();
        let Self { address, token } = self;
        let position =
            position.map(|position| format!("last-event-id: {position}\r\n")).unwrap_or_default();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{position}\r\n"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut reader = BufReader::new(stream);
        let head = head_of(&mut reader);
        assert!(head.contains(" 200 ") && head.contains("text/event-stream"), "{head}");
        EventReader { reader, rest: String::new() }
    }
}

fn head_of(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let count = reader.read_line(&mut head).expect("a head");
        assert!(count > 0, "the connection was closed: {head:?}");
    }
    head
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StreamEvent {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// A stream that is read.
pub(crate) struct EventReader {
    reader: BufReader<TcpStream>,
    rest: String,
}

impl EventReader {
    /// Returns the next event; `None` at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(end) = self.rest.find("\n\n") {
                let event: String = self.rest.drain(..end + 2).collect();
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
                };
                if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
                    let data = serde_json::from_str(&data).expect("JSON");
                    return Some(StreamEvent { name, id: field("id: "), data });
                }
                continue;
            }
            let chunk = self.chunk()?;
            self.rest.push_str(&chunk);
        }
    }

    fn chunk(&mut self) -> Option<String> {
        let mut size = String::new();
        if self.reader.read_line(&mut size).ok()? == 0 {
            return None;
        }
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut bytes = vec![0; size + 2];
        self.reader.read_exact(&mut bytes).ok()?;
        bytes.truncate(size);
        (size > 0).then(|| String::from_utf8(bytes).expect("text"))
    }

    /// Returns the events up to one of a name that fits, which is the last.
    #[track_caller]
    pub(crate) fn until(&mut self, name: &str, fits: impl Fn(&Value) -> bool) -> Vec<StreamEvent> {
        let mut seen = Vec::new();
        while let Some(event) = self.next() {
            let is_last = event.name == name && fits(&event.data);
            seen.push(event);
            if is_last {
                return seen;
            }
        }
        panic!("the stream ended before {name}: {seen:?}");
    }
}
