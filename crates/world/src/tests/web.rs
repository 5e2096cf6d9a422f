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

    /// Returns the requests.
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
        "/inside" => ("302 Found\r\nlocation: http://10.0.0.1/", Vec::new()),
        "/by-name" => ("302 Found\r\nlocation: http://inside.test/", Vec::new()),
        "/metadata" => ("307 Temporary Redirect\r\nlocation: http://0xa9fea9fe/x", Vec::new()),
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
async fn fetch_decodes_charset_and_follows_redirect() {
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
async fn failed_fetch_is_an_error_unless_allowed() {
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
async fn unreachable_server_gives_status_0() {
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
async fn only_http_urls_are_fetched() {
    let ground = Ground::new();
    assert!(ground.why(fetch("file:///etc/passwd")).await.contains("is not a web page"));
    assert!(ground.why(allowed("not a url")).await.contains("is not a url"));
    assert!(ground.why(fetch(" ")).await.contains("the url is empty"));
    let server = Server::new(12);
    let why = ground.why(fetch(&server.at("/round"))).await;
    assert!(why.contains("too many redirects"), "{why}");
    assert!(!ground.why(fetch(&server.at("/file"))).await.contains("root:"));
    server.asked();
}

#[tokio::test]
async fn stop_ends_a_pending_fetch() {
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
    assert_eq!(performed, Err(OperationError::Interrupted));
}

#[tokio::test]
async fn proxy_from_environment_is_used() {
    let server = Server::new(1);
    let proxy = format!("http://{}", server.address);
    let ground = Ground::with(
        CustomTypeRegistry::default(),
        &[("HTTP_PROXY", &proxy), ("no_proxy", "b.test")],
    );
    let why = ground.why(fetch("http://a.test/x")).await;
    assert_eq!(why, "cannot fetch http://a.test/x: the server answered 404");
    assert!(server.asked()[0].starts_with("GET http://a.test/x HTTP/1.1"));
}

/// Returns the end of a refusal's message.
fn advice(allow: &str) -> String {
    format!(", and only public addresses may be fetched; to allow it: --allow-address {allow}")
}

#[tokio::test]
async fn non_public_address_is_refused_in_every_notation() {
    let ground = Ground::allowing(&[], &[]);
    let spellings = [
        ("http://127.0.0.1/", "127.0.0.1 is a loopback address"),
        ("http://2130706433/", "127.0.0.1 is a loopback address"),
        ("http://0x7f.1/", "127.0.0.1 is a loopback address"),
        ("http://0177.0.0.01:8080/", "127.0.0.1 is a loopback address"),
        ("http://127.0.0.1./", "127.0.0.1 is a loopback address"),
        ("http://me:secret@10.1.2.3/", "10.1.2.3 is a private address"),
        ("http://[::1]/", "::1 is a loopback address"),
        ("http://[::ffff:10.0.0.1]/", "10.0.0.1 is a private address"),
        ("http://[::ffff:7f00:1]/", "127.0.0.1 is a loopback address"),
        ("http://[64:ff9b::a00:1]/", "64:ff9b::a00:1 is a private address"),
        ("https://169.254.169.254/latest/meta-data/", "169.254.169.254 is a metadata address"),
        ("http://0/", "0.0.0.0 is an address of this host"),
    ];
    for (url, kind) in spellings {
        for asked in [fetch(url), allowed(url)] {
            let why = ground.why(asked).await;
            assert!(why.contains(kind) && why.contains("--allow-address"), "{url}: {why}");
            assert!(!why.contains("secret"), "{why}");
        }
    }
    let why = ground.why(fetch("http://10.0.0.1/x")).await;
    assert_eq!(
        why,
        format!(
            "cannot fetch http://10.0.0.1/x: 10.0.0.1 is a private address{}",
            advice("10.0.0.1")
        )
    );
}

#[tokio::test]
async fn hostname_is_checked_by_its_resolved_address() {
    let server = Server::new(3);
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    let here = format!("http://here.test:{port}/page");
    let ground = Ground::allowing(&[], &[]);
    let why = ground.why(allowed(&here)).await;
    let leads = "here.test leads to 127.0.0.1, a loopback address";
    assert_eq!(why, format!("cannot fetch {here}: {leads}{}", advice("here.test")));
    assert!(ground.why(fetch("http://inside.test/")).await.contains("inside.test leads to "));
    for rule in ["127.0.0.0/8", "here.test", &format!("here.test:{port}")] {
        let ground = Ground::allowing(&[rule], &[]);
        assert_eq!(ground.value(fetch(&here)).await["status"], 200, "{rule}");
    }
    let other = Ground::allowing(&["here.test:1"], &[]).why(fetch(&here)).await;
    assert!(other.ends_with(&format!("--allow-address here.test:{port}")), "{other}");
    server.asked();
}

#[tokio::test]
async fn only_allowed_addresses_of_a_hostname_are_connected_to() {
    let server = Server::new(1);
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    let ground = Ground::allowing(&["127.0.0.1"], &[]);
    let page = ground.value(fetch(&format!("http://both.test:{port}/page"))).await;
    assert_eq!(page["status"], 200);
    server.asked();
}

#[tokio::test]
async fn redirect_target_is_checked_before_it_is_followed() {
    let ground = Ground::new();
    let server = Server::new(3);
    for (path, kind) in [
        ("/inside", "10.0.0.1 is a private address"),
        ("/by-name", "inside.test leads to "),
        ("/metadata", "169.254.169.254 is a metadata address of clouds"),
    ] {
        let why = ground.why(allowed(&server.at(path))).await;
        assert!(why.contains(kind) && why.contains("--allow-address"), "{path}: {why}");
    }
    server.asked();
}

#[tokio::test]
async fn refused_url_is_not_requested_from_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = format!("http://{}", listener.local_addr().expect("bound"));
    let ground = Ground::allowing(&[], &[("http_proxy", &proxy)]);
    for url in ["http://10.0.0.1/", "http://inside.test/", "http://127.0.0.1:1/"] {
        let why = ground.why(allowed(url)).await;
        assert!(why.contains("--allow-address"), "{url}: {why}");
    }
    listener.set_nonblocking(true).expect("set");
    assert!(listener.accept().is_err(), "nobody has asked the proxy");
}
