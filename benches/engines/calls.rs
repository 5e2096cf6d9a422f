//! Calls of an engine: each thread has a run and a host of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use raymond::engine::Engine;

use crate::servers::BenchServer;
use crate::support::{key, lines, reply, request, served_host, started_run};

/// The text of a record of the usual size.
const RECORD: usize = 600;

/// Returns the appends of one record a second.
pub(crate) fn appends(server: &BenchServer, threads: usize, time: Duration) -> f64 {
    per_second(server, threads, time, |engine| {
        let (lease, text) = (started_run(engine), "x".repeat(RECORD));
        let mut last = 1;
        move |engine| {
            last += 1;
            engine.append(&lease, &lines(last, &[&text])).expect("it is appended");
        }
    })
}

/// Returns the requests a second that are sent, received, begun, answered, read and forgotten, one after the other in each thread.
pub(crate) fn round_trips(server: &BenchServer, threads: usize, time: Duration) -> f64 {
    per_second(server, threads, time, |engine| {
        let (lease, claim) = (started_run(engine), served_host(engine));
        let mut number = 0_u64;
        move |engine| {
            number += 1;
            let name = number.to_string();
            let key = [key(&lease, &name)];
            engine.send(&lease, &[request(&lease, &claim, &name)]).expect("sent");
            let received = engine.requests(&claim, &[], false, 10).expect("requests");
            assert_eq!(received.len(), 1);
            assert_eq!(engine.begin(&claim, &key).expect("begun").len(), 1);
            engine.reply(&claim, &[reply(&lease, &name)]).expect("answered");
            assert_eq!(engine.replies(&lease, &[], 10).expect("replies").len(), 1);
            engine.forget(&lease, &key).expect("forgotten");
        }
    })
}

fn per_second<C: FnMut(&dyn Engine)>(
    server: &BenchServer,
    threads: usize,
    time: Duration,
    prepare: impl Fn(&dyn Engine) -> C + Sync,
) -> f64 {
    let count = AtomicU64::new(0);
    let engines: Vec<Arc<dyn Engine>> = (0..threads.div_ceil(8)).map(|_| server.engine()).collect();
    std::thread::scope(|scope| {
        for number in 0..threads {
            let (engine, count, prepare) = (&engines[number / 8], &count, &prepare);
            scope.spawn(move || {
                let mut call = prepare(&**engine);
                let start = Instant::now();
                while start.elapsed() < time {
                    call(&**engine);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let count = u32::try_from(count.into_inner()).unwrap_or(u32::MAX);
    f64::from(count) / time.as_secs_f64()
}
