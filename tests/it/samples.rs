//! The samples in `workflows/`, from which newcomers learn the protocol. Each is read as it is, and run end
//! to end by the scripted agent; all transitions of all agents are compared. A sample without an entry here
//! is a failure.

#![expect(clippy::expect_used, reason = "a test says what it expected")]

mod compose;
mod files;
mod graphs;
mod improve;
mod programs;
mod review_folder;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use review_folder::REVIEW_FOLDER;

/// A sample, and the outcome of its run.
struct SampleWorkflow {
    name: &'static str,
    input: Option<&'static str>,
    /// The transitions as `AGENT STATE: <tag>`, those of each agent in order, with the tag as an agent writes
    /// it.
    steps: &'static [&'static str],
    cost_usd: f64,
    reminders: usize,
}

const TOUR: SampleWorkflow = SampleWorkflow {
    name: "tour",
    input: None,
    steps: &[
        "main START.md: <goto>SEND.md</goto>",
        r#"main SEND.md: <fork next="SEND.md" place="the harbour">POSTCARD.md</fork>"#,
        r#"main SEND.md: <fork next="SEND.md" place="the lighthouse">POSTCARD.md</fork>"#,
        r#"main SEND.md: <fork next="SEND.md" place="the bakery">POSTCARD.md</fork>"#,
        r#"main SEND.md: <call return="LEAFLET.md">LEGEND.md</call>"#,
        "main LEGEND.md: <result>The lighthouse was lit by a cat until 1911.</result>",
        r#"main LEAFLET.md: <function return="VERDICT.md">RATE.md</function>"#,
        "main RATE.md: <result>8</result>",
        r#"main VERDICT.md: <reset score="8">FAREWELL.md</reset>"#,
        r#"main FAREWELL.md: <fork next="GATHER.md" each="["French", "Italian", "Dutch"]" as="language" text="Come to Saltwick: three stops, one cat, 8 out of 10.">TRANSLATE.md</fork>"#,
        "main GATHER.md: <result>Come to Saltwick, in four languages and on three postcards.</result>",
        r#"main.1 POSTCARD.md: <goto place="the harbour">STAMP.md</goto>"#,
        "main.1 STAMP.md: <result>the harbour: You would love it here …</result>",
        r#"main.2 POSTCARD.md: <goto place="the lighthouse">STAMP.md</goto>"#,
        "main.2 STAMP.md: <result>the lighthouse: You would love it here …</result>",
        r#"main.3 POSTCARD.md: <goto place="the bakery">STAMP.md</goto>"#,
        "main.3 STAMP.md: <result>the bakery: You would love it here …</result>",
        "main.4 TRANSLATE.md: <result>Come to Saltwick: three stops, one cat, 8 out of 10. (in French)</result>",
        "main.5 TRANSLATE.md: <result>Come to Saltwick: three stops, one cat, 8 out of 10. (in Italian)</result>",
        "main.6 TRANSLATE.md: <result>Come to Saltwick: three stops, one cat, 8 out of 10. (in Dutch)</result>",
    ],
    cost_usd: 0.073,
    reminders: 1,
};

const CLASSIFY: SampleWorkflow = SampleWorkflow {
    name: "classify",
    input: Some("What a lovely, quiet library!"),
    steps: &["main START.md: <result>POSITIVE</result>"],
    cost_usd: 0.001,
    reminders: 0,
};

const HAIKU: SampleWorkflow = SampleWorkflow {
    name: "haiku",
    input: Some("the sea"),
    steps: &[
        "main START.md: <goto>POLISH.md</goto>",
        "main POLISH.md: <result>Salt wind on the stones / A gull folds the grey evening / into one white wing.</result>",
    ],
    cost_usd: 0.0,
    reminders: 0,
};

const STORY: SampleWorkflow = SampleWorkflow {
    name: "story",
    input: Some("a lighthouse keeper"),
    steps: &[
        "main START.md: <goto>STORM.md</goto>",
        "main STORM.md: <goto>ENDING.md</goto>",
        "main ENDING.md: <result>The Keeper of the Dark</result>",
    ],
    cost_usd: 0.03,
    reminders: 0,
};

const RESEARCH: SampleWorkflow = SampleWorkflow {
    name: "research",
    input: Some("Which file should I read first?"),
    steps: &[
        r#"main START.md: <call return="ANSWER.md">RESEARCH.md</call>"#,
        "main RESEARCH.md: <goto>CHECK.md</goto>",
        "main CHECK.md: <result>README.md, which says what the project is</result>",
        "main ANSWER.md: <result>Read this: README.md, which says what the project is.</result>",
    ],
    cost_usd: 0.026,
    reminders: 0,
};

