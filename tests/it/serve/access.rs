//! Access to the page: keys, hosts, origins, paths, and the size of what is sent.

use rustix::process::Signal;

use crate::support::{Test, pair};

#[test]
fn first_address_is_exchanged_for_a_bound_cookie() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let client = &page.client;
    let host = &client.address;
    let entry = client.raw(&format!("GET /?token={} HTTP/1.1\nhost: {host}", client.token), b"");
    assert_eq!((entry.status, entry.header("location")), (303, Some("/")));
    let cookie = entry.header("set-cookie").expect("a cookie").to_owned();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&client.token), "the token is in no cookie");
    let pair = cookie.split(';').next().expect("a pair");
    let with = |cookie: &str| {
        let head = format!("GET /api/runs HTTP/1.1\nhost: {host}\ncookie: {cookie}");
        client.raw(&head, b"").status
    };
    assert_eq!(with(pair), 200);
    assert_eq!(with(&format!("{pair}0")), 401);
    assert_eq!(with(&pair.replace(['1', '2', '3'], "4")), 401);
    let wrong = client.raw(&format!("GET /?token=x HTTP/1.1\nhost: {host}"), b"");
    assert_eq!((wrong.status, wrong.header("set-cookie")), (200, None), "only the page");

    let other = test.serve(&[]);
    let name = format!("raymond-{}", other.client.address.rsplit(':').next().expect("a port"));
    let (_, value) = pair.split_once('=').expect("a value");
    let other_host = &other.client.address;
    let head = format!("GET /api/runs HTTP/1.1\nhost: {other_host}\ncookie: {name}={value}");
    assert_eq!(other.client.raw(&head, b"").status, 401, "it holds for one server");
}

#[test]
fn nothing_is_served_without_key() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let host = &page.client.address;
    let ask = |method: &str, path: &str, more: &str| {
        page.client.raw(&format!("{method} {path} HTTP/1.1\nhost: {host}{more}"), b"")
    };
    for path in [
        "/api/runs",
        "/api/events",
        "/api/questions",
        "/api/workflows",
        "/api/openapi.json",
        "/api/runs/t",
        "/api/runs/none",
        "/api/runs/t/events",
        "/api/runs/t/log",
    ] {
        let reply = ask("GET", path, "");
        assert_eq!(reply.status, 401, "{path}");
        assert!(!reply.body.contains("START"), "{path}");
        assert_eq!(ask("GET", path, "\nauthorization: Bearer x").status, 401, "{path}");
    }
    for path in ["/", "/runs/t", "/assets/app.js"] {
        let reply = ask("GET", path, "");
        assert_eq!(reply.status, 200, "{path}");
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    }
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let test = Test::new();
    let page = test.serve(&[]);
    let (client, token) = (&page.client, &page.client.token);
    let host = &client.address;
    let port = host.rsplit(':').next().expect("a port");
    let get = |host: &str, more: &str| {
        let head =
            format!("GET /api/runs HTTP/1.1\nhost: {host}\nauthorization: Bearer {token}{more}");
        client.raw(&head, b"").status
    };
    assert_eq!(get(host, ""), 200);
    assert_eq!(get(&format!("localhost:{port}"), ""), 200);
    assert_eq!(get(&format!("evil.example:{port}"), ""), 421);
    assert_eq!(get("127.0.0.1", ""), 421);
    assert_eq!(get(host, "\nhost: evil.example"), 421);
    assert_eq!(get(host, "\norigin: http://evil.example"), 403);
    assert_eq!(get(host, "\nsec-fetch-site: cross-site"), 403);
    let send = |more: &str| {
        let head = format!(
            "POST /api/actions/stop HTTP/1.1\nhost: {host}\nauthorization: Bearer {token}\ncontent-length: 2{more}"
        );
        client.raw(&head, b"{}").status
    };
    let json = "\ncontent-type: application/json";
    assert_eq!(send(&format!("{json}\norigin: http://{host}")), 400, "let in, and it names no run");
    assert_eq!(send(""), 415);
    assert_eq!(send("\ncontent-type: text/plain"), 415);
    assert_eq!(send(&format!("{json}\norigin: null")), 403);
    assert_eq!(send(&format!("{json}\norigin: http://127.0.0.1:1")), 403);
}

