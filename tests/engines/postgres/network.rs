//! The network between an engine and its server: it can be cut, stand still, or lose an answer.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the network does with bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    /// It carries them.
    Open,
    /// It cuts the connection in place of the next answer, and carries everything then.
    LosesAnswer,
    /// It takes them and carries none.
    Silent,
}

#[derive(Debug)]
struct State {
    mode: AtomicU8,
    lost: AtomicUsize,
    connections: Mutex<Vec<TcpStream>>,
}

/// A network between a port of its own and a server.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) port: u16,
    state: Arc<State>,
}

impl Network {
    /// Makes a network to a port of this machine.
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State {
            mode: AtomicU8::new(Mode::Open as u8),
            lost: AtomicUsize::new(0),
            connections: Mutex::default(),
        });
        let shared = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let (to_server, to_client) = (shared.clone(), shared.clone());
                let both = [client.try_clone(), server.try_clone()].map(|end| end.expect("an end"));
                shared.connections.lock().expect("a list").extend(both);
                let (client_in, server_out) = (client.try_clone(), server.try_clone());
                let (client_in, server_out) =
                    (client_in.expect("an end"), server_out.expect("an end"));
                thread::spawn(move || carry(client_in, server_out, &to_server, false));
                thread::spawn(move || carry(server, client, &to_client, true));
            }
        });
        Self { port, state }
    }

    /// Cuts the connection in place of the next answer of the server.
    pub(crate) fn lose_answer(&self) {
        self.state.mode.store(Mode::LosesAnswer as u8, Ordering::SeqCst);
    }

    /// Returns the number of answers that were lost.
    pub(crate) fn lost(&self) -> usize {
        self.state.lost.load(Ordering::SeqCst)
    }

    /// Carries nothing any more, and does not say so.
    pub(crate) fn fall_silent(&self) {
        self.state.mode.store(Mode::Silent as u8, Ordering::SeqCst);
    }

    /// Carries everything again. What was under way is lost.
    pub(crate) fn come_back(&self) {
        self.cut();
        self.state.mode.store(Mode::Open as u8, Ordering::SeqCst);
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        for end in self.state.connections.lock().expect("a list").drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.cut();
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, state: &State, is_answer: bool) {
    let mut bytes = vec![0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mode = state.mode.load(Ordering::SeqCst);
        if mode == Mode::Silent as u8 {
            continue;
        }
        let loses = is_answer
            && state
                .mode
                .compare_exchange(
                    Mode::LosesAnswer as u8,
                    Mode::Open as u8,
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                )
                .is_ok();
        if loses {
            state.lost.fetch_add(1, Ordering::SeqCst);
            break;
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
