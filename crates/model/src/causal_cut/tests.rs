//! Tests of causal cuts: a random run is cut at a random place, and runs that are moved by hand at chosen ones.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::apply::{apply, begin};
use crate::event::JoinFinished;
use crate::fact::Fact;
use crate::fact::KnownFacts;
use crate::id::SessionId;
use crate::join::{
    JoinCondition, JoinFallback, JoinOutcome, JoinTally, UnjoinedChildren, UnjoinedPolicy,
};
use crate::money::Usd;
use crate::retry::RetriedAgent;
use crate::settings::Settings;
use crate::tests::plausible::{Journal, pushes};
use crate::tests::scene::{Scene, agent_id, first, goto, result, tag};
use crate::time::Timestamp;
use crate::transition::{TagName, Transition};
use crate::worktree_snapshot::{SnapshotCommit, SnapshotOutcome, WorktreeSnapshot};

/// Returns the run and the records that stay; each length is that of a batch.
fn cut(
    records: &[Record],
    seeds: Vec<CutSeed>,
    mut lengths: impl Iterator<Item = usize>,
) -> (CausalCut, Run, Vec<Record>) {
    let (mut old, _) = begin(&records[0]).expect("a start");
    let (mut run, mut cut) = (old.clone(), CausalCut::begin(seeds, &old));
    let mut kept = vec![records[0].clone()];
    let mut rest = &records[1..];
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(lengths.next().unwrap_or(1).clamp(1, rest.len()));
        rest = later;
        for record in batch {
            cut.see(&old, record);
            apply(&mut old, record).expect("it happened");
        }
        let staying = cut.settle(&old, batch.to_vec());
        let is_retry = |record: &&Record| matches!(record.event, Event::AgentsRetried { .. });
        let together = batch.len() - batch.iter().filter(is_retry).count();
        assert!(staying.is_empty() || staying.len() >= together, "a batch stays together");
        for record in staying {
            let record = Record { seq: run.seq + 1, ..record };
            apply(&mut run, &record).unwrap_or_else(|why| panic!("{why}: {record:#?}"));
            kept.push(record);
        }
    }
    (cut, run, kept)
}

/// Returns an agent without what the ends and the costs of its children have changed.
fn alone(agent: &Agent) -> Agent {
    let mut copy = agent.clone();
    copy.unjoined = UnjoinedChildren::default();
    copy.retry_point = None;
    copy.stack.iter_mut().for_each(|frame| frame.budget = None);
    copy
}

fn steps_of(journal: &Journal) -> Vec<(AgentId, u64)> {
    let runs = journal.records.iter().filter_map(|(before, _)| before.as_ref());
    let steps = runs.chain([&journal.run]).flat_map(|run| run.agents.values());
    let steps: BTreeSet<_> = steps.map(|agent| (agent.id.clone(), agent.step)).collect();
    steps.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn what_does_not_follow_stays_as_it_was(
        pushes in pushes(60),
        place in any::<Index>(),
        in_state in prop::option::weighted(0.3, prop::sample::select(&["A.md", "B.md", "C.md"][..])),
        lengths in prop::collection::vec(1usize..4, 0..60),
    ) {
        let journal = Journal::of(&pushes);
        let records: Vec<Record> = journal.records().cloned().collect();
        let steps = steps_of(&journal);
        let (agent, step) = steps[place.index(steps.len())].clone();
        let seed = match in_state {
            Some(state) => CutSeed::State { agent: None, state: state.to_owned() },
            None => CutSeed::Step { agent: agent.clone(), step },
        };
        let (cut, run, kept) = cut(&records, vec![seed], lengths.into_iter());
        if !cut.is_reached() {
            prop_assert_eq!(run, journal.run);
            return Ok(());
        }
        if in_state.is_none() && cut.is_cut(&agent) && !cut.is_whole {
            let left = run.agents.get(&agent);
            prop_assert!(left.is_some_and(|left| left.step >= step), "{agent} lives at the step");
        }
        // Every agent that is not cut is where it was, and has ended as it did.
        for old in journal.run.agents.values().filter(|old| !cut.is_cut(&old.id)) {
            prop_assert_eq!(run.agents.get(&old.id).map(alone), Some(alone(old)));
        }
        let ends = |run: &Run| -> BTreeMap<AgentId, _> {
            let ended = run.finished.iter().filter(|ended| !cut.is_cut(&ended.id));
            ended.map(|ended| (ended.id.clone(), (ended.ending.clone(), ended.cost_usd))).collect()
        };
        prop_assert_eq!(ends(&run), ends(&journal.run));
        // A cut agent has never ended, and nothing it did after the cut is paid.
        prop_assert!(run.finished.iter().all(|ended| !cut.is_cut(&ended.id)));
        prop_assert!(run.total_cost_usd <= journal.run.total_cost_usd);
        prop_assert!(kept.len() <= records.len());
        let facts = |run: &Run| -> KnownFacts { run.facts.clone() };
        if !cut.hidden.all && cut.hidden.labels.is_empty() && cut.missed.is_empty() {
            prop_assert_eq!(facts(&run), facts(&journal.run));
        }
    }
}

