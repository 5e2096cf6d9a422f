//! A headless Chromium that a test drives by its debugging protocol, through pipes: no port and no further program.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

/// The time after which something counts as lost.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Starts Chromium with its pipes at the descriptors that it wants. Its sandbox needs rights that a container lacks.
const SCRIPT: &str = "exec chromium --headless=new --remote-debugging-pipe --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --no-first-run --disable-extensions --disable-background-networking --hide-scrollbars --user-data-dir=\"$HOME/profile\" about:blank \
    3<&0 4>&1 0</dev/null 1>&2";

/// Keeps the messages that a page shows for a while.
const KEEP_SAID: &str = "window.said = []; \
    new MutationObserver((changes) => { for (const change of changes) for (const node of change.addedNodes) { \
    if (node.nodeType !== 1) continue; \
    for (const one of [node, ...node.querySelectorAll('[role=status], .notice')]) \
    if (one.matches('[role=status], .notice')) window.said.push(one.textContent); } }) \
    .observe(document, { childList: true, subtree: true });";

/// A browser with one tab.
pub(crate) struct Browser {
    child: Child,
    send: ChildStdin,
    replies: Receiver<Value>,
    next: u64,
    session: String,
    /// The messages of the page's console, and its errors.
    pub(crate) complaints: Vec<String>,
    _home: tempfile::TempDir,
}

impl Browser {
    pub(crate) fn open() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("Chromium starts");
        let send = child.stdin.take().expect("a pipe");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while output.read_until(0, &mut bytes).is_ok_and(|count| count > 0) {
                bytes.pop();
                let Ok(reply) = serde_json::from_slice(&bytes) else { break };
                if sender.send(reply).is_err() {
                    break;
                }
                bytes.clear();
            }
        });
        let mut browser = Self {
            child,
            send,
            replies,
            next: 0,
            session: String::new(),
            complaints: Vec::new(),
            _home: home,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            &json!({ "targetId": target["targetId"], "flatten": true }),
        );
        let session = attached["sessionId"].as_str().expect("a session");
        session.clone_into(&mut browser.session);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": KEEP_SAID }));
        browser.size(1200, 800);
        browser
    }

    /// Calls a method, and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.send.write_all(format!("{message}\0").as_bytes()).expect("sent");
        loop {
            let reply = self.replies.recv_timeout(TIMEOUT).expect("a reply of Chromium");
            if reply["id"] == id {
                assert!(reply["error"].is_null(), "{method}: {reply}");
                return reply["result"].clone();
            }
            self.listen(&reply);
        }
    }

    fn listen(&mut self, event: &Value) {
        let parameters = &event["params"];
        let text = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => parameters["exceptionDetails"].to_string(),
            Some("Log.entryAdded") => parameters["entry"].to_string(),
            Some("Runtime.consoleAPICalled") => parameters["args"].to_string(),
            _ => return,
        };
        self.complaints.push(text);
    }

    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
    }

    pub(crate) fn dark(&mut self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.call("Emulation.setEmulatedMedia", &features);
    }

    #[track_caller]
    pub(crate) fn go(&mut self, address: &str) {
        self.call("Page.navigate", &json!({ "url": address }));
        self.wait("the page", "document.readyState === 'complete'");
    }

    /// Returns the value of an expression on the page.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let result = self.call("Runtime.evaluate", &asked);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true on the page.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, expression: &str) {
        let start = Instant::now();
        // While a page is replaced, there is nothing to ask.
        let asked =
            json!({ "expression": format!("Boolean({expression})"), "returnByValue": true });
        while self.call("Runtime.evaluate", &asked)["result"]["value"] != true {
            if start.elapsed() > TIMEOUT {
                let text = self.value("document.body.innerText");
                panic!("never came about: {what}\n{text}\n{:?}", self.complaints);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub(crate) fn wait_text(&mut self, text: &str) {
        let quoted = json!(text);
        self.wait(text, &format!("document.body.innerText.includes({quoted})"));
    }

    /// Waits until the page has shown a message, which goes away by itself, since the one that was waited for before.
    #[track_caller]
    pub(crate) fn wait_said(&mut self, text: &str) {
        let place = format!("window.said.findIndex((one) => one.includes({})) + 1", json!(text));
        self.wait(text, &format!("window.said.splice(0, {place}).length"));
    }

    /// Clicks on the first visible element of a selector that has a text, with the mouse.
    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str, text: &str) {
        let find = format!(
            "[...document.querySelectorAll({})].find((one) => one.innerText.includes({}) && one.getClientRects().length)",
            json!(selector),
            json!(text)
        );
        self.wait(&format!("{selector} with {text}"), &find);
        let at = self.middle_of(&find);
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({ "type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Turns the wheel over the middle of an element, by so many pixels.
    #[track_caller]
    pub(crate) fn wheel(&mut self, selector: &str, pixels: i32) {
        let at = self.middle_of(&format!("document.querySelector({})", json!(selector)));
        let event =
            json!({ "type": "mouseWheel", "x": at[0], "y": at[1], "deltaX": 0, "deltaY": pixels });
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Returns the middle of an element, which is brought into view, once it stays there and nothing covers it. What is
    /// above it may still be loaded.
    #[track_caller]
    fn middle_of(&mut self, find: &str) -> Value {
        let middle = format!(
            "(() => {{ const one = {find}; if (!one) return null; one.scrollIntoView({{ block: 'center' }}); \
             const box = one.getBoundingClientRect(); const at = [box.x + box.width / 2, box.y + box.height / 2]; \
             return one.contains(document.elementFromPoint(...at)) ? at : null; }})()"
        );
        let start = Instant::now();
        let mut before = Value::Null;
        loop {
            let at = self.value(&middle);
            if !at.is_null() && at == before {
                return at;
            }
            assert!(start.elapsed() < TIMEOUT, "it moves, or is covered: {find}");
            before = at;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key, such as `Enter` or `ArrowDown`.
    pub(crate) fn key(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "End" => 35,
            other => panic!("the code of {other}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            // A button is pressed by what Enter writes.
            if key == "Enter" && kind == "keyDown" {
                event["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Types a text into what has the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Writes a picture of the page, if a directory for pictures is named.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("RAYMOND_PICTURES") else { return };
        let taken = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        let data = taken["data"].as_str().expect("a picture");
        let path = Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(path, from_base64(data)).expect("written");
    }

    /// Checks that the page has neither failed nor complained.
    #[track_caller]
    pub(crate) fn assert_calm(&mut self) {
        self.call("Runtime.evaluate", &json!({ "expression": "1" }));
        assert!(self.complaints.is_empty(), "{:#?}", self.complaints);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(i32::try_from(self.child.id()).unwrap_or_default()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(u32::from(byte - b'A')),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits: Vec<u32> = text.bytes().filter_map(value).collect();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for four in digits.chunks(4) {
        let whole =
            four.iter().enumerate().fold(0, |all, (at, digit)| all | (digit << (18 - 6 * at)));
        let three = whole.to_be_bytes();
        bytes.extend_from_slice(&three[1..four.len()]);
    }
    bytes
}
