//! A web site on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// Starts a server that has only `/page`, for as long as the tests run; returns its address.
pub(super) fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream);
        }
    });
    format!("http://{address}")
}

fn answer(stream: TcpStream) {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        if stream.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
    }
    let (status, body) = match request.split(' ').nth(1) {
        Some("/page") => ("200 OK", "<h1>Docs</h1>"),
        _ => ("404 Not Found", "nothing here"),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    // A client that does not want the answer is gone.
    let _ = stream.get_mut().write_all(format!("{head}{body}").as_bytes());
}
