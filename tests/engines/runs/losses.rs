//! Hosts that are declared lost: their agents go on elsewhere, and what comes back begins nothing more.

use rustix::process::Signal;

use super::cluster::Cluster;
use super::fake::holds;
use super::flows::{TURNS, fork, held_at_work, three};

#[test]
fn agents_of_a_lost_host_continue_at_another() {
    let cluster = three(Cluster::new());
    cluster.script(&[&[holds("start", "go", &fork())], &held_at_work()[..]].concat());
    let lost = cluster.machine("a").worker(3, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(1);
    let _other = cluster.machine("b").worker(3, &[]);
    lost.signal(Signal::STOP);
    let third = cluster.machine("c");
    third.raymond(&["hosts", "lost", "a"]).ok().says("may be paid for twice");
    third.raymond(&["hosts", "drain", "a"]).code(64).says("nothing to drain");
    cluster.wait_calls(2);
    cluster.release("go");
    supervisor.wait().ok();
    cluster.wait_end();
    let placed = cluster.events("agents_placed");
    assert!(placed.iter().any(|record| record["lost"][0] == "a"), "{placed:?}");
    let calls = cluster.calls();
    let (before, after): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.is_on("a"));
    assert_eq!((before.len(), after.len()), (1, TURNS), "{calls:?}");
    let log = cluster.log();
    lost.signal(Signal::CONT);
    lost.wait().code(73).says("declared lost");
    assert_eq!(cluster.calls().len(), calls.len(), "it began something");
    assert_eq!(cluster.log(), log);
}

#[test]
fn host_that_is_silent_for_longer_than_its_timeout_is_lost() {
    let cluster = three(Cluster::new());
    cluster.script(&[&[holds("start", "go", &fork())], &held_at_work()[..]].concat());
    let silent = cluster.machine("a").worker(3, &["--host-timeout", "10s"]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(1);
    silent.kill9();
    let _other = cluster.machine("b").worker(3, &["--host-timeout", "10s"]);
    cluster.wait_calls(2);
    cluster.release("go");
    supervisor.wait().ok().says("host a counts as lost");
    cluster.wait_end();
    let placed = cluster.events("agents_placed");
    assert!(placed.iter().any(|record| record["lost"][0] == "a"), "{placed:?}");
}

#[test]
fn agents_of_a_lost_host_keep_their_sessions() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let lost = cluster.machine("a").worker(3, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    let _other = cluster.machine("b").worker(3, &[]);
    lost.kill9();
    cluster.machine("c").raymond(&["hosts", "lost", "a"]).ok();
    cluster.wait_calls(7);
    cluster.release("go");
    supervisor.wait().ok();
    cluster.wait_end();
    let calls = cluster.calls();
    let end = calls.iter().find(|call| call.prompt.contains("sum up")).expect("the last turn");
    assert!(end.is_on("b"), "{end:?}");
    assert_eq!(end.history, ["start"], "its session began on the lost host");
    let rests: Vec<_> = calls.iter().filter(|call| call.prompt == "rest").collect();
    assert!(rests.iter().all(|call| call.is_on("b") && call.history.len() == 1), "{rests:?}");
    assert_eq!(rests.len(), 3);
    let kept = cluster.log().iter().filter(|record| record["kept_session"].is_object()).count();
    assert_eq!(kept, TURNS, "each turn's session is kept");
}
