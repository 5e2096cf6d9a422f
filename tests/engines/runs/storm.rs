//! Everything dies, again and again: workers, supervisors and the server. Nothing is lost, and nothing is paid twice.

use std::time::Duration;

use rustix::process::Signal;

use super::super::backend;
use super::cluster::Cluster;
use super::fake::{answers, works};
use super::flows::{fork, three};
use crate::support::wait_until;

/// The variable with the number of kills, and the number without it.
const KILLS: (&str, u32) = ("RAYMOND_TEST_KILLS", 20);

/// The variable with the first number of the sequence by which the victims are chosen.
const SEED: (&str, u64) = ("RAYMOND_TEST_SEED", 20_260_115);

/// A sequence of numbers that look random, and are the same again for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn variable<T: std::str::FromStr>((name, otherwise): (&str, T)) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn run_survives_kills_of_everything() {
    let server = backend::own_server();
    let cluster = three(Cluster::on(&server));
    let round = [
        answers("start", &fork()),
        works("work", "0.1", "<goto>REST.md</goto>"),
        works("rest", "0.05", "<goto>WORK.md</goto>"),
        answers("sum up", "<result>all done</result>"),
    ];
    cluster.script(&round);
    let (kills, seed) = (variable(KILLS), variable(SEED));
    let mut numbers = Numbers(seed);
    let machine = cluster.machine("a");
    let start = || machine.worker(2, &["--takes-runs"]);
    let mut worker = start();
    let mut first = Some(cluster.machine("s").run(&[]));
    cluster.wait_calls(4);
    let (mut of_workers, mut of_supervisors, mut of_servers) = (0, 0, 0);
    for _ in 0..kills {
        // It goes on between two kills, for a while that differs.
        let calls = cluster.calls().len();
        let pause = Duration::from_millis(numbers.below(300));
        match numbers.below(5) {
            0 | 1 => {
                std::thread::sleep(pause);
                worker.kill9();
                worker = start();
                of_workers += 1;
            }
            2 | 3 => {
                std::thread::sleep(pause);
                server.kill();
                server.start();
                of_servers += 1;
            }
            _ => {
                wait_until("a supervisor", || {
                    first.is_some() || cluster.detached_supervisor().is_some()
                });
                std::thread::sleep(pause);
                match first.take() {
                    Some(supervisor) => supervisor.kill9(),
                    None => drop(cluster.detached_supervisor().map(|one| one.signal(Signal::KILL))),
                }
                of_supervisors += 1;
            }
        }
        wait_until("it goes on", || cluster.calls().len() > calls + 2);
    }
    cluster.script(&[&[answers("rest", "<result>done</result>")], &round[..]].concat());
    cluster.wait_end();
    cluster.assert_started_once();
    let failed = cluster.events("turn_failed");
    assert!(failed.iter().all(|record| record["cause"] == "lost"), "{failed:?}");
    let count = (of_workers, of_supervisors, of_servers);
    assert!(kills < 10 || (of_workers > 0 && of_supervisors > 0 && of_servers > 0), "{count:?}");
}
