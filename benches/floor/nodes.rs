//! Nodes of a graph a second: a loop that only computes, through the journal, beside its two floors.
//!
//! Both floors are taken from the same run. The first executes the graph in this process and keeps nothing;
//! the second appends the lines of its journal to a file again, with as many syncs as raymond had. A program
//! that executes and keeps the graph needs at least both.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use raymond::domain::advance::AdvanceNext;
use raymond::domain::event::AdvancePosition;
use raymond::domain::graph_execution::GraphState;
use raymond::domain::id::StateName;
use raymond::domain::time::Timestamp;
use raymond::language::graph::checked_graph::Graph;
use raymond::language::graph::interpreter::{GraphEnvironment, GraphInterpreter, GraphYield};
use raymond::language::graph::profile::GraphProfile;
use raymond::language::graph::read::read;
use raymond::language::graph::vocabulary::GraphVocabulary;

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::goals::{GoalBound, Goals};
use crate::raymond::RaymondCommand;
use crate::scale::Scale;
use crate::spent::SpentTime;
use crate::summary::Summary;
use crate::syncs;
use crate::table::{Table, short, whole};

const FILE: &str = "workflow.yaml";

/// The nodes in one round of the loop.
const ROUND: u32 = 2;

pub(crate) fn figure(
    place: &BenchFolder,
    scale: &Scale,
    goals: &mut Goals,
) -> Fallible<Vec<Table>> {
    let [workflow, once] = [place.workflow()?, place.workflow()?];
    workflow.write(FILE, &graph(scale.nodes / ROUND))?;
    once.write(FILE, &graph(1))?;
    let program = Rc::new(program(&graph(scale.nodes / ROUND))?);
    let nodes = f64::from(scale.nodes);
    let (mut taken, mut single, mut walked, mut kept) = (vec![], vec![], vec![], vec![]);
    let mut journal = JournalLines::default();
    for _ in 0..scale.rounds.min(3) {
        walked.push(execute(&program)?.as_secs_f64());
        single.push(run(place, &once, scale)?.0);
        let (spent, lines) = run(place, &workflow, scale)?;
        taken.push(spent);
        kept.push(append_durably(&place.folder()?, &lines)?.as_secs_f64());
        journal = lines;
    }
    let wall = Summary::of(taken.iter().map(|spent| spent.wall.as_secs_f64()));
    let (walked, kept) = (Summary::of(walked), Summary::of(kept));
    let floor = walked.median() + kept.median();
    let title = format!("{} nodes of a graph that only compute", whole(nodes));
    let mut table =
        Table::new(&title, ["", "seconds, median (least–greatest)", "nodes/s", "of the floor"]);
    let mut row = |name: &str, seconds: &Summary, of_floor: String| {
        let speed = nodes / seconds.median();
        table.row([name.to_owned(), seconds.shown(), whole(speed), of_floor]);
    };
    row("walked in memory", &walked, String::new());
    row("its journal written again, with as many syncs", &kept, String::new());
    row("raymond, from start to end", &wall, short(floor / wall.median()));
    let cpu = Summary::of(taken.iter().filter_map(|spent| Some(spent.cpu?.total())));
    row("  its processor time", &cpu, String::new());
    let single = Summary::of(single.iter().map(|spent| spent.wall.as_secs_f64() * 1e3));
    notes(&mut table, place, &workflow, &journal, scale);
    table.note(format!("A run of the loop's first round takes {} ms.", single.shown()));
    let of_floor = floor / wall.median();
    goals.add("nodes/s of a graph over its floor's", of_floor, GoalBound::AtLeast(0.3), "");
    Ok(vec![table])
}

