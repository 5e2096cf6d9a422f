//! `raymond top`: the activity of every agent of a run, on a screen that stays calm with ten thousand.
//!
//! It reads only the journal and the transcripts, so it works beside a live run and on a run that is not locked. Pure
//! functions make the rows and texts, and the effect of a key on the screen's data. Only the loop of the screen and the
//! watcher of the run have side effects.

use std::collections::HashSet;
use std::io::{IsTerminal, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGTERM};

use self::draw::{ScreenContent, draw, room};
use super::args::NamedRunArgs;
use super::args::readers::TopArgs;
use super::exit::{CliExitCode, Error};
use super::{agent_orders, person};
use crate::cli::settings;
use crate::cli::top::draw::headlines;
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::tool_call::printable;
use crate::domain::tree;
use crate::domain::tree::{
    AgentHierarchy, FAMILY_FOLD_SIZE, FamilyKey, FoldOptions, FoldSource, RowSubject, TreeRow,
};
use crate::plugin::styled::TextTone;
use crate::process::claude::stream::activity::ConversationItem;
use crate::process::claude::turn_transcript::changed;
use crate::runtime::directories;
use crate::runtime::observing::agent_entries::{AgentEntry, StatusFilter, entries, whole_reason};
use crate::runtime::observing::run_watcher::RunWatcher;
use crate::store::layout::RunsRoot;
use crate::store::lock;
use crate::store::view::ids;

mod draw;

/// The interval between two checks for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The longest interval between two drawings, because times are on the screen.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Runs `raymond top`.
///
/// # Errors
/// [`Error`] if there is no such run or no terminal.
pub fn top(args: &TopArgs) -> Result<CliExitCode, Error> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Error::Usage(
            "raymond top needs a terminal; `raymond tree RUN` and `raymond status RUN` do not"
                .to_owned(),
        ));
    }
    let root = args.dir.root();
    let named = NamedRunArgs { run: args.run.clone(), last: args.last };
    let (id, others) = choose(&root, &named)?;
    let watch = RunWatcher::open(root.run(&id))?;
    let leave = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&leave)).map_err(failed)?;
    }
    let notice = (others > 0).then(|| {
        format!("this is the newest of {} live runs; `raymond list` shows all", others + 1)
    });
    let top = TopApp {
        watch,
        screen: TopScreen::telling(notice),
        headlines: Vec::new(),
        entries: Vec::new(),
        rows: Vec::new(),
        messages: Vec::new(),
        made: None,
        drawn: None,
    };
    let terminal = ratatui::try_init().map_err(failed)?;
    leave_when_asked(Arc::clone(&leave));
    let outcome = top.show(terminal, &leave);
    let _ = ratatui::try_restore();
    outcome
}

/// Ends the program when a signal asks for it, or when its terminal is gone: a read of keys from a terminal that
/// is gone may never return.
fn leave_when_asked(leave: Arc<AtomicBool>) {
    let _ = std::thread::Builder::new().name("leave".to_owned()).spawn(move || {
        while !leave.load(Ordering::Relaxed) && stdin().is_terminal() {
            std::thread::sleep(POLL_INTERVAL);
        }
        leave.store(true, Ordering::Relaxed);
        std::thread::sleep(REDRAW_INTERVAL);
        let _ = ratatui::try_restore();
        std::process::exit(CliExitCode::Interrupted.code().into());
    });
}

struct TopApp {
    watch: RunWatcher,
    screen: TopScreen,
    headlines: Vec<String>,
    entries: Vec<AgentEntry>,
    rows: Vec<TreeRow>,
    messages: Vec<(TextTone, String)>,
    /// The time at which the rows were made; `None` if something has changed since.
    made: Option<Instant>,
    /// The time at which they were drawn; `None` if something has changed since.
    drawn: Option<Instant>,
}

