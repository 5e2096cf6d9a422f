//! The frames while the agents are scrolled by the wheel.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::served_run::PageServer;

/// Notes the time between each two frames, until it is told to end.
const RECORDER: &str = "(() => { const gaps = window.gaps = []; let last = performance.now(); \
    const next = (now) => { gaps.push(now - last); last = now; if (!window.isOver) requestAnimationFrame(next); }; \
    requestAnimationFrame(next); })()";

/// The speeds, in rows a second.
const SPEEDS: [u32; 2] = [50, 500];

/// The height of a row.
const ROW_PIXELS: u32 = 36;

/// The time between two frames, and how much of it the clock may err.
const FRAME_MS: f64 = 1000.0 / 60.0;
const JITTER_MS: f64 = 1.0;

/// Scrolls for so many seconds at each speed, and prints the late frames.
pub(crate) fn print(server: &PageServer, seconds: u32) {
    println!("frames in {seconds} s of scrolling: later than 16.7 ms, than 33.3 ms, the slowest");
    for speed in SPEEDS {
        let mut browser = Browser::open();
        browser.go(&server.first);
        browser.go(&format!("{}/runs/bench", server.origin));
        browser.click(".row.family", "agents");
        browser.wait("the members", "document.querySelectorAll('.row').length > 20");
        browser.value("new Promise((done) => setTimeout(done, 1000))");
        let gaps = scroll(&mut browser, speed * ROW_PIXELS, seconds);
        let late = |limit: f64| {
            let count = gaps.iter().filter(|gap| **gap > limit + JITTER_MS).count();
            100.0 * f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / share_of(gaps.len())
        };
        let slowest = gaps.iter().copied().fold(0.0, f64::max);
        println!(
            "  {speed:>4} rows/s {:>6} frames {:>6.1} % {:>6.1} % {slowest:>6.0} ms",
            gaps.len(),
            late(FRAME_MS),
            late(2.0 * FRAME_MS),
        );
    }
}

fn share_of(count: usize) -> f64 {
    f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX))
}

/// Returns the times between the frames, in milliseconds.
fn scroll(browser: &mut Browser, speed: u32, seconds: u32) -> Vec<f64> {
    browser.value(RECORDER);
    let gesture = json!({
        "x": 600, "y": 500, "yDistance": -i64::from(speed * seconds), "speed": speed,
        "gestureSourceType": "mouse", "preventFling": true,
    });
    browser.call("Input.synthesizeScrollGesture", &gesture);
    let gaps = browser.value("(window.isOver = true, window.gaps)");
    let top = browser.value("document.querySelector('.rows').scrollTop");
    assert!(top.as_f64().is_some_and(|top| top > 1000.0), "it was scrolled: {top}");
    gaps.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}