fn notes(
    table: &mut Table,
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    journal: &JournalLines,
    scale: &Scale,
) {
    let lines = u32::try_from(journal.0.len()).unwrap_or(u32::MAX);
    let bytes = journal.0.iter().map(String::len).sum::<usize>();
    let bytes = u32::try_from(bytes).map_or(f64::NAN, f64::from) / f64::from(scale.nodes);
    let syncs = match syncs::count(place, workflow, 1, scale) {
        Ok(syncs) => format!("{} flushes of the disk by strace", whole(syncs)),
        Err(why) => format!("flushes not counted: {why}"),
    };
    table.note(format!("{lines} records, {} bytes a node; {syncs}.", short(bytes)));
}

/// The lines of a journal.
#[derive(Debug, Default)]
struct JournalLines(Vec<String>);

fn run(
    place: &BenchFolder,
    workflow: &WorkflowFolder,
    scale: &Scale,
) -> Fallible<(SpentTime, JournalLines)> {
    let run = RaymondCommand::new(place, workflow, &[], &[])?;
    let journal = run.journal();
    let spent = run.finish(scale.limit)?;
    let text = std::fs::read_to_string(journal)?;
    Ok((spent, JournalLines(text.lines().map(|line| format!("{line}\n")).collect())))
}

/// Appends the lines to a file, each durable before the next.
fn append_durably(folder: &Path, JournalLines(lines): &JournalLines) -> Fallible<Duration> {
    let mut file = File::create(folder.join("journal"))?;
    let started = Instant::now();
    for line in lines {
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
    }
    Ok(started.elapsed())
}

/// Executes the graph to its end, and keeps nothing.
fn execute(program: &Rc<Graph>) -> Fallible<Duration> {
    let around = GraphEnvironment {
        file: StateName::parse(FILE)?,
        folder: None,
        builtins: serde_json::Map::new(),
        variables: raymond::domain::variables::Variables::new(),
    };
    let started = Instant::now();
    let mut machine = GraphInterpreter::begin(program, around.clone());
    let mut state = begin(program);
    loop {
        let GraphYield::Record(then) = machine.next(None, Timestamp(0)) else {
            return Err("a node needs the world".into());
        };
        let execute = machine.finish(then);
        if let AdvanceNext::End { .. } = execute.next {
            black_box(&execute);
            return Ok(started.elapsed());
        }
        let AdvancePosition::Graph(progress) = &execute.position else {
            return Err("a graph advances in a graph".into());
        };
        for change in &progress.changes {
            state.change(change)?;
        }
        state.executed += u64::try_from(progress.visits.len())?;
        state.current_node = Arc::clone(&progress.node);
        machine = GraphInterpreter::resume(program, around.clone(), state.clone());
    }
}

fn begin(program: &Graph) -> GraphState {
    GraphState {
        program: program.hash.as_str().into(),
        current_node: Arc::clone(&program.start),
        previous_node: None,
        executed: 0,
        fields: program.initial.clone(),
        checkpoints: std::collections::BTreeMap::new(),
        cursor: raymond::domain::graph_execution::NodeCursor::default(),
    }
}

fn program(text: &str) -> Fallible<Graph> {
    let files = std::collections::BTreeMap::<String, String>::new();
    let reading = read(FILE, None, text, &GraphVocabulary::new(), &files, GraphProfile::Lenient);
    reading.graph.ok_or_else(|| format!("{:?}", reading.diagnostics).into())
}

/// Returns the text of a graph that counts to a number, two nodes a round.
fn graph(rounds: u32) -> String {
    let most = u64::from(rounds) * u64::from(ROUND);
    format!(
        "name: loop
version: 1.0.0
description: Counts.
max_steps: {most}
initial_state: {{ flags: {{}}, computed: {{ i: 0 }} }}
start_node: count
nodes:
  count:
    type: action
    actions:
      - {{ type: compute, expression: computed.i + 1, store_as: computed.i }}
    on_success: again
    on_failure: failed
  again:
    type: conditional
    condition: {{ type: evaluate_expression, expression: 'computed.i < {rounds}' }}
    branches: {{ true: count, false: done }}
endings:
  done: {{ type: success, message: 'Counted to ${{computed.i}}.' }}
  failed: {{ type: error, message: '${{computed.last_error}}' }}
"
    )
}