impl TopApp {
    /// Shows the run until the user leaves.
    fn show(
        mut self,
        mut terminal: DefaultTerminal,
        leave: &AtomicBool,
    ) -> Result<CliExitCode, Error> {
        let mut refreshed = Instant::now();
        while !leave.load(Ordering::Relaxed) {
            if refreshed.elapsed() >= POLL_INTERVAL {
                refreshed = Instant::now();
                if self.watch.refresh()? {
                    (self.made, self.drawn) = (None, None);
                    if !self.watch.known().held {
                        self.screen.notice = None;
                    }
                }
            }
            if self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW_INTERVAL) {
                self.draw(&mut terminal)?;
            }
            let mut wait = POLL_INTERVAL.saturating_sub(refreshed.elapsed());
            while poll(wait).map_err(failed)? {
                if self.take(&read().map_err(failed)?)? == Some(KeyCommand::Leave) {
                    return Ok(CliExitCode::Success);
                }
                wait = Duration::ZERO;
            }
        }
        Ok(CliExitCode::Interrupted)
    }

    /// Handles a key, or the terminal's new size.
    fn take(&mut self, event: &Event) -> Result<Option<KeyCommand>, Error> {
        self.drawn = None;
        let Some(key) = event.as_key_event().filter(|key| key.kind != KeyEventKind::Release) else {
            return Ok(None);
        };
        let (filter, opened) = (self.screen.filter.clone(), self.screen.opened.clone());
        let order = press(&mut self.screen, key, &self.entries, &self.rows);
        if order == Some(KeyCommand::Stop) {
            self.screen.notice = Some(self.stop()?);
        }
        if filter != self.screen.filter || opened != self.screen.opened {
            self.rows = rows(&self.entries, &self.screen.filter, &self.screen.opened);
        }
        self.watch.read_messages_of(match &self.screen.view {
            ScreenView::Messages { agent, .. } => Some(agent),
            _ => None,
        });
        Ok(order)
    }

    /// Asks the run to stop, as `raymond stop` does.
    fn stop(&self) -> Result<String, Error> {
        if !self.watch.known().held {
            return Ok("it is not live, so there is nothing to stop".to_owned());
        }
        person::must_act("stop a run")?;
        let name = agent_orders::ask(self.watch.dir(), &directories::user_state()?.key()?)?;
        Ok(match name {
            Some(_) => "it stops once its running turns have finished".to_owned(),
            None => "it ended before it could be stopped".to_owned(),
        })
    }

    /// Rebuilds the rows after a change, or once a second for the times in them. The text of a row is made when it is
    /// drawn.
    fn make(&mut self) {
        if self.made.is_none_or(|made| made.elapsed() >= REDRAW_INTERVAL) {
            let known = self.watch.known();
            self.entries = entries(known);
            self.headlines = headlines(known, &self.entries);
            self.rows = rows(&self.entries, &self.screen.filter, &self.screen.opened);
            self.made = Some(Instant::now());
        }
    }

    fn draw(&mut self, terminal: &mut DefaultTerminal) -> Result<(), Error> {
        let size = terminal.size().map_err(failed)?;
        self.make();
        self.screen.room = room(size.height);
        self.screen.follow_rows(&self.entries, &self.rows);
        self.messages = message_lines(self.watch.messages(), size.width.into());
        if let ScreenView::Messages { agent, .. } = &self.screen.view
            && let Some(reason) = whole_reason(self.watch.known(), agent)
        {
            self.messages.extend(reason_lines(&reason, size.width.into()));
        }
        if let ScreenView::Messages { back, .. } = &mut self.screen.view {
            *back = (*back).min(self.messages.len().saturating_sub(self.screen.room));
        }
        let picture = ScreenContent {
            known: self.watch.known(),
            headlines: &self.headlines,
            entries: &self.entries,
            rows: &self.rows,
            messages: &self.messages,
            colours: console::colors_enabled(),
        };
        let drawn = terminal.draw(|frame| draw(frame, &picture, &self.screen));
        drawn.map_err(failed)?;
        self.drawn = Some(Instant::now());
        Ok(())
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("draw on", "the terminal")(error)
}

// The choice of a run when none is named: the newest locked one, or else the newest.

/// Returns the run to look at, and the number of other locked runs.
///
/// # Errors
/// [`Error::Usage`] if the directory has no runs, [`Error::Store`] if no run has that name.
fn choose(root: &RunsRoot, named: &NamedRunArgs) -> Result<(RunId, usize), Error> {
    if named.run.is_some() || named.last {
        return Ok((settings::chosen(named, root)?, 0));
    }
    let mut live = Vec::new();
    let mut all = ids(root)?;
    for id in &all {
        if lock::is_held(&root.run(id).lock())?.is_some() {
            live.push(id.clone());
        }
    }
    let others = live.len().saturating_sub(1);
    let from = if live.is_empty() { &mut all } else { &mut live };
    let newest = from.drain(..).max_by_key(|id| changed(&root.run(id).journal()));
    newest.map(|id| (id, others)).ok_or_else(|| settings::no_runs(root))
}

