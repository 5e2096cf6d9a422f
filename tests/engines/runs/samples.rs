//! The samples give the same journal on several machines as on one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::cluster::{Cluster, RUN};
use super::ended::Ended;
use super::machine::{AUTHOR, Machine};

/// A sample, the options of its run, and the files that it finds in its directory.
pub(crate) struct Sample {
    name: &'static str,
    options: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    /// True if the files are committed to a repository.
    is_repository: bool,
    /// True if its program advances once or twice, depending on when two answers come.
    is_timed: bool,
}

pub(crate) const fn sample(name: &'static str, options: &'static [&'static str]) -> Sample {
    Sample { name, options, files: &[], is_repository: false, is_timed: false }
}

/// Makes a test of each sample, which a function judges.
macro_rules! each_sample {
    ($judge:path) => {
        each_sample! { $judge:
            tour => sample("tour", &[]),
            classify => sample("classify", &["--input", "What a lovely, quiet library!"]),
            story => sample("story", &["--input", "a lighthouse keeper"]),
            research => sample("research", &["--input", "Which file should I read first?"]),
            compose => sample("compose", &["--input", "a library in a lighthouse"]),
            dispatch => sample("dispatch", &["--input", "a compass, a kettle, a violin"]),
            review_folder => sample("review-folder", &["--input", "only what is in src"]),
            improve => sample("improve", &["--input", "why the sea is salty"]),
            judge => sample("judge", &["--input", "a library in a lighthouse"]),
            phases => sample("phases", &["--input", "write three limericks"]),
            careful_fix => sample("careful-fix", &["--input", "off by one"]),
            self_review => sample("self-review", &["--input", "A haiku"]),
            best_of_two => sample("best-of-two", &["--input", "A name for a command"]),
            three_reviewers => THREE_REVIEWERS,
            add_source => ADD_SOURCE,
            release => RELEASE,
        }
    };
    ($judge:path: $($test:ident => $sample:expr),* $(,)?) => {
        $(#[test] fn $test() { $judge(&$sample); })*
    };
}

mod with_one_slot {
    use super::{ADD_SOURCE, RELEASE, THREE_REVIEWERS, sample};

    each_sample!(super::gives_the_same_journal);
}

pub(crate) const THREE_REVIEWERS: Sample =
    Sample { is_timed: true, ..sample("three-reviewers", &["--input", "A duration"]) };

pub(crate) const ADD_SOURCE: Sample = Sample {
    files: &[
        ("data/config.yaml", "# Ours.\nname: sea\nsources: []\n"),
        ("data/index.md", "# Index\n\nRun hiivmind-corpus-build to fill it.\n"),
        ("docs/lamp.md", "# The lamp\n"),
        ("docs/more/cat.md", "# The cat\n"),
    ],
    ..sample("add-source", &[])
};

pub(crate) const RELEASE: Sample =
    Sample { files: &[("lamp.txt", "on\n")], is_repository: true, ..sample("release", &[]) };

impl Sample {
    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows").join(self.name)
    }

    /// Puts the files where the agents work on a machine.
    fn prepare(&self, machine: &Machine<'_>) {
        let work = machine.path("work");
        for (name, content) in self.files {
            let path = work.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, content).expect("written");
        }
        if self.is_repository {
            git(machine, &["init", "--quiet", "--initial-branch=main"]);
            git(machine, &["add", "."]);
            git(machine, &["commit", "--quiet", "--message", "Build the lamp"]);
        }
    }

    /// Runs the sample on a machine, on the machine alone if it is told so, and returns its log.
    fn run(&self, machine: &Machine<'_>, is_alone: bool, further: &[&str]) -> Vec<Value> {
        let folder = self.folder();
        self.prepare(machine);
        let run = ["run", text(&folder), "--agent", "scripted", "--id", RUN, "--stagger", "0s"];
        let answers = folder.join("answers.yaml");
        let answers = if answers.exists() { vec!["--answers", text(&answers)] } else { Vec::new() };
        let run = [&run[..], self.options, &answers, further].concat();
        execute(machine, is_alone, &run).ok();
        execute(machine, is_alone, &["log", RUN, "--json"]).ok().json_lines()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// Executes a command, with the engine or without.
fn execute<'c>(machine: &Machine<'c>, is_alone: bool, arguments: &[&str]) -> Ended<'c> {
    let mut command = machine.command(arguments);
    command.env("RAYMOND_TRUST", "true");
    if is_alone {
        command.env_remove("RAYMOND_ENGINE").env("RAYMOND_DIR", machine.path("ray"));
    }
    machine.launch(command, arguments).wait()
}

