//! A program in which two roles answer each other for so many rounds, and measurements of the turns of its
//! run.

use std::path::Path;
use std::time::{Duration, Instant};

use raymond::domain::fact::Fact;
use raymond::domain::time::Timestamp;
use raymond::store::layout::RunsRoot;
use raymond::store::user_state::UserState;

use crate::Fallible;
use crate::bench_folder::{BenchFolder, WorkflowFolder};
use crate::live::RunningRaymond;
use crate::raymond::USER_STATE;
use crate::spent::CpuSeconds;

const FILE: &str = "workflow.lisp";

/// The label of the facts that come from outside the conversation.
pub(crate) const OTHERS: &str = "bench";

/// The text in the record of a turn that is over.
pub(crate) const TURN: &str = "\"event\":\"role_responded\"";

/// The options that let a script answer.
pub(crate) const SCRIPTED: [&str; 2] = ["--agent", "scripted"];

/// A conversation, and its size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialogue {
    pub(crate) rounds: usize,
    /// True if each answer is asserted as a fact.
    pub(crate) asserts: bool,
    /// True if each round looks at all facts of [`OTHERS`].
    pub(crate) looks: bool,
}

impl Dialogue {
    /// Returns the number of turns: one to begin with, and two for each round.
    pub(crate) fn turns(self) -> usize {
        2 * self.rounds + 1
    }

    /// Writes the workflow with the replies of a script.
    pub(crate) fn scripted(self, place: &BenchFolder) -> Fallible<WorkflowFolder> {
        let workflow = place.workflow()?;
        workflow.write(FILE, &self.program("done"))?;
        let pongs = "  - pong\n".repeat(self.rounds);
        let replies = format!(
            "\"{FILE}#asker\":\n  - {{ reply: ping, repeat: true }}\n\"{FILE}#answerer\":\n{pongs}  - done\n"
        );
        workflow.write("replies.yaml", &replies)?;
        Ok(workflow)
    }

    /// Writes the workflow for the fake that answers with its prompt, which grows by a letter each round.
    pub(crate) fn echoed(self, place: &BenchFolder) -> Fallible<WorkflowFolder> {
        let workflow = place.workflow()?;
        workflow.write(FILE, &self.program(&format!("x{{{}}}", self.rounds + 1)))?;
        Ok(workflow)
    }

    /// Returns the text of the program, which ends at the answer `end`.
    fn program(self, end: &str) -> String {
        let only = |wanted: bool, text: String| if wanted { text } else { String::new() };
        let assert =
            |request| format!("(assert said :key @workflow-id :value (response {request}))");
        let [asked, answered] = ["question", "answer"].map(|name| only(self.asserts, assert(name)));
        let look = format!("(on (signal {OTHERS} :equals \"enough\") (goto done))");
        let look = only(self.looks, look);
        let most = self.rounds + 1;
        format!(
            "(workflow dialogue
  (metadata (max-iterations {most}))
  (roles
    (asker :agent-kind \"claude-code\")
    (answerer :agent-kind \"claude-code\"))
  (state begin
    (action
      (send-prompt :agent answerer :template \"x\" :request-id first)
      (await (transcript-response :request-id first))))
  (state talk
    (loop
      (action
        (send-prompt :agent asker :template \"~ax\" :args ((feedback answerer)) :request-id question)
        (await (transcript-response :request-id question))
        {asked}
        (send-prompt :agent answerer :template \"~a\" :args ((feedback asker)) :request-id answer)
        (await (transcript-response :request-id answer))
        {answered})
      (branch
        (on (matches (response answer) \"^{end}$\") (goto done))
        {look})))
  (state done
    (terminal)))
"
        )
    }
}

/// A moment of a run: the turns and the processor time up to then.
#[derive(Debug)]
pub(crate) struct RunMoment {
    pub(crate) turns: usize,
    pub(crate) at: Instant,
    cpu: Option<CpuSeconds>,
}

/// The cost of a turn, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasuredTurnCost {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

impl RunMoment {
    pub(crate) fn start(live: &RunningRaymond) -> Self {
        Self { turns: 0, at: live.started, cpu: None }
    }

    /// Waits until the run has had so many turns in all.
    pub(crate) fn next(
        &self,
        live: &mut RunningRaymond,
        turns: usize,
        limit: Duration,
    ) -> Fallible<Self> {
        let turns = self.turns + live.read_until(TURN, turns.saturating_sub(self.turns), limit)?;
        Ok(Self { turns, at: Instant::now(), cpu: live.cpu() })
    }

    /// Returns the cost of a turn since an earlier moment.
    pub(crate) fn cost(&self, earlier: &Self) -> MeasuredTurnCost {
        let turns = real(self.turns - earlier.turns);
        let cpu = self.cpu.zip(earlier.cpu).map(|(now, then)| now.since(then).own_time);
        MeasuredTurnCost {
            wall: self.at.duration_since(earlier.at).as_secs_f64() / turns * 1e3,
            cpu: cpu.map_or(f64::NAN, |cpu| cpu / turns * 1e3),
        }
    }
}

/// Writes facts of [`OTHERS`] into the dataspace of a directory of runs, as files with proofs, as an
/// earlier raymond kept them. The next writer begins a journal with all of them.
pub(crate) fn write_facts(dir: &Path, count: usize) -> Fallible<()> {
    let dir = dir.canonicalize()?;
    let dataspace = RunsRoot::new(&dir).dataspace();
    let key = UserState::new(dir.join(USER_STATE)).key()?.derive(&dataspace.display().to_string());
    let folder = dataspace.join("facts").join(OTHERS);
    std::fs::create_dir_all(&folder)?;
    for seq in 1..=u64::try_from(count)? {
        let fact = Fact {
            label: OTHERS.to_owned(),
            key: format!("k{seq}"),
            value: "what somebody has said".to_owned(),
            seq,
            source: "signal".to_owned(),
            at: Timestamp(0),
        };
        let mut content = serde_json::to_value(&fact)?;
        content["proof"] = key.proof("fact", &serde_json::to_vec(&fact)?).into();
        std::fs::write(folder.join(format!("{}.json", fact.key)), content.to_string())?;
    }
    Ok(())
}

pub(crate) fn real(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::NAN, f64::from)
}