/// A run that is moved by hand, with its records.
struct Story {
    scene: Scene,
    records: Vec<Record>,
}

impl Story {
    fn begin() -> Self {
        Self { scene: Scene::begin(), records: vec![first()] }
    }

    /// Begins a run whose first agent has a worktree, in which the agents that it forks work, too.
    fn in_worktree() -> Self {
        let mut first = first();
        let Event::RunStarted(started) = &mut first.event else { unreachable!("a start") };
        started.options.worktree = true;
        Self { scene: Scene { run: begin(&first).expect("a start").0 }, records: vec![first] }
    }

    fn happens(&mut self, event: Event) {
        let at = Timestamp(self.scene.next() * 1000);
        let record = Record { folder: None, ..Record::next(&self.scene.run, at, event) };
        self.records.push(record.clone());
        self.scene.happens(record.event);
    }

    /// An agent ends a step after which the files of a worktree are those of a commit.
    fn changes_files(&mut self, agent: &str, transition: Transition, tree: &str, commit: &str) {
        self.takes(agent, transition);
        let taken = SnapshotCommit {
            commit: commit.to_owned(),
            head: "head".to_owned(),
            left_out: Vec::new(),
        };
        let outcome = SnapshotOutcome::Taken(taken);
        let snapshot = WorktreeSnapshot { tree: agent_id(tree), outcome };
        self.records.last_mut().expect("the step").snapshot = Some(Box::new(snapshot));
    }

    fn takes(&mut self, agent: &str, transition: Transition) {
        self.happens(Event::StepFinished(self.scene.step(agent, transition)));
    }

    fn cut_at(&self, agent: &str, step: u64) -> (CausalCut, Run, Vec<Record>) {
        let seed = CutSeed::Step { agent: agent_id(agent), step };
        cut(&self.records, vec![seed], std::iter::empty())
    }
}

fn names<'run>(ids: impl Iterator<Item = &'run AgentId>) -> Vec<&'run str> {
    ids.map(AgentId::as_str).collect()
}

#[test]
fn child_that_is_cut_takes_the_join_with_it_and_leaves_its_siblings() {
    let mut story = Story::begin();
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main", tag(TagName::Fork, "J.md", "B.md"));
    story.takes("main.1", goto("C.md"));
    story.takes("main.2", goto("C.md"));
    story.takes("main.1", result("one"));
    let join = crate::join::Join {
        need: JoinCondition::All,
        timeout_ms: None,
        on_timeout: JoinFallback::default(),
        on_failure: JoinFallback::default(),
        rest: UnjoinedPolicy::default(),
    };
    let (turn, state) = (story.scene.turn("main"), story.scene.agent("main").current_state.clone());
    story.happens(Event::JoinBegun(Box::new(crate::event::JoinBegun {
        turn: turn.clone(),
        state: state.clone(),
        join,
    })));
    story.takes("main.2", result("two"));
    story.happens(Event::JoinFinished(Box::new(JoinFinished {
        turn,
        state,
        outcome: JoinOutcome::Met,
        tally: JoinTally { count: 2, done: 2, failed: 0 },
        enters: None,
        stopped: Vec::new(),
    })));
    story.takes("main", result("all"));
    let (cut, run, kept) = story.cut_at("main.1", 2);
    assert_eq!(names(run.agents.keys()), ["main", "main.1"]);
    assert_eq!(run.agents[&agent_id("main.1")].step, 2);
    assert!(run.agents[&agent_id("main")].pending_join().is_some(), "it waits for main.1");
    assert_eq!(names(run.finished.iter().map(|ended| &ended.id)), ["main.2"]);
    assert!(cut.is_cut(&agent_id("main")), "from its join on");
    // Left out are: the end of main.1, the join, and the end of main.
    assert_eq!((story.records.len(), kept.len()), (10, 7));
    // Before the second fork, main.2 does not exist, and main.1 is as it was.
    let (_, run, _) = story.cut_at("main", 2);
    assert_eq!(names(run.agents.keys()), ["main"]);
    assert_eq!(names(run.finished.iter().map(|ended| &ended.id)), ["main.1"]);
    // At the join, both children have ended.
    let (_, run, _) = story.cut_at("main", 3);
    assert_eq!(names(run.agents.keys()), ["main"]);
    assert_eq!(run.agents[&agent_id("main")].unjoined.tally(0).done, 2);
}

#[test]
fn retry_stays_for_the_agents_that_are_not_cut() {
    let mut story = Story::begin();
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main.1", goto("C.md"));
    for child in ["main.1", "main.2"] {
        story.happens(Event::AgentFailed(story.scene.end_badly(child)));
    }
    let retried = |agent: &str| RetriedAgent {
        agent: agent_id(agent),
        session: SessionId::new(&format!("again-{agent}")),
    };
    story.happens(Event::AgentsRetried { agents: vec![retried("main.1"), retried("main.2")] });
    story.takes("main.2", result("well"));
    let (_, run, kept) = story.cut_at("main.1", 2);
    assert_eq!(names(run.agents.keys()), ["main", "main.1"]);
    assert_eq!(names(run.finished.iter().map(|ended| &ended.id)), ["main.2"]);
    let live_again = kept.iter().filter_map(|record| match &record.event {
        Event::AgentsRetried { agents } => Some(names(agents.iter().map(|entry| &entry.agent))),
        _ => None,
    });
    assert_eq!(live_again.collect::<Vec<_>>(), [["main.2"]]);
}