// The effect of a key: the screen afterwards, and a command beyond it. Pure.

/// The command of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyCommand {
    /// Leave the screen; the run continues.
    Leave,
    /// Ask the run to stop.
    Stop,
}

/// The keys with their explanations.
const HELP: &[(&str, &str)] = &[
    ("↑ ↓  j k", "choose a row; PgUp PgDn: by a page; g Home: the first; G End: the last"),
    ("Enter", "the last messages of an agent; opens or closes a folded row"),
    ("→ ←  l h", "opens a folded row; closes it, or selects its parent"),
    ("o", "opens all folded rows, and closes them again"),
    ("/", "shows only agents with a part of an id or a state; Esc shows all again"),
    ("r w u f", "only those that run, wait, are stuck, have failed"),
    ("a", "all agents again"),
    ("s p", "stop the run, after a question; running turns may finish"),
    ("?", "this help"),
    ("q  Ctrl-C", "leave; the run keeps running"),
    ("", ""),
    ("!", "stuck: waits for a person, or has been silent for half of its time"),
    ("▶ ·", "its turn runs; it waits"),
    ("✗ ✓ –", "failed; finished; unneeded: no agent waits for it any longer"),
    (
        "▸ ▾",
        "agents that began in the same state, folded and opened; those of them that are stuck, run or have failed follow, up to twelve of each",
    ),
];

/// Handles a key, and returns its command, if any.
fn press(
    screen: &mut TopScreen,
    key: KeyEvent,
    entries: &[AgentEntry],
    rows: &[TreeRow],
) -> Option<KeyCommand> {
    screen.notice = None;
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(KeyCommand::Leave);
    }
    match &mut screen.view {
        ScreenView::Agents => return in_agents(screen, key.code, entries, rows),
        ScreenView::Typing => typing(screen, key.code),
        ScreenView::Asking => {
            screen.view = ScreenView::Agents;
            return matches!(key.code, KeyCode::Char('y' | 'Y')).then_some(KeyCommand::Stop);
        }
        ScreenView::Messages { back, .. } => {
            let page = screen.room.max(1);
            match key.code {
                KeyCode::Up | KeyCode::Char('k') => *back += 1,
                KeyCode::Down | KeyCode::Char('j') => *back = back.saturating_sub(1),
                KeyCode::PageUp => *back += page,
                KeyCode::PageDown => *back = back.saturating_sub(page),
                KeyCode::End | KeyCode::Char('G') => *back = 0,
                KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter => {
                    screen.view = ScreenView::Agents;
                }
                _ => {}
            }
        }
        ScreenView::Help => screen.view = ScreenView::Agents,
    }
    None
}

fn in_agents(
    screen: &mut TopScreen,
    key: KeyCode,
    entries: &[AgentEntry],
    rows: &[TreeRow],
) -> Option<KeyCommand> {
    let page = isize::try_from(screen.room.max(1)).unwrap_or(1);
    match key {
        KeyCode::Char('q') => return Some(KeyCommand::Leave),
        KeyCode::Up | KeyCode::Char('k') => screen.go(entries, rows, -1),
        KeyCode::Down | KeyCode::Char('j') => screen.go(entries, rows, 1),
        KeyCode::PageUp => screen.go(entries, rows, -page),
        KeyCode::PageDown => screen.go(entries, rows, page),
        KeyCode::Home | KeyCode::Char('g') => screen.go_to_top(),
        KeyCode::End | KeyCode::Char('G') => screen.go(entries, rows, isize::MAX),
        KeyCode::Enter => enter(screen, entries, rows),
        KeyCode::Right | KeyCode::Char('l') => screen.open(rows, true),
        KeyCode::Left | KeyCode::Char('h') => out(screen, entries, rows),
        KeyCode::Char('o') => screen.opened.all = !screen.opened.all,
        KeyCode::Char('/') => screen.view = ScreenView::Typing,
        KeyCode::Char('?') => screen.view = ScreenView::Help,
        KeyCode::Char('s' | 'p') => screen.view = ScreenView::Asking,
        KeyCode::Char('r') => only(screen, Some(StatusFilter::Running)),
        KeyCode::Char('w') => only(screen, Some(StatusFilter::Waiting)),
        KeyCode::Char('u') => only(screen, Some(StatusFilter::Stuck)),
        KeyCode::Char('f') => only(screen, Some(StatusFilter::Failed)),
        KeyCode::Char('a') | KeyCode::Esc => screen.show(AgentFilter::default()),
        _ => {}
    }
    None
}

