//! Requests that cannot be met: each is refused with the reason and the remedy, and never with a password.

use super::cluster::{Cluster, RUN};
use super::fake::answers;
use crate::postgres::database::PASSWORD;

/// Returns a cluster whose workflow is one prompt.
fn one_prompt() -> Cluster {
    let cluster = Cluster::new().file("START.md", "start");
    cluster.script(&[answers("start", "<result>done</result>")]);
    cluster
}

#[test]
fn host_that_allows_no_commands_names_the_option() {
    let cluster = Cluster::new().file("START.sh", "#!/bin/sh\necho '<result>done</result>'\n");
    let worker = cluster.machine("a").worker(1, &[]);
    let machine = cluster.machine("s");
    let refused = cluster.machine("s").run(&["--trust", "--max-restarts", "0"]).wait();
    refused.code(1).says("--allow commands").says("host a");
    drop(worker);
    let _worker = cluster.machine("a").worker(1, &["--allow", "commands"]);
    machine.raymond(&["retry", RUN]).ok();
}

#[test]
fn addresses_that_are_wrong_are_refused_without_their_password() {
    let cluster = one_prompt();
    let machine = cluster.machine("s");
    let flow = cluster.flow();
    let flow = flow.to_str().expect("a path");
    let none = format!("postgres://ray:{PASSWORD}@127.0.0.1:1/work");
    for (url, code, why) in [
        ("mysql://db/work", 64, "there is no engine `mysql`"),
        ("db.example", 64, "postgres://USER@HOST/DATABASE"),
        (&none, 69, "cannot be reached"),
    ] {
        for command in [&["run", flow, "--id", RUN][..], &["status", RUN], &["hosts"]] {
            let refused = machine.raymond(&[command, &["--engine", url]].concat());
            refused.code(code).says(why).lacks(PASSWORD);
        }
    }
}

#[test]
fn id_of_another_run_is_refused() {
    let cluster = one_prompt();
    let _worker = cluster.machine("a").worker(1, &[]);
    cluster.machine("s").run(&[]).wait().ok();
    for machine in ["s", "other"] {
        let refused = cluster.machine(machine).run(&[]).wait();
        refused.code(64).says(RUN).says("--id").lacks(PASSWORD);
    }
    assert_eq!(cluster.calls().len(), 1);
}

#[test]
fn shared_run_is_not_resumed_without_its_engine() {
    let cluster = one_prompt();
    let machine = cluster.machine("s");
    let dir = machine.path("ray");
    let dir = dir.to_str().expect("a path");
    let supervisor = machine.run(&["--dir", dir]);
    cluster.wait_events("run_started", 1);
    supervisor.kill9();
    let mut alone = machine.command(&["resume", RUN, "--dir", dir]);
    alone.env_remove("RAYMOND_ENGINE");
    let refused = machine.launch(alone, &["resume", RUN]).wait();
    refused.code(64).says(&cluster.engine.address().to_string()).says("--engine").lacks(PASSWORD);
}
