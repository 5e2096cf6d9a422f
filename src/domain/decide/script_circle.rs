//! The bound of circles that are made only of scripts: no turn, and so no budget, would end them.

use super::failure::give_up;
use super::{AcceptedTransition, TurnReport};
use crate::domain::agent::Agent;
use crate::domain::event::Event;
use crate::domain::id::StepMode;
use crate::domain::transition::Transition;
use crate::domain::turn::FailureCause;

/// The most scripts that an agent runs in a row, with those of the agents that forked it. A turn of Claude Code or
/// an answer of a person begins the count anew. It is as many as a graph may pass nodes.
pub const MAX_SCRIPTS_IN_A_ROW: u32 = 10_000;

/// Returns the failure of an agent whose scripts lead to each other without end; `None` for any other step.
pub(super) fn end_script_circle(
    agent: &Agent,
    accepted: &AcceptedTransition,
    report: &TurnReport,
) -> Option<Event> {
    let goes_on = !matches!(accepted.transition, Transition::Result { .. });
    let is_over = agent.script_steps.saturating_add(1) >= MAX_SCRIPTS_IN_A_ROW;
    (agent.current_state.steps() == Some(StepMode::Tagged)
        && agent.advances_itself()
        && goes_on
        && is_over).then(|| {
        let why = format!(
            "{MAX_SCRIPTS_IN_A_ROW} scripts ran in a row, without a turn of Claude Code or an answer of a person between them, and no more may; lead the circle to a <result>, or through a prompt"
        );
        give_up(agent, report, FailureCause::Workflow, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::apply::tests::scene::{Scene, goto, result};
    use crate::domain::id::StateName;
    use crate::domain::transition::Transition;

    fn ends(agent: &Agent, transition: Transition) -> Option<Event> {
        let accepted = AcceptedTransition { transition, implicit: false, overruled: None };
        end_script_circle(agent, &accepted, &TurnReport::empty(agent.turn_id()))
    }

    #[test]
    fn circle_of_scripts_ends_at_its_bound_with_a_clear_error() {
        let scene = Scene::begin();
        let mut agent = scene.agent("main").clone();
        agent.current_state = StateName::parse("A.sh").expect("a state");
        agent.script_steps = MAX_SCRIPTS_IN_A_ROW - 2;
        assert_eq!(ends(&agent, goto("B.sh")), None);
        agent.script_steps += 1;
        let Some(Event::AgentFailed(failed)) = ends(&agent, goto("B.sh")) else { panic!("no end") };
        assert_eq!(failed.cause, FailureCause::Workflow);
        assert!(
            failed.error.starts_with("in A.sh: 10000 scripts ran in a row"),
            "{}",
            failed.error
        );
        assert_eq!(ends(&agent, result("x")), None);
        agent.current_state = StateName::parse("A.md").expect("a state");
        assert_eq!(ends(&agent, goto("B.sh")), None);
    }

    #[test]
    fn turn_begins_the_count_of_scripts_anew_and_a_fork_hands_it_on() {
        let mut scene = Scene::begin();
        scene.take("main", goto("A.sh"));
        let script = |scene: &Scene, transition| {
            let mut step = scene.step("main", transition);
            step.without_turn = true;
            Event::StepFinished(step)
        };
        for _ in 0..3 {
            let step = script(&scene, goto("A.sh"));
            scene.happens(step);
        }
        assert_eq!(scene.agent("main").script_steps, 3);
        let fork = crate::domain::apply::tests::scene::tag(
            crate::domain::transition::TagName::Fork,
            "NEXT.md",
            "B.sh",
        );
        let step = script(&scene, fork);
        scene.happens(step);
        assert_eq!((scene.agent("main").script_steps, scene.agent("main.1").script_steps), (4, 4));
        scene.take("main", goto("A.sh"));
        assert_eq!(scene.agent("main").script_steps, 0);
    }
}