const DISPATCH: SampleWorkflow = SampleWorkflow {
    name: "dispatch",
    input: Some("a compass, a kettle, a violin"),
    steps: &[
        r#"main START.md: <fork next="NEXT.md" item="a compass">WORKER.md</fork>"#,
        r#"main NEXT.md: <fork next="NEXT.md" item="a kettle">WORKER.md</fork>"#,
        r#"main NEXT.md: <fork next="NEXT.md" item="a violin">WORKER.md</fork>"#,
        "main NEXT.md: <result>3 workers sent</result>",
        "main.1 WORKER.md: <result>a compass: one sentence by main.1</result>",
        "main.2 WORKER.md: <result>a kettle: one sentence by main.2</result>",
        "main.3 WORKER.md: <result>a violin: one sentence by main.3</result>",
    ],
    cost_usd: 0.028,
    reminders: 0,
};

const IMPROVE: SampleWorkflow = SampleWorkflow {
    name: "improve",
    input: Some("why the sea is salty"),
    steps: &[
        r#"main START.md: <function return="REVISE.md">JUDGE.md</function>"#,
        "main JUDGE.md: <result>Say what 'dissolve' means.</result>",
        r#"main REVISE.md: <function return="REVISE.md">JUDGE.md</function>"#,
        "main JUDGE.md: <result>Say where the salt comes from.</result>",
        r#"main REVISE.md: <function return="REVISE.md">JUDGE.md</function>"#,
        "main JUDGE.md: <result>APPROVED</result>",
        "main REVISE.md: <result>approved after 2 revisions</result>",
    ],
    cost_usd: 0.21,
    reminders: 0,
};

const PHASES: SampleWorkflow = SampleWorkflow {
    name: "phases",
    input: Some("write three limericks"),
    steps: &[
        "main START.md: <reset>IMPLEMENT.md</reset>",
        "main IMPLEMENT.md: <reset>VERIFY.md</reset>",
        "main VERIFY.md: <reset>IMPLEMENT.md</reset>",
        "main IMPLEMENT.md: <reset>VERIFY.md</reset>",
        "main VERIFY.md: <result>PASS: three limericks, and all of them rhyme.</result>",
    ],
    cost_usd: 0.08,
    reminders: 0,
};

const JUDGE: SampleWorkflow = SampleWorkflow {
    name: "judge",
    input: Some("a library in a lighthouse"),
    steps: &[
        "main START.md: <goto>JUDGE.md</goto>",
        r#"main JUDGE.md: <goto result="{"weakness": "It lists things.", "score": 4, "verdict": "revise"}">REVISE.md</goto>"#,
        "main REVISE.md: <goto>JUDGE.md</goto>",
        r#"main JUDGE.md: <goto result="{"weakness": "It could be shorter.", "score": 8, "verdict": "publish"}">PUBLISH.md</goto>"#,
        "main PUBLISH.md: <result>Read by lighthouse light, with a cat on your knees.</result>",
    ],
    cost_usd: 0.009,
    reminders: 1,
};

const CAREFUL_FIX: SampleWorkflow = SampleWorkflow {
    name: "careful-fix",
    input: Some("off by one"),
    steps: &[
        r#"main START.md: <reset finding="src/lib.rs:7: the last element is left out">FIX.md</reset>"#,
        r#"main FIX.md: <function return="DONE.md" change="the range includes it; 12 tests pass" finding="the last element is left out">JUDGE.md</function>"#,
        "main JUDGE.md: <result>YES</result>",
        "main DONE.md: <result>The last element is no longer left out; the judge agrees.</result>",
    ],
    cost_usd: 0.09,
    reminders: 0,
};

impl SampleWorkflow {
    fn path(&self) -> PathBuf {
        workflows().join(self.name)
    }

    fn transitions(&self) -> BTreeMap<String, Vec<String>> {
        let mut agents = BTreeMap::<String, Vec<String>>::new();
        for (agent, step) in self.steps.iter().filter_map(|step| step.split_once(' ')) {
            agents.entry(agent.to_owned()).or_default().push(step.to_owned());
        }
        agents
    }

    fn final_lines(&self) -> BTreeSet<String> {
        let line = |(agent, steps): (&String, &Vec<String>)| {
            let last = steps.last().and_then(|last| last.split_once("<result>"));
            let result = last.and_then(|(_, rest)| rest.split_once("</result>"));
            let (result, _) = result.expect("an agent ends with its result");
            format!("Agent {agent} terminated with result: {result}")
        };
        self.transitions().iter().map(line).collect()
    }
}

