//! The times from a navigation to what is seen, each in a browser that has never been here.

use serde_json::json;

use crate::browser::Browser;
use crate::served_run::PageServer;

/// Notes when the rows of the agents are there.
const ROWS_OBSERVER: &str = "new MutationObserver((_, watch) => { if (!document.querySelector('.row')) return; \
    window.rowsAt = performance.now(); watch.disconnect(); }).observe(document, { childList: true, subtree: true });";

/// The times of one load, in milliseconds.
struct LoadTimes {
    runs: f64,
    run: f64,
    rows: f64,
}

/// Measures so many loads, and prints their medians.
pub(crate) fn print(server: &PageServer, times: usize) {
    let all: Vec<LoadTimes> = (0..times).map(|_| load(server)).collect();
    println!("time from the navigation on, of {times} cold loads: median, slowest");
    let figure = |name: &str, part: fn(&LoadTimes) -> f64| {
        let mut sorted: Vec<f64> = all.iter().map(part).collect();
        sorted.sort_by(f64::total_cmp);
        let (middle, last) = (sorted[sorted.len() / 2], sorted[sorted.len() - 1]);
        println!("  {name:<34} {middle:>6.0} ms {last:>6.0} ms");
    };
    figure("first paint of the runs", |figures| figures.runs);
    figure("first paint of the run", |figures| figures.run);
    figure("its agents are there", |figures| figures.rows);
    println!();
}

fn load(server: &PageServer) -> LoadTimes {
    let mut browser = Browser::open();
    browser.go(&server.first);
    let runs = first_paint(&mut browser);
    browser.call("Network.clearBrowserCache", &json!({}));
    browser.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": ROWS_OBSERVER }));
    browser.go(&format!("{}/runs/bench", server.origin));
    let painted = first_paint(&mut browser);
    browser.wait("the agents", "window.rowsAt");
    let rows = browser.value("window.rowsAt").as_f64().expect("a time");
    LoadTimes { runs, run: painted, rows }
}

/// Returns the time of the first paint with content.
fn first_paint(browser: &mut Browser) -> f64 {
    let entry = "performance.getEntriesByName('first-contentful-paint')[0]";
    browser.wait("a paint", entry);
    browser.value(&format!("{entry}.startTime")).as_f64().expect("a time")
}