#[test]
fn paths_lead_nowhere_else_and_bodies_are_bounded() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    let client = &page.client;
    for path in [
        "/api/runs/..",
        "/api/runs/../../../etc/passwd",
        "/api/runs/%2e%2e/log",
        "/api/runs/..%2f..%2fetc/log",
        "/assets/../../Cargo.toml",
        "/assets/",
        "/api/",
        "/etc/passwd",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    assert_eq!(client.get("/api/runs/none/log").status, 404);
    assert_eq!(client.get("/api/runs/t/agents/main.9").status, 404);
    let (host, token) = (&client.address, &client.token);
    let send = |body: &[u8]| {
        let head = format!(
            "POST /api/actions/signal HTTP/1.1\nhost: {host}\nauthorization: Bearer {token}\ncontent-type: application/json\ncontent-length: {}",
            body.len()
        );
        client.raw(&head, body).status
    };
    assert_eq!(send(&vec![b' '; 2 * 1024 * 1024]), 413);
    assert_eq!(send(b"{"), 400);
    assert_eq!(client.act("nothing", &serde_json::json!({})).status, 404);
    assert_eq!(client.get("/api/actions/stop").status, 405);
}

#[test]
fn token_is_printed_once_and_kept_nowhere() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let page = test.serve(&[]);
    page.client.document("/api/runs");
    let token = page.client.token.clone();
    assert!(!page.server.stderr().contains(&token));
    page.server.interrupt();
    let ended = page.server.wait();
    ended.ok();
    let mut folders = vec![test.dir(), test.root().join("home")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let content = String::from_utf8_lossy(&bytes);
                assert!(!content.contains(&token), "{}", path.display());
            }
        }
    }
}

#[test]
fn server_ends_at_once_while_streams_are_open() {
    let test = pair();
    test.run(&["START.md"]).ok();
    for signal in [Signal::INT, Signal::TERM] {
        let page = test.serve(&[]);
        let mut stream = page.client.stream("/api/runs/t/events", None);
        stream.until("whole", |_| true);
        page.server.signal(signal);
        page.server.wait().ok();
        assert!(stream.next().is_none(), "the stream has ended");
    }
}

#[test]
fn another_address_is_warned_of() {
    let test = Test::new();
    let mut page = test.serve(&["--listen", "0.0.0.0:0"]);
    page.server.wait_stderr("other machines can reach");
    assert!(page.first.starts_with("http://localhost:"), "{}", page.first);
}

#[test]
fn agent_may_not_serve() {
    let test = Test::new().env("RAYMOND_RUN", "t").env("RAYMOND_AGENT", "main");
    let refused = test.raymond(&["serve"]);
    refused.code(77).says("may not serve a page");
}

#[test]
fn token_is_handed_to_the_browser_in_a_private_file() {
    let test = Test::new();
    let bin = test.root().join("bin");
    std::fs::create_dir_all(&bin).expect("made");
    let script = "#!/bin/sh\nstat -c %a \"$1\" > \"$0.mode\"\ncat \"$1\" > \"$0.text\"\necho \"$@\" > \"$0.seen\"\n";
    std::fs::write(bin.join("xdg-open"), script).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(bin.join("xdg-open"), mode).expect("executable");
    let test = test.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let mut page = test.serve(&["--open"]);
    page.server.wait_file(&bin.join("xdg-open.seen"));
    let read = |ending: &str| {
        let path = bin.join(format!("xdg-open.{ending}"));
        crate::support::wait_until("it is written", || {
            std::fs::metadata(&path).is_ok_and(|file| file.len() > 0)
        });
        std::fs::read_to_string(path).expect("text")
    };
    let file = read("seen").trim().to_owned();
    assert!(!file.contains(&page.client.token), "{file}");
    assert_eq!(read("mode").trim(), "600");
    assert!(read("text").contains(&page.first));
    page.server.interrupt();
    page.server.wait().ok();
    assert!(!std::path::Path::new(&file).exists(), "it is gone with the server");
}

#[test]
fn browser_that_does_not_open_is_reported() {
    let test = Test::new();
    let bin = test.root().join("bin");
    std::fs::create_dir_all(&bin).expect("made");
    std::fs::write(bin.join("xdg-open"), "#!/bin/sh\nexit 3\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(bin.join("xdg-open"), mode).expect("executable");
    let test = test.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let mut page = test.serve(&["--open"]);
    page.server.wait_stderr("xdg-open has opened no browser");
}

#[test]
fn directory_that_is_none_is_refused_at_the_start() {
    let test = Test::new();
    let runs = test.root().join("elsewhere");
    std::fs::create_dir_all(&runs).expect("made");
    std::fs::write(runs.join("runs"), "").expect("written");
    let refused = test.raymond(&["serve", "--dir", runs.to_str().expect("a path")]);
    refused.code(74).stderr_has("read").stderr_has("elsewhere");
    test.raymond(&["serve", "--listen", "example.org:80"]).code(64).stderr_has("127.0.0.1:8123");
}