/// Makes a test of each sample, and the list of all of them.
macro_rules! samples {
    ($($test:ident => $sample:ident),* $(,)?) => {
        const SAMPLES: &[&SampleWorkflow] = &[$(&$sample),*];
        mod runs_as_written {
            $(#[test] fn $test() { super::runs_as_written(&super::$sample); })*
        }
    };
}

samples! {
    tour => TOUR,
    classify => CLASSIFY,
    haiku => HAIKU,
    story => STORY,
    research => RESEARCH,
    dispatch => DISPATCH,
    improve => IMPROVE,
    judge => JUDGE,
    phases => PHASES,
    careful_fix => CAREFUL_FIX,
    review_folder => REVIEW_FOLDER,
}

fn runs_as_written(sample: &SampleWorkflow) {
    let place = SampleDirectories::new();

    let plain = place.run(sample, "plain", &[]);
    assert_eq!(code(&plain), 0, "{}", told(&plain));
    assert_eq!(lines(&plain), sample.final_lines());

    let input: Vec<&str> = sample.input.iter().flat_map(|&input| ["--input", input]).collect();
    let json = place.run(sample, "json", &[&["--json"], &input[..]].concat());
    assert_eq!(code(&json), 0, "{}", told(&json));
    let records = records(&json);
    assert_eq!(transitions(&records), sample.transitions());
    assert_eq!(count(&records, "turn_rejected"), sample.reminders);
    for trouble in ["turn_failed", "agent_failed", "run_paused"] {
        assert_eq!(count(&records, trouble), 0, "{trouble}: {}", told(&json));
    }
    place.expect_spent("json", sample.cost_usd);
}

#[test]
fn every_sample_folder_is_tested_and_named_in_the_readme() {
    let prompts = SAMPLES.iter().map(|sample| sample.name);
    let tested: BTreeSet<String> = prompts
        .chain(compose::NAMES)
        .chain(graphs::NAMES)
        .chain(programs::NAMES)
        .map(str::to_owned)
        .collect();
    let mut folders = names(&workflows());
    assert!(folders.remove("README.md"), "workflows/README.md is missing");
    assert_eq!(folders, tested);
    let readme = read(&workflows().join("README.md"));
    for name in &tested {
        assert!(readme.contains(&format!("workflows/{name} ")), "the README does not run {name}");
    }
}

/// The directories for runs and for work, both empty, and removed with the test.
struct SampleDirectories {
    runs: tempfile::TempDir,
    work: tempfile::TempDir,
}

impl SampleDirectories {
    fn new() -> Self {
        let new = || tempfile::tempdir().expect("a temporary directory");
        Self { runs: new(), work: new() }
    }

    /// Runs a sample by its script, as the run `id`.
    fn run(&self, sample: &SampleWorkflow, id: &str, options: &[&str]) -> Output {
        let (folder, work) = (sample.path(), self.work.path());
        let run = ["run", text(&folder), "--agent", "scripted", "--cwd", text(work), "--id", id];
        self.raymond(&[&run[..], &["--stagger", "0s"], options].concat())
    }

    fn raymond(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_raymond"))
            .args(arguments)
            .arg("--dir")
            .arg(self.runs.path())
            .env_clear()
            .env("HOME", self.runs.path())
            .env("RAYMOND_TRUST", "true")
            .current_dir(self.work.path())
            .stdin(Stdio::null())
            .output()
            .expect("raymond starts")
    }

    fn expect_spent(&self, run: &str, cost_usd: f64) {
        let out = self.raymond(&["status", run, "--json"]);
        let status: Value = serde_json::from_slice(&out.stdout).expect("status --json is JSON");
        let spent = status["total_cost_usd"].as_f64().expect("a number of dollars");
        assert!((spent - cost_usd).abs() < 1e-6, "{run} spent {spent}, not {cost_usd}");
    }
}

fn workflows() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| name(entry.expect("an entry"))).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn code(out: &Output) -> i32 {
    out.status.code().expect("raymond was not killed")
}

fn told(out: &Output) -> String {
    let text = String::from_utf8_lossy;
    format!("\nstdout:\n{}\nstderr:\n{}", text(&out.stdout), text(&out.stderr))
}

fn lines(out: &Output) -> BTreeSet<String> {
    String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect()
}

fn records(out: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&out.stdout);
    let record = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(record).collect()
}

fn count(records: &[Value], event: &str) -> usize {
    records.iter().filter(|record| record["event"] == event).count()
}

/// Returns the transitions of each agent's finished steps, in order, written as in [`SampleWorkflow::steps`].
fn transitions(records: &[Value]) -> BTreeMap<String, Vec<String>> {
    let mut agents = BTreeMap::<String, Vec<String>>::new();
    for record in records.iter().filter(|record| record["event"] == "step_finished") {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let step = format!("{}: {}", text(&record["state"]), tag(&record["transition"]));
        agents.entry(text(&record["agent"])).or_default().push(step);
    }
    agents
}

fn tag(transition: &Value) -> String {
    let name = transition["tag"].as_str().expect("a transition has a tag");
    let variables = transition["variables"].as_object();
    let attributes = ["return", "next", "each", "as"]
        .into_iter()
        .map(|key| (key, &transition[key]))
        .chain(variables.into_iter().flatten().map(|(key, value)| (key.as_str(), value)));
    let mut open = name.to_owned();
    for (key, value) in attributes.filter_map(|(key, value)| Some((key, value.as_str()?))) {
        write!(open, r#" {key}="{value}""#).expect("a string takes all");
    }
    let body = transition["target"].as_str().or(transition["payload"].as_str());
    format!("<{open}>{}</{name}>", body.unwrap_or_default())
}
