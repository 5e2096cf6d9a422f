//! Scripted turns that their host has begun before it has a slot for them: whoever ends them does not wait for a slot.

use raymond::domain::id::RunId;
use rustix::process::Signal;

use super::cluster::{Cluster, RUN};
use super::ended::Running;
use super::fake::answers;
use crate::support::wait_until;

/// The number of turns that the host has begun, of which it has slots for two.
const BEGUN: usize = 16;

/// Starts a host with two slots, and a run of scripted turns that take longer than the test.
fn begun(cluster: &Cluster) -> (Running<'_>, Running<'_>) {
    let worker = cluster.machine("a").worker(2, &[]);
    let supervisor = cluster.machine("s").run(&["--agent", "scripted", "--shutdown", "1ms"]);
    wait_until("turns are begun ahead", || keys(cluster).len() == BEGUN);
    (worker, supervisor)
}

fn cluster() -> Cluster {
    let items = (0..20).map(|item| item.to_string()).collect::<Vec<_>>().join(",");
    let fork = format!(r#"<fork next="JOIN.md" each="[{items}]" as="item">WORK.md</fork>"#);
    Cluster::new()
        .file("START.md", "---\nmax_fan_out: 20\n---\nstart")
        .file("WORK.md", "work {{item}}")
        .file("JOIN.md", "---\njoin: all\n---\nsum up")
        .file(
            "replies.yaml",
            &format!(
                "START.md:\n  - {fork}\nWORK.md:\n  - reply: <result>done</result>\n    delay: 10m\n    repeat: true\nJOIN.md:\n  - <result>all done</result>\n"
            ),
        )
}

/// Returns the keys of the turns that the host has begun.
fn keys(cluster: &Cluster) -> Vec<String> {
    let run = RunId::parse(RUN).expect("an id");
    cluster.engine.begun(&run).unwrap_or_default()
}

#[test]
fn run_of_turns_started_ahead_is_stopped_and_continues() {
    let cluster = cluster();
    let (worker, supervisor) = begun(&cluster);
    let third = cluster.machine("c");
    third.raymond(&["stop", RUN, "--wait"]).ok();
    supervisor.wait().code(130);
    assert_eq!(keys(&cluster), [""; 0]);
    let resumed = third.start(&["resume", RUN]);
    wait_until("turns are begun again", || keys(&cluster).len() == BEGUN);
    drop((resumed, worker));
}

#[test]
fn agent_whose_turn_waits_for_a_slot_is_stopped_at_once() {
    let cluster = cluster();
    let (_worker, _supervisor) = begun(&cluster);
    let last = keys(&cluster).pop().expect("a key");
    let agent = last.split('/').nth(2).and_then(|stem| stem.split('-').next()).expect("an agent");
    cluster.machine("c").raymond(&["stop", RUN, "--agent", agent]).ok();
    wait_until("it has ended", || !keys(&cluster).contains(&last));
    assert!(keys(&cluster).len() >= 2, "the others go on");
}

#[test]
fn worker_that_leaves_gives_back_what_has_no_slot() {
    let cluster = cluster();
    let (mut worker, _supervisor) = begun(&cluster);
    // They are noted as begun before they have slots.
    wait_until("both slots are taken", || {
        let hosts = cluster.engine.hosts().unwrap_or_default();
        hosts.iter().any(|host| host.report.busy == 2)
    });
    worker.signal(Signal::INT);
    worker.wait_stderr("exits after its 2 running turns");
    wait_until("two turns are left", || keys(&cluster).len() == 2);
    worker.signal(Signal::INT);
    worker.wait().ok();
}

#[test]
fn run_is_stopped_after_its_worker_was_killed_and_came_back() {
    let cluster = cluster();
    let (worker, supervisor) = begun(&cluster);
    worker.kill9();
    let _worker = cluster.machine("a").worker(1, &[]);
    let third = cluster.machine("c");
    third.raymond(&["stop", RUN, "--wait"]).ok();
    supervisor.wait().code(130);
    assert_eq!(keys(&cluster), [""; 0]);
}

#[test]
fn turn_of_claude_code_does_not_start_before_it_has_a_slot() {
    let cluster = cluster();
    let items = "[&quot;a&quot;,&quot;b&quot;,&quot;c&quot;,&quot;d&quot;]";
    let fork = format!(r#"<fork next="JOIN.md" each="{items}" as="item">WORK.md</fork>"#);
    let held = super::fake::holds("work", "go", "<result>done</result>");
    cluster.script(&[answers("start", &fork), held, answers("sum up", "<result>ok</result>")]);
    let _worker = cluster.machine("a").worker(2, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(3);
    assert_eq!(keys(&cluster).len(), 2);
    cluster.release("go");
    supervisor.wait().ok();
    cluster.assert_started_once();
}
