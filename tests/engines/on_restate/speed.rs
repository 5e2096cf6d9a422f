//! The speed of a server on this machine, for the table of decision 23. `cargo test --release … -- --ignored speed` prints it.

use std::thread;
use std::time::{Duration, Instant};

use raymond::engine::Engine;

use super::backend::own_server;
use crate::support::{key, lines, reply, request, served_host, started_run};

const TIME: Duration = Duration::from_secs(5);

/// Returns how often something is done in a second.
fn rate(mut step: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < TIME {
        step(count);
        count += 1;
    }
    f64::from(u32::try_from(count).expect("a count")) / start.elapsed().as_secs_f64()
}

#[test]
#[ignore = "it measures, and judges nothing"]
#[expect(clippy::print_stderr, reason = "it is what somebody has asked for")]
fn speed_of_appends_and_mail() {
    let server = own_server();
    let engine = server.engine();
    let lease = started_run(&*engine);
    let text = format!(r#"{{"text": "{}"}}"#, "x".repeat(500));
    let one = rate(|count| engine.append(&lease, &lines(count + 2, &[&text])).expect("a line"));
    let lease = started_run(&*engine);
    let texts = vec![text.as_str(); 16];
    let batches =
        rate(|count| engine.append(&lease, &lines(count * 16 + 2, &texts)).expect("lines"));
    eprintln!("appends: {one:.0}/s of one line, {batches:.0}/s of 16 lines");
    let several: f64 = thread::scope(|scope| {
        let writer = || {
            let lease = started_run(&*engine);
            rate(|count| engine.append(&lease, &lines(count + 2, &[&text])).expect("a line"))
        };
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(writer)).collect();
        writers.into_iter().map(|writer| writer.join().expect("a rate")).sum()
    });
    eprintln!("appends to 8 runs at once: {several:.0}/s");
    let mail = |batch: usize| {
        let (lease, claim) = (started_run(&*engine), served_host(&*engine));
        let engine: &dyn Engine = &*engine;
        rate(|count| {
            let names: Vec<String> = (0..batch).map(|one| format!("{count}-{one}")).collect();
            let keys: Vec<String> = names.iter().map(|name| key(&lease, name)).collect();
            let sent: Vec<_> = names.iter().map(|name| request(&lease, &claim, name)).collect();
            engine.send(&lease, &sent).expect("sent");
            assert_eq!(engine.requests(&claim, &[], false, 100).expect("mail").len(), batch);
            engine.begin(&claim, &keys).expect("begun");
            let replies: Vec<_> = names.iter().map(|name| reply(&lease, name)).collect();
            engine.reply(&claim, &replies).expect("answered");
            assert_eq!(engine.replies(&lease, &[], 100).expect("replies").len(), batch);
            engine.forget(&lease, &keys).expect("over");
        })
    };
    let (one, many) = (mail(1), mail(16));
    eprintln!("round trips of mail: {one:.0}/s of one request, {many:.0}/s of 16 requests");
}
