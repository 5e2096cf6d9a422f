//! The reducer and the orders of people to single agents.

use super::*;
use crate::decide::message_read;
use crate::event::RunCommand;
use crate::event::{AgentFamily, AgentHold, AgentMessage, AttachedSession, PromptEdit};

/// The id of a command, and that of the message that it brings.
const COMMAND: &str = "0001785332800000-2f1a3c5e7b9d4f608192a3b4c5d6e7f8";
const MESSAGE: &str = "2f1a3c5e-7b9d-4f60-8192-a3b4c5d6e7f8";

fn ordered(scene: &mut Scene, command: RunCommand) -> Vec<Effect> {
    scene.happens(Event::CommandReceived { id: COMMAND.to_owned(), command })
}

fn tell(scene: &mut Scene) -> Vec<Effect> {
    let message = AgentMessage { agent: agent_id("main"), text: "be brief".to_owned() };
    ordered(scene, RunCommand::Tell(message))
}

fn hold(scene: &mut Scene) {
    let family = AgentFamily { agent: agent_id("main"), descendants: false };
    ordered(scene, RunCommand::Hold(family.into()));
}

fn asked(scene: &Scene) -> String {
    scene.agent("main").asked_text("prompt".to_owned())
}

fn taken(scene: &Scene) -> Vec<&str> {
    scene.agent("main").orders.taken().collect()
}

#[test]
fn message_goes_to_the_running_turn_and_belongs_to_it_once_read() {
    let mut scene = Scene::begin();
    let effects = tell(&mut scene);
    let id = MessageId::new(MESSAGE);
    let text = "A message from the person who runs you:\n\nbe brief".to_owned();
    assert_eq!(effects, [Effect::TellMessage { agent: agent_id("main"), id: id.clone(), text }]);
    assert_eq!(taken(&scene), Vec::<&str>::new());

    let turn = scene.turn("main");
    assert_eq!(message_read(&scene.run, &turn, &message(7)), None, "it is the prompt of the turn");
    let earlier = TurnId { turn: 7, ..turn.clone() };
    assert_eq!(message_read(&scene.run, &earlier, &id), None, "the turn is over");
    let read = message_read(&scene.run, &turn, &id).expect("it is read");
    assert_eq!(scene.happens(read), [], "the turn goes on");
    assert_eq!(taken(&scene), ["be brief"]);
    assert_eq!(message_read(&scene.run, &turn, &id), None, "it is read once");

    let failed = scene.failure("main");
    scene.happens(Event::TurnFailed(failed));
    assert_eq!(taken(&scene), ["be brief"], "the next try is told, too");
    scene.take("main", goto("B.md"));
    assert!(scene.agent("main").orders.is_empty());
}

#[test]
fn message_of_a_command_without_id_waits_for_the_next_prompt() {
    let mut scene = Scene::begin();
    let message = AgentMessage { agent: agent_id("main"), text: "be brief".to_owned() };
    let command = RunCommand::Tell(message);
    let effects = scene.happens(Event::CommandReceived { id: "c1".to_owned(), command });
    assert_eq!(effects, []);
    assert_eq!(scene.agent("main").orders.untaken().count(), 1);
}

#[test]
fn edited_prompt_is_asked_in_the_pending_step() {
    let mut scene = Scene::begin();
    let edit = PromptEdit { turn: scene.turn("main"), text: "else".to_owned(), is_late: false };
    hold(&mut scene);
    assert_eq!(ordered(&mut scene, RunCommand::Edit(edit.clone())), []);
    let failed = scene.failure("main");
    scene.happens(Event::TurnFailed(failed));
    assert_eq!(asked(&scene), "else");
    scene
        .run
        .agents
        .get_mut(&agent_id("main"))
        .expect("main")
        .live_again(session(90), Timestamp(2000));
    assert_eq!(asked(&scene), "else", "a retry asks it again");
    scene.take("main", goto("B.md"));
    assert_eq!(asked(&scene), "prompt");
    let late = ordered(&mut scene, RunCommand::Edit(edit));
    assert!(matches!(&late[..], [Effect::Warn { .. }]), "{late:?}");
    assert_eq!(asked(&scene), "prompt");
}

#[test]
fn visit_and_hold_end_each_for_itself_and_a_release_ends_both() {
    let mut scene = Scene::begin();
    let family = || AgentFamily { agent: agent_id("main"), descendants: false };
    let visit = |name: &str| AgentHold { family: family(), visit: Some(name.to_owned()) };
    let is_held = |scene: &Scene| scene.agent("main").is_held();
    ordered(&mut scene, RunCommand::Hold(visit("one")));
    ordered(&mut scene, RunCommand::Hold(visit("two")));
    ordered(&mut scene, RunCommand::Release(visit("two")));
    assert!(is_held(&scene), "the second visit never began");
    hold(&mut scene);
    ordered(&mut scene, RunCommand::Release(visit("one")));
    assert!(is_held(&scene), "a person holds it, too");
    ordered(&mut scene, RunCommand::Hold(visit("three")));
    let mut again = scene.agent("main").clone();
    again.live_again(session(90), Timestamp(2000));
    assert!(again.orders.visit.is_none() && again.is_held(), "a retry ends the visit alone");
    ordered(&mut scene, RunCommand::Release(family().into()));
    assert!(!is_held(&scene) && scene.agent("main").orders.is_empty());
}

#[test]
fn edited_reminder_is_asked_once() {
    let mut scene = Scene::begin();
    scene.run.agents.get_mut(&agent_id("main")).expect("main").reminder = Some("again".to_owned());
    hold(&mut scene);
    let edit = PromptEdit { turn: scene.turn("main"), text: "else".to_owned(), is_late: false };
    ordered(&mut scene, RunCommand::Edit(edit));
    assert_eq!(asked(&scene), "else");
    scene
        .run
        .agents
        .get_mut(&agent_id("main"))
        .expect("main")
        .live_again(session(90), Timestamp(2000));
    assert_eq!(asked(&scene), "prompt", "a retry begins with the prompt");
}

#[test]
fn agent_goes_on_in_the_session_of_a_person_unless_it_has_gone_on_meanwhile() {
    let mut scene = Scene::begin();
    scene.take("main", goto("B.md"));
    let attached = |scene: &Scene, from: SessionId| AttachedSession {
        turn: scene.turn("main"),
        from,
        session: session(90),
        message: Some(message(90)),
        is_late: false,
    };
    hold(&mut scene);
    let other = attached(&scene, session(80));
    let refused = ordered(&mut scene, RunCommand::Attach(other));
    assert!(matches!(&refused[..], [Effect::Warn { .. }]), "{refused:?}");
    let in_session = scene.agent("main").session.id.clone();
    let in_session = attached(&scene, in_session);
    let attached = AttachedSession { is_late: true, ..in_session.clone() };
    let refused = ordered(&mut scene, RunCommand::Attach(attached));
    assert!(matches!(&refused[..], [Effect::Warn { .. }]), "{refused:?}");
    assert_eq!(ordered(&mut scene, RunCommand::Attach(in_session.clone())), []);
    let main = scene.agent("main");
    assert_eq!(main.session, Session::resumed(session(90), Some(message(90))));
    scene.take("main", goto("A.md"));
    let late = ordered(&mut scene, RunCommand::Attach(in_session));
    assert!(matches!(&late[..], [Effect::Warn { .. }]), "{late:?}");
}