fn only(screen: &mut TopScreen, kind: Option<StatusFilter>) {
    screen.show(AgentFilter { kind, ..screen.filter.clone() });
}

fn enter(screen: &mut TopScreen, entries: &[AgentEntry], rows: &[TreeRow]) {
    match rows.get(screen.at).map(|row| &row.of) {
        Some(RowSubject::One(entry)) => {
            screen.view = ScreenView::Messages { agent: entries[*entry].id.clone(), back: 0 };
        }
        Some(RowSubject::Many { open, .. }) => screen.open(rows, !open),
        None => {}
    }
}

fn out(screen: &mut TopScreen, entries: &[AgentEntry], rows: &[TreeRow]) {
    match rows.get(screen.at).map(|row| &row.of) {
        Some(RowSubject::Many { open: true, .. }) => screen.open(rows, false),
        _ => screen.go_out(entries, rows),
    }
}

fn typing(screen: &mut TopScreen, key: KeyCode) {
    let mut text = screen.filter.text.clone();
    match key {
        KeyCode::Enter => screen.view = ScreenView::Agents,
        KeyCode::Esc => {
            screen.view = ScreenView::Agents;
            text.clear();
        }
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Char(typed) => text.extend(typed.to_lowercase()),
        _ => {}
    }
    screen.show(AgentFilter { text, kind: screen.filter.kind });
}

// The last messages of an agent as lines of a given width. Pure.

/// The number of lines shown of a tool's result.
const ANSWER: usize = 4;

/// Returns all messages that are kept, wrapped.
fn message_lines<'items>(
    items: impl IntoIterator<Item = &'items ConversationItem>,
    width: usize,
) -> Vec<(TextTone, String)> {
    let mut lines = Vec::new();
    for item in items {
        let (tone, first, rest, text, max_lines) = match item {
            ConversationItem::Text(text) => (TextTone::Plain, "", "", text, usize::MAX),
            ConversationItem::Tool(text) => (TextTone::Good, "▸ ", "  ", text, usize::MAX),
            ConversationItem::Answer(text) => (TextTone::Faint, "  → ", "    ", text, ANSWER),
            ConversationItem::Note(text) => (TextTone::Faint, "— ", "  ", text, usize::MAX),
        };
        let wrapped = wrap(&printable(text), width.saturating_sub(rest.len()).max(1));
        let more = wrapped.len() > max_lines;
        for (number, line) in wrapped.into_iter().take(max_lines).enumerate() {
            let ahead = if number == 0 { first } else { rest };
            lines.push((tone, format!("{ahead}{line}")));
        }
        if more {
            lines.push((tone, format!("{rest}…")));
        }
        if matches!(item, ConversationItem::Text(_)) {
            lines.push((TextTone::Plain, String::new()));
        }
    }
    lines
}

/// Returns the lines of the reason why an agent does not proceed.
fn reason_lines(text: &str, width: usize) -> Vec<(TextTone, String)> {
    let lines = wrap(&printable(text), width.saturating_sub(2).max(1));
    let lines = lines.into_iter().zip(std::iter::once("✗ ").chain(std::iter::repeat("  ")));
    lines.map(|(line, ahead)| (TextTone::Bad, format!("{ahead}{line}"))).collect()
}

/// Breaks a text into lines of at most `width`, between words if possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.trim_end().lines() {
        let paragraph = paragraph.replace('\t', "    ");
        let mut rest = paragraph.as_str();
        loop {
            let fits = console::truncate_str(rest, width, "").len();
            if fits >= rest.len() {
                lines.push(rest.to_owned());
                break;
            }
            let cut = match rest[..fits].rfind(' ') {
                Some(space) if space > 0 => space,
                _ if fits > 0 => fits,
                _ => rest.chars().next().map_or(rest.len(), char::len_utf8),
            };
            lines.push(rest[..cut].to_owned());
            rest = rest[cut..].trim_start();
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}

// The rows of the tree in `raymond top`.
//
// Stuck and busy agents come first; many alike share a row, folded by `fold` of `domain::tree`.
//
// A row holds only places in the list of agents. Its text is made when it is drawn.

