//! The reducer and the run as a whole: it pauses, resumes and ends.

use super::*;
use crate::event::RunCommand;
use crate::model::ModelName;
use crate::run::PauseReason;
use crate::settings::{MaxProcs, Settings};

fn pause(scene: &mut Scene, pause: PauseReason) -> Vec<Effect> {
    scene.happens(Event::RunPaused { pause })
}

fn resume(scene: &mut Scene, settings: Settings) -> Vec<Effect> {
    scene.happens(Event::RunResumed { settings: Box::new(settings) })
}

#[test]
fn repeated_pause_holds_run_with_first_reason() {
    let mut scene = Scene::begin();
    let unavailable = PauseReason::Unavailable { message: "gone".to_owned() };
    assert_eq!(pause(&mut scene, unavailable.clone()), [Effect::Hold]);
    assert_eq!(pause(&mut scene, PauseReason::Stopped), [Effect::Hold]);
    assert_eq!((scene.run.status, &scene.run.pause), (RunStatus::Paused, &Some(unavailable)));
}

#[test]
fn turn_ending_while_run_is_paused_is_applied() {
    let mut scene = Scene::begin();
    pause(&mut scene, PauseReason::Interrupted);
    scene.take("main", goto("B.md"));
    assert_eq!(scene.run.status, RunStatus::Paused);
    scene.take("main", result("done"));
    assert_eq!((scene.run.status, &scene.run.pause), (RunStatus::Completed, &None));
}

#[test]
fn resume_continues_every_agent_with_new_settings() {
    let mut scene = Scene::begin();
    scene.take("main", tag(TagName::Fork, "N.md", "W.md"));
    let agents = scene.run.agents.clone();
    pause(&mut scene, PauseReason::Stopped);
    let settings = Settings {
        model: Some(ModelName::HAIKU),
        max_procs: MaxProcs::Count(3),
        ..Settings::default()
    };
    let effects = resume(&mut scene, settings.clone());
    assert_eq!(effects, [proceed("main"), proceed("main.1")]);
    assert_eq!((scene.run.status, &scene.run.pause), (RunStatus::Running, &None));
    assert_eq!((&scene.run.settings, &scene.run.agents), (&settings, &agents));
}

#[test]
fn finished_run_ignores_pause_and_resume() {
    for (ends_well, status) in [(true, RunStatus::Completed), (false, RunStatus::Failed)] {
        let mut scene = Scene::begin();
        if ends_well {
            scene.take("main", result("done"));
        } else {
            scene.happens(Event::AgentFailed(scene.end_badly("main")));
        }
        assert_eq!(scene.run.status, status);
        pause(&mut scene, PauseReason::Stopped);
        assert_eq!((scene.run.status, &scene.run.pause), (status, &None));
        assert_eq!(resume(&mut scene, Settings::default()), [Effect::End]);
        assert_eq!(scene.run.status, status);
    }
}

#[test]
fn failed_agent_fails_run_regardless_of_end_order() {
    for child_fails in [true, false] {
        let mut scene = Scene::begin();
        scene.take("main", tag(TagName::Fork, "N.md", "W.md"));
        let (bad, good) = if child_fails { ("main.1", "main") } else { ("main", "main.1") };
        scene.happens(Event::AgentFailed(scene.end_badly(bad)));
        scene.take(good, result("done"));
        assert_eq!(scene.run.status, RunStatus::Failed);
    }
}

#[test]
fn stop_command_emits_effect_without_changing_run() {
    let mut scene = Scene::begin();
    let before = scene.run.clone();
    let event = Event::CommandReceived { id: "1".to_owned(), command: RunCommand::Stop };
    assert_eq!(scene.happens(event), [Effect::Stop]);
    assert_eq!(scene.run, Run { seq: 2, ..before });
}
