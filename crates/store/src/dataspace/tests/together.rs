//! Several processes at one dataspace.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use super::super::Dataspace;
use super::{Place, at, step};
use raymond_model::fact::Fact;

/// The variables that tell the child its dataspace and its operation.
const DIR: &str = "DATASPACE_DIR";
const RUN: &str = "DATASPACE_RUN";

/// Returns this test program again, as a process that runs one of its tests.
pub(super) fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", &format!("dataspace::tests::{test}"), "--nocapture"]);
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Returns the dataspace and the word that a parent has given to its child.
pub(super) fn given() -> Option<(Dataspace, String)> {
    let dir = std::env::var_os(DIR)?;
    Some((at(dir.as_ref()), std::env::var(RUN).ok()?))
}

pub(super) fn tell<'command>(
    command: &'command mut Command,
    place: &Place,
    word: &str,
) -> &'command mut Command {
    command.env(DIR, place.dir.path()).env(RUN, word)
}

#[test]
fn helper_process_claims_all_facts_it_can() {
    let Some((space, run)) = given() else { return };
    let facts = space.facts().expect("listed").facts;
    let half = facts.len() / 2;
    let from = if run == "r0" { 0 } else { half };
    for (place, fact) in facts[from..].iter().chain(&facts[..from]).enumerate() {
        let step = step(&run, place as u64 + 1);
        let _ = space.claim(&fact.label, &fact.key, fact.seq, &step).expect("tried");
    }
}

#[test]
fn concurrent_processes_claim_each_of_1000_facts_once() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("facts/job")).expect("made");
    for seq in 1..=1000 {
        let fact = Fact {
            label: "job".into(),
            key: format!("k{seq}"),
            value: String::new(),
            seq,
            source: "test".into(),
            at: raymond_model::time::Timestamp(1),
        };
        let text = serde_json::to_vec(&fact).expect("a fact");
        std::fs::write(place.path(&format!("facts/job/k{seq}.json")), text).expect("written");
    }
    let start = |run: &str| {
        let mut command = child("together::helper_process_claims_all_facts_it_can");
        tell(&mut command, &place, run).spawn().expect("started")
    };
    let children = ["r0", "r1", "r2", "r3"].map(start);
    for mut child in children {
        assert!(child.wait().expect("ended").success());
    }
    assert_eq!(place.holds(), Vec::<String>::new());
    let mut taken = BTreeMap::<String, usize>::new();
    for line in place.lines() {
        let line: serde_json::Value = serde_json::from_str(&line).expect("a line");
        if let Some(key) = line["change"]["claimed"]["fact"]["key"].as_str() {
            *taken.entry(key.to_owned()).or_default() += 1;
        }
    }
    assert_eq!((taken.len(), taken.values().sum::<usize>()), (1000, 1000));
}