/// A filter for the agents on the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct AgentFilter {
    /// A part of the id or the state, in lower case.
    text: String,
    /// The kind; `None` for all kinds.
    kind: Option<StatusFilter>,
}

/// The families whose agents have separate rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ExpandedFamilies {
    /// The single families.
    families: HashSet<FamilyKey>,
    /// True for all families, so that no row stands for many agents.
    all: bool,
}

impl AgentFilter {
    /// Returns whether anything is left out.
    fn is_set(&self) -> bool {
        !self.text.is_empty() || self.kind.is_some()
    }

    fn shows(&self, entry: &AgentEntry) -> bool {
        let has = |text: &str| text.to_lowercase().contains(&self.text);
        self.kind.is_none_or(|kind| entry.status.kind() == kind)
            && (self.text.is_empty()
                || has(entry.id.as_str())
                || entry.state.as_ref().is_some_and(|state| has(state.as_str())))
    }
}

/// Returns the rows: the whole tree, or a flat list of the agents that the filter shows.
fn rows(entries: &[AgentEntry], filter: &AgentFilter, opened: &ExpandedFamilies) -> Vec<TreeRow> {
    if filter.is_set() { list(entries, filter) } else { tree(entries, opened) }
}

fn list(entries: &[AgentEntry], filter: &AgentFilter) -> Vec<TreeRow> {
    let mut shown: Vec<usize> =
        (0..entries.len()).filter(|&entry| filter.shows(&entries[entry])).collect();
    let path = |id: &AgentId| -> Vec<u32> {
        id.as_str().split('.').map(|part| part.parse().unwrap_or(0)).collect()
    };
    shown.sort_by_cached_key(|&entry| (entries[entry].status.rank(), path(&entries[entry].id)));
    shown
        .into_iter()
        .map(|entry| TreeRow { depth: 0, of: RowSubject::One(entry), cut: false })
        .collect()
}

fn tree(entries: &[AgentEntry], opened: &ExpandedFamilies) -> Vec<TreeRow> {
    let branches = AgentHierarchy::of(entries.iter().map(|entry| &entry.id));
    let mut best: Vec<u8> = entries.iter().map(|entry| entry.status.rank()).collect();
    for place in branches.in_order().into_iter().rev() {
        if let Some(parent) = branches.parent(place) {
            best[parent] = best[parent].min(best[place]);
        }
    }
    let many = if opened.all { usize::MAX } else { FAMILY_FOLD_SIZE };
    let folding = FoldOptions { many, deepest: usize::MAX, opened: Some(&opened.families) };
    tree::rows(&branches, &RankedBranches { entries, best }, folding)
}

/// The agents with the best rank in the tree below each, its own included.
struct RankedBranches<'run> {
    entries: &'run [AgentEntry],
    best: Vec<u8>,
}

impl FoldSource for RankedBranches<'_> {
    fn id(&self, place: usize) -> &AgentId {
        &self.entries[place].id
    }

    fn began(&self, place: usize) -> Option<&StateName> {
        self.entries[place].began.as_ref()
    }

    fn stands_out(&self, place: usize) -> Option<u8> {
        self.entries[place].status.stands_out()
    }

    fn rank(&self, place: usize) -> u8 {
        self.best[place]
    }
}

// The state of the screen: view, filter, selected row and scroll position. Pure.
//
// The selection is an agent or a family, not a place, so it stays when other rows come and go. Before the first
// selection, the first row is selected.

/// The view of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum ScreenView {
    #[default]
    Agents,
    /// The agents, while the filter is typed.
    Typing,
    /// The agents, with the question whether to stop the run.
    Asking,
    /// The last messages of an agent.
    Messages {
        agent: AgentId,
        /// The number of lines between the end of the view and the last line.
        back: usize,
    },
    /// The help about the keys.
    Help,
}

/// The selection.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RowSelection {
    Agent(AgentId),
    /// A family in one row.
    Many(FamilyKey),
}

/// The state of the screen.
#[derive(Debug, Clone, Default)]
struct TopScreen {
    view: ScreenView,
    /// The filter for the agents.
    filter: AgentFilter,
    /// The families whose agents have separate rows.
    opened: ExpandedFamilies,
    /// The selection.
    chosen: Option<RowSelection>,
    /// The place of the selected row, and of the first visible one.
    at: usize,
    first: usize,
    /// The number of rows that fit on the screen.
    room: usize,
    /// A message that is shown once.
    notice: Option<String>,
}

