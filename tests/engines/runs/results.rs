//! The file with the results of a join is on the host of the agent that reads it.

use std::path::Path;

use serde_json::Value;

use super::cluster::Cluster;
use super::fake::answers;
use super::flows::fork;

#[test]
fn results_of_other_hosts_are_in_a_file_of_the_host_that_reads_them() {
    let cluster = Cluster::new()
        .file("START.md", "start")
        .file("WORK.md", "work {{item}}")
        .file("JOIN.md", "---\njoin: all\n---\nsum up what is in {{results_file}}");
    cluster.script(&[
        answers("start", &fork()),
        answers("work", "<result>done</result>"),
        answers("sum up", "<result>all done</result>"),
    ]);
    let shared = cluster.machine("s").path("work");
    let shared = ["--shared-dir", shared.to_str().expect("a path")];
    let _one = cluster.machine("a").worker(1, &shared);
    let _other = cluster.machine("b").worker(1, &shared);
    cluster.machine("s").run(&shared).wait().ok();
    cluster.assert_paid_once();
    let placed = cluster.log();
    let placed = placed.iter().flat_map(|record| record["placed"].as_array().into_iter().flatten());
    let mut hosts: Vec<&str> = placed.filter_map(|placed| placed["host"].as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    assert_eq!(hosts, ["a", "b"]);
    let calls = cluster.calls();
    let end = calls.iter().find(|call| call.prompt.contains("sum up")).expect("the last turn");
    let path = end.prompt.rsplit(' ').next().expect("a path").trim();
    let host = end.env.get("RAYMOND_DIR").expect("the host's directory");
    assert!(path.starts_with(host.as_str()) && path.contains("/ray/"), "{path} in {host}");
    let results = std::fs::read(Path::new(path)).expect("the file is there");
    let results: Value = serde_json::from_slice(&results).expect("a list");
    assert_eq!(results.as_array().map(Vec::len), Some(3), "{results}");
}
