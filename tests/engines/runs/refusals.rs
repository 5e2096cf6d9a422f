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
        ("mysql://db/work", 64, "unknown engine `mysql`"),
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
fn worker_without_the_shared_directory_of_a_run_names_the_option() {
    let cluster = one_prompt();
    let root = cluster.root().to_str().expect("a path");
    let worker = cluster.machine("a").worker(1, &[]);
    let outside = cluster.machine("s").run(&["--shared-dir", "/usr"]).wait();
    outside.code(64).says("not below the shared directory /usr");
    cluster.machine("s").run(&["--shared-dir", root]).wait().code(69).says("--shared-dir");
    drop(worker);
    let _worker = cluster.machine("a").worker(1, &["--shared-dir", root]);
    cluster.machine("s").raymond(&["resume", RUN]).ok();
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
fn shared_run_is_not_changed_without_its_engine() {
    let cluster = one_prompt();
    let machine = cluster.machine("s");
    let dir = machine.path("ray");
    let dir = dir.to_str().expect("a path");
    let supervisor = machine.run(&["--dir", dir]);
    cluster.wait_events("run_started", 1);
    supervisor.kill9();
    for command in [&["resume", RUN][..], &["stop", RUN], &["answer", RUN, "START.md=yes"]] {
        let mut alone = machine.command(&[command, &["--dir", dir]].concat());
        alone.env_remove("RAYMOND_ENGINE");
        let refused = machine.launch(alone, command).wait();
        let engine = cluster.engine.address().to_string();
        refused.code(64).says(&engine).says("--engine").lacks(PASSWORD);
    }
}

#[test]
fn engine_of_the_configuration_is_used_unless_another_is_named() {
    let cluster = one_prompt();
    let _worker = cluster.machine("a").worker(1, &[]);
    cluster.machine("s").run(&[]).wait().ok();
    let machine = cluster.machine("b");
    let directory = machine.path("home/.config/raymond");
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("config.yaml");
    let in_config = |arguments: &[&str]| {
        let mut command = machine.command(arguments);
        command.env_remove("RAYMOND_ENGINE");
        machine.launch(command, arguments).wait()
    };
    std::fs::write(&file, format!("engine: {}\n", cluster.backend.url())).expect("written");
    let listed = |arguments: &[&str]| in_config(arguments).ok().json().as_array().map(Vec::len);
    assert_eq!(listed(&["list", "--json"]), Some(1));
    assert_eq!(listed(&["list", "--json", "--engine", "none"]), Some(0));
    in_config(&["hosts"]).ok().says("alive");
    // A run in the background has its log here, so that has to be meant.
    let flow = cluster.flow();
    let start = ["start", flow.to_str().expect("a path"), "--id", "here"];
    in_config(&start).code(64).says("`raymond start` starts runs on this machine");
    in_config(&[&start[..], &["--engine", "none"]].concat()).ok().says("here");
    assert_eq!(listed(&["list", "--json", "--engine", "none"]), Some(1));
    assert_eq!(cluster.engine.runs().expect("runs").len(), 1);
    let run = ["run", flow.to_str().expect("a path"), "--shared-dir", "/usr"];
    in_config(&run).code(64).says("is not below the shared directory");
    let here = [&run[..], &["--engine", "none"]].concat();
    in_config(&here).code(64).says("--shared-dir is for a run on several hosts");
    std::fs::write(&file, "engine: a\nengin: b\n").expect("written");
    let refused = in_config(&["list"]);
    refused.code(65).says("config.yaml:2:1").says("engin");
}