impl RowSelection {
    fn of(entries: &[AgentEntry], row: &TreeRow) -> Self {
        match &row.of {
            RowSubject::One(entry) => Self::Agent(entries[*entry].id.clone()),
            RowSubject::Many { family, .. } => Self::Many(family.clone()),
        }
    }

    fn is(&self, entries: &[AgentEntry], row: &TreeRow) -> bool {
        match (self, &row.of) {
            (Self::Agent(id), RowSubject::One(entry)) => entries[*entry].id == *id,
            (Self::Many(chosen), RowSubject::Many { family, .. }) => chosen == family,
            _ => false,
        }
    }
}

impl TopScreen {
    /// Makes a screen that shows a message at first.
    fn telling(notice: Option<String>) -> Self {
        Self { notice, ..Self::default() }
    }

    /// Follows new rows: keeps the selection, or selects the row in its place, and scrolls to it.
    fn follow_rows(&mut self, entries: &[AgentEntry], rows: &[TreeRow]) {
        let last = rows.len().saturating_sub(1);
        if let Some(chosen) = &self.chosen {
            let here = |row: &TreeRow| chosen.is(entries, row);
            let still = rows.get(self.at).is_some_and(here);
            let place = if still { Some(self.at) } else { rows.iter().position(here) };
            match place {
                Some(place) => self.at = place,
                None => self.choose(entries, rows, self.at.min(last)),
            }
        } else {
            self.at = 0;
        }
        self.scroll(last);
    }

    /// Selects the row that is `by` rows further down, or up.
    fn go(&mut self, entries: &[AgentEntry], rows: &[TreeRow], by: isize) {
        let last = rows.len().saturating_sub(1);
        self.choose(entries, rows, self.at.saturating_add_signed(by).min(last));
        self.scroll(last);
    }

    /// Opens or closes the selected folded row.
    fn open(&mut self, rows: &[TreeRow], open: bool) {
        if let Some(TreeRow { of: RowSubject::Many { family, .. }, .. }) = rows.get(self.at) {
            if open {
                self.opened.families.insert(family.clone());
            } else {
                self.opened.families.remove(family);
            }
            self.chosen = Some(RowSelection::Many(family.clone()));
        }
    }

    /// Selects the parent of the selected row.
    fn go_out(&mut self, entries: &[AgentEntry], rows: &[TreeRow]) {
        let Some(depth) = rows.get(self.at).map(|row| row.depth) else { return };
        if let Some(at) = rows[..self.at].iter().rposition(|row| row.depth < depth) {
            self.choose(entries, rows, at);
            self.scroll(rows.len().saturating_sub(1));
        }
    }

    /// Selects the first row, even if another row becomes the first.
    fn go_to_top(&mut self) {
        (self.chosen, self.at, self.first) = (None, 0, 0);
    }

    /// Changes the filter.
    fn show(&mut self, filter: AgentFilter) {
        if self.filter != filter {
            self.filter = filter;
            self.go_to_top();
        }
    }

    fn choose(&mut self, entries: &[AgentEntry], rows: &[TreeRow], at: usize) {
        self.at = at;
        self.chosen = rows.get(at).map(|row| RowSelection::of(entries, row));
    }

    fn scroll(&mut self, last: usize) {
        let room = self.room.max(1);
        self.first = self.first.min((last + 1).saturating_sub(room)).min(self.at);
        self.first = self.first.max((self.at + 1).saturating_sub(room));
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod keys_tests;

#[cfg(test)]
mod rows_tests;

#[cfg(test)]
mod messages_tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_never_exceed_the_width() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb\n", 4), ["a", "", "b"]);
        assert_eq!(wrap("漢字漢字", 1), ["漢", "字", "漢", "字"], "wider than there is room for");
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
    }

    #[test]
    fn control_characters_are_escaped_and_long_answers_cut() {
        let items = [
            ConversationItem::Text("a\u{1b}[2Jb".into()),
            ConversationItem::Answer("1\n2\n3\n4\n5".into()),
        ];
        let lines: Vec<String> =
            message_lines(&items, 40).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, ["a\\u{1b}[2Jb", "", "  → 1", "    2", "    3", "    4", "    …"]);
    }
}
