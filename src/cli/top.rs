//! `raymond top`: the activity of every agent of a run, on a screen that stays calm with ten thousand.
//!
//! It reads the journal and the transcripts and nothing else, so it works beside a live run and on one that is not
//! locked. Pure functions make the content (`rows`, `text`); a key changes the screen's data (`keys`);
//! only this module and the watcher of the run have side effects.

mod choose;
mod draw;
mod keys;
mod messages;
mod rows;
mod screen;
#[cfg(test)]
mod tests;
mod text;

use std::io::{IsTerminal, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyEventKind, poll, read};
use ratatui::DefaultTerminal;
use signal_hook::consts::{SIGHUP, SIGTERM};

use self::draw::{ScreenContent, draw, room};
use self::keys::{KeyCommand, press};
use self::rows::rows;
use self::screen::{ScreenView, TopScreen};
use self::text::headlines;
use super::args::NamedRunArgs;
use super::args::readers::TopArgs;
use super::exit::{CliExitCode, Error};
use super::{person, stop};
use crate::domain::tree::fold::TreeRow;
use crate::plugin::styled::TextTone;
use crate::runtime::directories;
use crate::runtime::observing::activity_text::whole_reason;
use crate::runtime::observing::agent_entries::{AgentEntry, entries};
use crate::runtime::observing::run_watcher::RunWatcher;

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
    let (id, others) = choose::choose(&root, &named)?;
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
        let said = match stop::ask(self.watch.dir(), &directories::user_state()?.key()?)? {
            Some(_) => "it stops once its running turns have finished",
            None => "it ended before it could be stopped",
        };
        Ok(said.to_owned())
    }

    /// Makes the rows anew after a change, or once a second for the times in them. The text of a row is made when
    /// it is drawn.
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
        self.messages = messages::lines(self.watch.messages(), size.width.into());
        if let ScreenView::Messages { agent, .. } = &self.screen.view
            && let Some(reason) = whole_reason(self.watch.known(), agent)
        {
            self.messages.extend(messages::reason(&reason, size.width.into()));
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
    Error::Io { doing: "draw on", path: "the terminal".into(), error }
}