#[test]
fn settings_of_a_retry_stay_if_its_agents_are_cut() {
    let mut story = Story::begin();
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main.1", goto("C.md"));
    story.happens(Event::AgentFailed(story.scene.end_badly("main.1")));
    let session = SessionId::new("again");
    let agents = vec![RetriedAgent { agent: agent_id("main.1"), session }];
    story.happens(Event::AgentsRetried { agents });
    let budget = Some(Usd::from_dollars(5.0));
    let settings = Settings { budget_usd: budget, ..Settings::default() };
    story.happens(Event::RunResumed { settings: Box::new(settings) });
    // Both were written together.
    let seeds = vec![CutSeed::Step { agent: agent_id("main.1"), step: 2 }];
    let (_, run, kept) = cut(&story.records, seeds, [1, 1, 1, 2].into_iter());
    assert!(kept.iter().all(|record| !matches!(record.event, Event::AgentsRetried { .. })));
    assert_eq!((run.settings.budget_usd, run.agents.len()), (budget, 2));
}

#[test]
fn failure_that_ends_the_run_needs_all_that_it_ends() {
    let mut story = Story::begin();
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main.1", goto("C.md"));
    let mut failure = story.scene.end_badly("main");
    failure.ends_run = true;
    story.happens(Event::AgentFailed(failure));
    let (_, run, _) = story.cut_at("main.1", 2);
    assert_eq!(names(run.agents.keys()), ["main", "main.1"]);
}

#[test]
fn fact_of_cut_agent_and_retraction_are_not_seen() {
    let mut story = Story::begin();
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main.1", goto("C.md"));
    let fact = |source: &str, label: &str| {
        FactChange::Asserted(Fact {
            label: label.to_owned(),
            key: String::new(),
            value: String::new(),
            seq: 1,
            source: source.to_owned(),
            at: Timestamp(1),
        })
    };
    for (source, label) in [("r/main.1", "one"), ("r/main", "two"), ("signal", "three")] {
        story.happens(Event::FactsSeen { changes: vec![fact(source, label)] });
    }
    let retracted = FactChange::Retracted { label: "three".to_owned(), key: String::new() };
    story.happens(Event::FactsSeen { changes: vec![retracted] });
    let (_, run, _) = story.cut_at("main.1", 2);
    let seen: Vec<String> = run.facts.all().map(|fact| fact.label).collect();
    assert_eq!(seen, ["three", "two"]);
}

/// Two agents share the worktree of the agent that has forked them; the first one takes two steps, the second one three.
fn shared_worktree(changes: [bool; 2]) -> Story {
    let mut story = Story::in_worktree();
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main.1", goto("C.md"));
    story.takes("main.2", goto("C.md"));
    for (agent, changes) in ["main.1", "main.2"].into_iter().zip(changes) {
        if changes {
            story.changes_files(agent, goto("D.md"), "main", agent);
        } else {
            story.takes(agent, goto("D.md"));
        }
    }
    story.takes("main.2", goto("E.md"));
    story
}

#[test]
fn agents_of_a_shared_worktree_stay_while_its_files_are_as_they_were() {
    let (cut, run, _) = shared_worktree([false, false]).cut_at("main.1", 2);
    assert!(!cut.is_cut(&agent_id("main.2")));
    assert_eq!(run.agents[&agent_id("main.2")].step, 4);
}

#[test]
fn agents_of_a_shared_worktree_are_cut_once_its_files_change() {
    for changes in [[true, false], [false, true], [true, true]] {
        let (cut, run, kept) = shared_worktree(changes).cut_at("main.1", 2);
        assert!(cut.is_cut(&agent_id("main.2")), "{changes:?}");
        // The second step of main.2 stays only if nothing has changed, and no snapshot of a later time does.
        assert_eq!(run.agents[&agent_id("main.2")].step, 2, "{changes:?}");
        assert!(kept.iter().all(|record| record.snapshot.is_none()) && run.worktrees.is_empty());
    }
}

#[test]
fn changes_before_the_cut_and_in_other_worktrees_cut_nobody() {
    let mut story = Story::in_worktree();
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.takes("main", tag(TagName::Fork, "A.md", "B.md"));
    story.changes_files("main.2", goto("C.md"), "main", "before");
    story.takes("main.1", goto("C.md"));
    story.changes_files("main.2", goto("D.md"), "main.2", "elsewhere");
    story.takes("main.1", goto("D.md"));
    let (cut, run, _) = story.cut_at("main.1", 2);
    assert!(!cut.is_cut(&agent_id("main.2")));
    let trees: Vec<_> = run.worktrees.keys().map(AgentId::as_str).collect();
    assert_eq!((trees, run.agents[&agent_id("main.2")].step), (vec!["main", "main.2"], 3));
}
