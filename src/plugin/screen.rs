//! The rows of the live view: agents, their states and activities, times and costs. Pure.
//!
//! It stays calm: a headline, the agents that run, as many as fit, and a line for the rest.

use super::sentence::date;
use super::sentence::wait::{EXECUTES_GRAPH, EXECUTES_PROGRAM, wait_sentence};
use crate::actor::registry::{AgentActivity, AgentView};
use crate::domain::money::Usd;
use crate::domain::run::RunStatus;
use crate::domain::time::Timestamp;
use crate::domain::wait_reason::WaitReason;

/// The numbers of the headline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHeadline {
    /// The run.
    pub run: String,
    /// The time it was started or resumed.
    pub since: Timestamp,
    /// The number of agents that have ended, and the number of failed ones among them.
    pub ended: (usize, usize),
    /// The cost so far.
    pub spent: Usd,
    /// The limit of the cost.
    pub budget: Option<Usd>,
    /// The status of the run.
    pub status: RunStatus,
    /// The time before which no turn starts, because the usage limit is reached.
    pub limited_until: Option<Timestamp>,
}

/// Returns the rows for a terminal of that size.
#[must_use]
pub fn rows(
    headline: &RunHeadline,
    views: &[AgentView],
    now: Timestamp,
    size: (u16, u16),
) -> Vec<String> {
    let (height, width) = (usize::from(size.0), usize::from(size.1));
    let room = height.saturating_sub(3).clamp(1, 12);
    let shown = if views.len() > room { room - 1 } else { views.len() };
    let name = column(views[..shown].iter().map(|view| view.id.as_str()));
    let state = column(views[..shown].iter().map(|view| view.state.as_str()));
    let mut rows = vec![head(headline, views, now)];
    let limit = headline.limited_until.filter(|&until| until > now);
    rows.extend(views[..shown].iter().map(|view| row(view, now, (name, state), limit)));
    if shown < views.len() {
        rows.push(format!("  … and {} more", views.len() - shown));
    }
    rows.iter()
        .map(|row| console::truncate_str(row, width.saturating_sub(1), "…").into_owned())
        .collect()
}

fn column<'text>(texts: impl Iterator<Item = &'text str>) -> usize {
    texts.map(str::len).max().unwrap_or(0).min(32)
}

fn head(headline: &RunHeadline, views: &[AgentView], now: Timestamp) -> String {
    let running =
        views.iter().filter(|view| !matches!(view.activity, AgentActivity::Waiting(_))).count();
    let mut parts =
        vec![format!("{running} running"), format!("{} waiting", views.len() - running)];
    let (ended, failed) = headline.ended;
    if ended > 0 {
        parts.push(format!("{ended} finished"));
    }
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    let spent = match headline.budget {
        Some(budget) => format!("{} of {budget}", headline.spent),
        None => headline.spent.to_string(),
    };
    let limited = headline.limited_until.filter(|&until| until > now);
    let state = match (headline.status, limited) {
        (RunStatus::Paused, _) => " · pausing".to_owned(),
        (_, Some(until)) => format!(" · usage limit, continues {}", date(until)),
        _ => String::new(),
    };
    format!(
        "{} · {} · {spent} · {}{state}",
        headline.run,
        parts.join(", "),
        clock(now.since(headline.since))
    )
}

fn row(
    view: &AgentView,
    now: Timestamp,
    (name, state): (usize, usize),
    limit: Option<Timestamp>,
) -> String {
    let (doing, time) = match &view.activity {
        AgentActivity::Turn { since, seen } => {
            let seen = if seen.is_empty() { "starting" } else { seen };
            (seen.to_owned(), clock(now.since(*since)))
        }
        AgentActivity::Graph => (EXECUTES_GRAPH.to_owned(), String::new()),
        AgentActivity::Program => (EXECUTES_PROGRAM.to_owned(), String::new()),
        AgentActivity::Waiting(reason) => {
            let limited = limit.filter(|_| *reason == WaitReason::Permit);
            let reason = limited.map_or_else(|| reason.clone(), WaitReason::UsageLimit);
            let when = |until: Timestamp| format!("in {}", clock(until.since(now)));
            (wait_sentence(&reason, when), String::new())
        }
    };
    format!(
        "  {:name$}  {:state$}  {time:>6}  {:>8}  {doing}",
        view.id,
        view.state,
        view.cost.to_string()
    )
}

/// Returns a duration as `0:05`, `12:34`, `1:02:03`.
#[must_use]
pub fn clock(millis: u64) -> String {
    let seconds = millis / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{AgentId, SessionId, StateName};

    fn view(number: u32, activity: AgentActivity) -> AgentView {
        AgentView {
            id: AgentId::main().child(number),
            state: StateName::parse("WORKER.md").expect("a state"),
            session: SessionId::new("s"),
            stack: 0,
            activity,
            cost: Usd::from_dollars(0.02),
        }
    }

    fn headline() -> RunHeadline {
        RunHeadline {
            run: "tour".into(),
            since: Timestamp(0),
            ended: (3, 1),
            spent: Usd::from_dollars(0.25),
            budget: Some(Usd::from_dollars(1.0)),
            status: RunStatus::Running,
            limited_until: None,
        }
    }

    fn join(more: u32, of: u32) -> WaitReason {
        WaitReason::Join { more, of, done: of - more, failed: 0, until: None }
    }

    #[test]
    fn each_agent_row_shows_its_activity() {
        let views = [
            view(1, AgentActivity::Turn { since: Timestamp(60_000), seen: "Bash".into() }),
            view(12, AgentActivity::Waiting(WaitReason::Permit)),
            view(13, AgentActivity::Waiting(WaitReason::Backoff(Timestamp(67_000)))),
            view(14, AgentActivity::Waiting(WaitReason::Stagger(Timestamp(67_000)))),
            view(15, AgentActivity::Waiting(join(3, 5))),
            view(16, AgentActivity::Waiting(join(1, 1))),
            view(17, AgentActivity::Graph),
        ];
        assert_eq!(
            rows(&headline(), &views, Timestamp(65_000), (24, 100)),
            [
                "tour · 2 running, 5 waiting, 3 finished, 1 failed · $0.25 of $1.00 · 1:05",
                "  main.1   WORKER.md    0:05     $0.02  Bash",
                "  main.12  WORKER.md             $0.02  waits for a free process",
                "  main.13  WORKER.md             $0.02  is run again in 0:02",
                "  main.14  WORKER.md             $0.02  starts in 0:02",
                "  main.15  WORKER.md             $0.02  waits for 3 more of 5 agents",
                "  main.16  WORKER.md             $0.02  waits for 1 more of 1 agent",
                "  main.17  WORKER.md             $0.02  executes the graph",
            ]
        );
    }

    #[test]
    fn thousands_of_agents_are_cut_to_a_few_rows() {
        let views: Vec<AgentView> = (1..=5000)
            .map(|number| view(number, AgentActivity::Waiting(WaitReason::Permit)))
            .collect();
        let rows = rows(&headline(), &views, Timestamp(0), (24, 40));
        assert_eq!(rows.len(), 13);
        assert_eq!(rows[12], "  … and 4989 more");
        assert!(rows.iter().all(|row| row.chars().count() < 40));
    }

    #[test]
    fn elapsed_time_is_formatted_as_clock() {
        assert_eq!([clock(5_400), clock(754_000), clock(3_723_000)], ["0:05", "12:34", "1:02:03"]);
    }
}