fn git(machine: &Machine<'_>, words: &[&str]) {
    let mut git = Command::new("git");
    git.args(words).current_dir(machine.path("work")).env_clear().envs(AUTHOR);
    git.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let out = git.output().expect("git starts");
    assert!(out.status.success(), "git {words:?}: {out:?}");
}

/// Runs a sample on one machine, and on two with an engine and so many slots; returns both logs.
fn both(sample: &Sample, slots: usize, further: &[&str]) -> [Vec<Value>; 2] {
    let cluster = Cluster::new();
    let (alone, shared, host) =
        (cluster.machine("alone"), cluster.machine("shared"), cluster.machine("host"));
    let log = sample.run(&alone, true, further);
    let work = shared.path("work");
    let here = ["--shared-dir", text(&work)];
    let worker = host.worker(slots, &[&["--allow", "commands"], &here[..]].concat());
    let other = sample.run(&shared, false, &[further, &here[..]].concat());
    drop(worker);
    [masked(&log, &alone.path("")), masked(&other, &shared.path(""))]
}

/// Returns records without what differs between any two runs of the same workflow:
/// times and durations, ids of sessions, and checksums and proofs over all that. Only a shared run has homes of agents,
/// records that give agents one, and a shared directory: they are left out, and with them the numbers of records, of which
/// others check that they have no gap. Of all paths the folder of the machine is left out.
fn masked(log: &[Value], machine: &Path) -> Vec<Value> {
    let folder = machine.to_str().expect("a path").trim_end_matches('/');
    let kept = log.iter().filter(|record| record["event"] != "agents_placed");
    kept.map(|record| mask(record, folder)).collect()
}

fn mask(value: &Value, folder: &str) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !is_masked(name));
            kept.map(|(name, value)| (name.clone(), mask(value, folder))).collect()
        }
        Value::Array(items) => items.iter().map(|item| mask(item, folder)).collect(),
        Value::String(text) => plain(&text.replace(folder, "MACHINE")).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn is_masked(name: &str) -> bool {
    let named = ["seq", "at", "placed", "session", "session_id", "checksum", "proof", "shared_dir"];
    named.contains(&name) || name.ends_with("_at") || name.ends_with("duration_ms")
}

/// Returns a text with a mark in the place of each time and each id.
fn plain(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.');
    let mut plain = String::new();
    for word in text.split_inclusive(|c| !is_part(c)) {
        let end = word.trim_end_matches(is_part);
        let (core, rest) = word.split_at(word.len() - end.chars().last().map_or(0, char::len_utf8));
        let is_hex = core.len() >= 36 && core.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let is_time = core.starts_with("20") && core.contains('T') && core.contains(':');
        plain.push_str(if is_hex || is_time { "…" } else { core });
        plain.push_str(rest);
    }
    plain
}

fn gives_the_same_journal(sample: &Sample) {
    if sample.is_timed {
        return compare_steps(sample, 1, &["--max-procs", "1"]);
    }
    let [alone, shared] = both(sample, 1, &["--max-procs", "1"]);
    for (one, other) in alone.iter().zip(&shared) {
        assert_eq!(one, other, "{}", sample.name);
    }
    assert_eq!(alone.len(), shared.len(), "{}", sample.name);
}

/// Compares the steps of each agent alone: with several turns at once, only they are in a fixed order.
pub(crate) fn compare_steps(sample: &Sample, slots: usize, further: &[&str]) {
    let [alone, shared] = both(sample, slots, further).map(|log| steps(&log));
    assert_eq!(alone, shared, "{}", sample.name);
}

/// Counts the records by agent, event and state. A program advances once for answers that come at the same moment, so these
/// records are not counted.
fn steps(log: &[Value]) -> BTreeMap<[String; 3], usize> {
    let mut steps = BTreeMap::new();
    for record in log.iter().filter(|record| record["event"] != "program_advanced") {
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        *steps.entry(["agent", "event", "state"].map(text)).or_default() += 1;
    }
    steps
}
