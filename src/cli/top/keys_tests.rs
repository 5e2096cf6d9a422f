//! The effect of keys on the screen.

use super::*;
use crate::cli::top::rows;
use crate::cli::top::rows_tests::{entry, shown};
use crate::domain::agent_status::{AgentStatus, WaitReason};
use crate::runtime::observing::agent_entries::TopAgentStatus;

/// Twenty agents that wait in each of three states, one that runs, and `main`; three rows at a time.
struct Scene {
    screen: TopScreen,
    entries: Vec<AgentEntry>,
    rows: Vec<TreeRow>,
}

impl Scene {
    fn new() -> Self {
        let waits = || TopAgentStatus::Live(AgentStatus::Waiting(WaitReason::Permit));
        let mut entries = vec![entry("main", "PLAN.md", waits())];
        for (number, state) in ["A.md", "B.md", "C.md"].iter().cycle().take(60).enumerate() {
            entries.push(entry(&format!("main.{}", number + 1), state, waits()));
        }
        entries.push(entry("main.61", "D.md", TopAgentStatus::Live(AgentStatus::Running)));
        let mut screen = TopScreen::telling(None);
        screen.room = 3;
        let mut scene = Self { screen, entries, rows: Vec::new() };
        scene.follow_rows();
        scene
    }

    fn follow_rows(&mut self) {
        self.rows = rows(&self.entries, &self.screen.filter, &self.screen.opened);
        self.screen.follow_rows(&self.entries, &self.rows);
    }

    fn press(&mut self, key: KeyCode) -> Option<KeyCommand> {
        let key = KeyEvent::new(key, KeyModifiers::NONE);
        let order = press(&mut self.screen, key, &self.entries, &self.rows);
        self.follow_rows();
        order
    }

    fn type_in(&mut self, keys: &str) -> Option<KeyCommand> {
        keys.chars().fold(None, |_, key| self.press(KeyCode::Char(key)))
    }

    fn chosen(&self) -> String {
        shown(&self.entries, &self.rows)[self.screen.at].clone()
    }
}

#[test]
fn selection_survives_added_and_removed_rows() {
    let mut scene = Scene::new();
    assert_eq!(scene.chosen(), "0 main");
    scene.type_in("jj");
    assert_eq!(scene.chosen(), "1 main.1*20");
    scene.entries.push(entry("main.70", "D.md", TopAgentStatus::Silent));
    scene.follow_rows();
    assert_eq!((&*scene.chosen(), scene.screen.at, scene.screen.first), ("1 main.1*20", 3, 1));
    scene.type_in("k");
    assert_eq!(scene.chosen(), "1 main.61");
    scene.entries.retain(|entry| entry.id.as_str() != "main.61");
    scene.follow_rows();
    assert_eq!(scene.chosen(), "1 main.1*20", "what stands in its place");
    scene.type_in("g");
    scene.entries.insert(0, entry("main.9.1", "D.md", TopAgentStatus::Silent));
    scene.follow_rows();
    assert_eq!((&*scene.chosen(), scene.screen.first), ("0 main", 0));
}

#[test]
fn selected_row_stays_visible() {
    let mut scene = Scene::new();
    scene.press(KeyCode::End);
    assert_eq!((scene.screen.at, scene.screen.first), (4, 2));
    scene.press(KeyCode::PageUp);
    assert_eq!((scene.screen.at, scene.screen.first), (1, 1));
    scene.press(KeyCode::PageUp);
    assert_eq!((scene.screen.at, scene.screen.first), (0, 0));
    scene.screen.room = 0;
    scene.type_in("jjj");
    assert_eq!(scene.screen.at, 3);
}

#[test]
fn enter_toggles_family_or_opens_agent_messages() {
    let mut scene = Scene::new();
    scene.type_in("jj");
    scene.press(KeyCode::Enter);
    assert_eq!(scene.rows.len(), 25);
    assert_eq!(scene.chosen(), "1 main.1*20");
    scene.press(KeyCode::Enter);
    assert_eq!(scene.rows.len(), 5);
    scene.type_in("k");
    scene.press(KeyCode::Enter);
    let ScreenView::Messages { agent, back: 0 } = &scene.screen.view else { panic!("messages") };
    assert_eq!(agent.as_str(), "main.61");
    scene.type_in("kk");
    assert!(matches!(scene.screen.view, ScreenView::Messages { back: 2, .. }));
    assert_eq!(scene.type_in("q"), None, "it leads back, not out");
    assert_eq!(scene.screen.view, ScreenView::Agents);
}

#[test]
fn arrows_expand_and_collapse_family_and_o_toggles_all() {
    let mut scene = Scene::new();
    scene.type_in("jjl");
    assert_eq!((scene.rows.len(), &*scene.chosen()), (25, "1 main.1*20"));
    scene.type_in("ll");
    assert_eq!(scene.rows.len(), 25, "it is open");
    scene.type_in("jjjj");
    assert_eq!(scene.chosen(), "2 main.10");
    scene.press(KeyCode::Left);
    assert_eq!((scene.rows.len(), &*scene.chosen()), (25, "1 main.1*20"));
    scene.press(KeyCode::Left);
    assert_eq!((scene.rows.len(), &*scene.chosen()), (5, "1 main.1*20"));
    scene.press(KeyCode::Left);
    assert_eq!(scene.chosen(), "0 main");
    scene.type_in("hl");
    assert_eq!((scene.rows.len(), &*scene.chosen()), (5, "0 main"));
    scene.type_in("o");
    assert_eq!(scene.rows.len(), 62);
    scene.type_in("jj");
    assert_eq!(scene.chosen(), "1 main.1");
    scene.type_in("o");
    assert_eq!((scene.rows.len(), &*scene.chosen()), (5, "1 main.1*20"), "in its place");
}

#[test]
fn filter_can_be_typed_and_cleared() {
    let mut scene = Scene::new();
    scene.type_in("/PLANx");
    assert!(scene.rows.is_empty());
    scene.press(KeyCode::Backspace);
    assert_eq!(scene.screen.filter.text, "plan");
    assert_eq!(shown(&scene.entries, &scene.rows), ["0 main"]);
    scene.press(KeyCode::Enter);
    scene.type_in("r");
    assert!(scene.rows.is_empty());
    scene.press(KeyCode::Esc);
    assert!(!scene.screen.filter.is_set() && scene.rows.len() == 5);
    scene.type_in("/q");
    scene.press(KeyCode::Esc);
    assert_eq!((&scene.screen.view, scene.screen.filter.is_set()), (&ScreenView::Agents, false));
}

#[test]
fn stop_needs_confirmation_and_q_or_ctrl_c_leaves() {
    let mut scene = Scene::new();
    assert_eq!(scene.type_in("s"), None);
    assert_eq!(scene.type_in("q"), None, "that is no yes");
    assert_eq!(scene.type_in("py"), Some(KeyCommand::Stop));
    assert_eq!(scene.type_in("?"), None);
    assert_eq!(scene.type_in("q"), None);
    assert_eq!(scene.type_in("q"), Some(KeyCommand::Leave));
    let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    scene.type_in("/");
    assert_eq!(press(&mut scene.screen, control, &[], &[]), Some(KeyCommand::Leave));
}
