//! Pages, from a server on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use serde_json::json;

use super::*;

/// A server that answers so many requests, then ends.
struct Server {
    address: String,
    thread: JoinHandle<Vec<String>>,
}

impl Server {
    fn new(answers: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let thread = std::thread::spawn(move || {
            listener.incoming().take(answers).map(|stream| answer(stream.expect("one"))).collect()
        });
        Self { address, thread }
    }

    fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What was asked for.
    fn asked(self) -> Vec<String> {
        self.thread.join().expect("it ends")
    }
}

fn answer(stream: TcpStream) -> String {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut request).expect("read") > 0, "{request}");
    }
    let path = request.split(' ').nth(1).expect("a path").to_owned();
    let (head, body): (&str, Vec<u8>) = match path.as_str() {
        "/page" => ("200 OK\r\ncontent-type: text/html; charset=utf-8", "gr\u{fc}n".into()),
        "/latin" => {
            ("200 OK\r\nContent-Type: text/html; Charset=\"iso-8859-1\"", b"gr\xfcn".into())
        }
        "/moved" => ("302 Found\r\nlocation: /page", Vec::new()),
        "/round" => ("302 Found\r\nlocation: /round", Vec::new()),
        "/file" => ("302 Found\r\nlocation: file:///etc/passwd", Vec::new()),
        "/large" => ("200 OK", vec![b'x'; 10 * 1024 * 1024 + 1]),
        _ => ("404 Not Found", b"nothing here".into()),
    };
    let head =
        format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let stream = stream.get_mut();
    // Who does not want all of it goes away.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    request
}

fn fetch(url: &str) -> Value {
    json!({"type": "web_fetch", "url": url})
}

fn allowed(url: &str) -> Value {
    json!({"type": "web_fetch", "url": url, "allow_failure": true})
}

#[tokio::test]
async fn a_page_is_fetched_in_its_encoding_and_where_it_has_moved_to() {
    let ground = Ground::new();
    let server = Server::new(4);
    let page = |url: &str| json!({"status": 200, "content": "grün", "url": url});
    for (path, end) in [("/page", "/page"), ("/latin", "/latin"), ("/moved", "/page")] {
        assert_eq!(ground.value(fetch(&server.at(path))).await, page(&server.at(end)));
    }
    let asked = server.asked();
    assert!(asked[0].contains(concat!("user-agent: raymond/", env!("CARGO_PKG_VERSION"))));
}

#[tokio::test]
async fn a_failure_is_one_unless_it_is_allowed() {
    let ground = Ground::new();
    let server = Server::new(4);
    let (url, large) = (server.at("/none"), server.at("/large"));
    let why = ground.why(fetch(&url)).await;
    assert_eq!(why, format!("cannot fetch {url}: the server answered 404"));
    let expected = json!({"status": 404, "content": "nothing here", "url": url});
    assert_eq!(ground.value(allowed(&url)).await, expected);
    let why = ground.why(fetch(&large)).await;
    assert_eq!(why, format!("cannot fetch {large}: the page is larger than 10 MiB"));
    let expected = json!({"status": 200, "content": null, "url": large});
    assert_eq!(ground.value(allowed(&large)).await, expected);
    server.asked();
}

#[tokio::test]
async fn where_nobody_answers_the_status_is_0() {
    let ground = Ground::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = listener.local_addr().expect("bound").to_string();
    drop(listener);
    let url = format!("http://me:secret@{host}/");
    let expected = json!({"status": 0, "content": null, "url": format!("http://***@{host}/")});
    assert_eq!(ground.value(allowed(&url)).await, expected);
    let why = ground.why(fetch(&url)).await;
    assert!(why.starts_with(&format!("cannot fetch http://***@{host}/: ")), "{why}");
    assert!(why.contains("refused") && !why.contains("secret"), "{why}");
}

#[tokio::test]
async fn only_pages_of_the_web_are_fetched() {
    let ground = Ground::new();
    assert!(ground.why(fetch("file:///etc/passwd")).await.contains("is no page of the web"));
    assert!(ground.why(allowed("not a url")).await.contains("is no url"));
    assert!(ground.why(fetch(" ")).await.contains("the url is empty"));
    let server = Server::new(12);
    let why = ground.why(fetch(&server.at("/round"))).await;
    assert!(why.contains("too many redirects"), "{why}");
    assert!(!ground.why(fetch(&server.at("/file"))).await.contains("root:"));
    server.asked();
}

#[tokio::test]
async fn a_stop_ends_a_fetch_that_waits() {
    let ground = Ground::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let operation = serde_json::from_value(fetch(&url)).expect("an operation");
    let accepted = tokio::task::spawn_blocking(move || listener.accept());
    let stopping = async {
        let _held = accepted.await.expect("it waits").expect("somebody asks");
        ground.world.stop();
    };
    let (performed, ()) = tokio::join!(ground.world.perform("main.1", &operation, false), stopping);
    assert_eq!(performed, Performed::Interrupted);
}

#[tokio::test]
async fn the_proxy_of_the_environment_is_asked() {
    let server = Server::new(1);
    let proxy = format!("http://{}", server.address);
    let ground =
        Ground::with(Registry::default(), &[("HTTP_PROXY", &proxy), ("no_proxy", "b.test")]);
    let why = ground.why(fetch("http://a.test/x")).await;
    assert_eq!(why, "cannot fetch http://a.test/x: the server answered 404");
    assert!(server.asked()[0].starts_with("GET http://a.test/x HTTP/1.1"));
}
