//! The runner of turns at a host: it gives them what was left elsewhere, and keeps what they leave here.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::session_keeper::{ClaudePlaces, SessionKeeper};
use crate::actor::runner::{LocalFuture, StepRunner, StopLevel, TurnNoticeHandler};
use crate::domain::id::{AgentId, SessionId};
use crate::domain::kept_session::SessionKeeping;
use crate::domain::session::SessionOrigin;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId, TurnInput, TurnOutcome};
use crate::process::session_files::{CONFIG_DIR, config_dir, find_session};
use crate::process::working_dirs::WorkingDirs;
use crate::runtime::worker::transcripts::place_results;

/// The runner of the turns of a run at a host.
pub(super) struct HostedRunner {
    inner: Rc<dyn StepRunner>,
    dirs: WorkingDirs,
    /// The directory of the files with the results of joins.
    results: PathBuf,
    /// The keeper of sessions, if its turns have any.
    sessions: Option<Arc<SessionKeeper>>,
    has_sessions: bool,
}

impl HostedRunner {
    /// Returns the runner for a run with these settings, around the one that runs the turns.
    pub(super) fn around(
        inner: Rc<dyn StepRunner>,
        settings: &Settings,
        dirs: WorkingDirs,
        results: PathBuf,
    ) -> Self {
        let has_sessions = settings.answerer == AnswererKind::Claude;
        Self { inner, dirs, results, sessions: None, has_sessions }
    }

    /// Has it keep the sessions of the turns.
    pub(super) fn with_sessions(self, sessions: Arc<SessionKeeper>) -> Self {
        Self { sessions: Some(sessions).filter(|_| self.has_sessions), ..self }
    }

    /// Returns the places of Claude Code for a turn.
    fn places(&self, input: &TurnInput) -> Result<ClaudePlaces, String> {
        let inherited = std::env::var_os(CONFIG_DIR).map(PathBuf::from);
        let config_dir = config_dir(input.options.env.as_ref(), inherited, std::env::home_dir())
            .ok_or("no home directory; set HOME or CLAUDE_CONFIG_DIR")?;
        let cwd = self.dirs.directory(&input.working_dir)?;
        let cwd = cwd.canonicalize().map_err(|error| format!("{}: {error}", cwd.display()))?;
        Ok(ClaudePlaces { config_dir, cwd })
    }

    /// Brings the history of a turn to this host.
    async fn bring(&self, input: &TurnInput) -> Result<(), TurnFailure> {
        let (Some(keeper), Some(history), Some(kept)) =
            (&self.sessions, input.session.history(), &input.session.kept)
        else {
            return Ok(());
        };
        let keeper = Arc::clone(keeper);
        let (session, kept) = (history.clone(), Arc::clone(kept));
        let brought = match self.places(input) {
            Ok(places) => spawn_blocking(move || keeper.bring(&places, &session, &kept)).await,
            Err(why) => Ok(Err(why)),
        };
        let why = match brought {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(panicked) => panicked.to_string(),
        };
        if self.has_history(input) {
            tracing::warn!(
                "{}: cannot compare the session here with the session that the engine keeps: {why}",
                input.turn
            );
            return Ok(());
        }
        let message = format!("its session {history} cannot be brought here: {why}");
        Err(TurnFailure::new(FailureCause::Storage, message))
    }

    /// Returns whether the history of a turn is on this host, as far as that can be seen.
    fn has_history(&self, input: &TurnInput) -> bool {
        let found = self.places(input).ok().zip(input.session.history());
        found.is_some_and(|(places, session)| {
            find_session(&places.config_dir, &places.cwd, session).is_some()
        })
    }

    /// Keeps the session of a turn that has ended.
    async fn keep(&self, input: &TurnInput) -> Option<SessionKeeping> {
        let keeper = Arc::clone(self.sessions.as_ref()?);
        let session = input.session.id.clone();
        let before = match input.session.origin {
            SessionOrigin::Resumed => input.session.kept.clone(),
            SessionOrigin::Fresh | SessionOrigin::Rebuilt | SessionOrigin::Branch { .. } => None,
        };
        let kept = match self.places(input) {
            Ok(places) => {
                spawn_blocking(move || keeper.keep(&places, &session, before.as_deref())).await
            }
            Err(why) => Ok(Err(why)),
        };
        let why = match kept {
            Ok(Ok(kept)) => return Some(SessionKeeping::Kept(Box::new(kept))),
            Ok(Err(why)) => why,
            Err(panicked) => panicked.to_string(),
        };
        tracing::warn!("the session of {} is only on this host: {why}", input.turn);
        Some(SessionKeeping::OnlyHere(why))
    }

    /// Says in a failure that the history of the turn is not here, if that is the reason.
    fn explained(&self, failure: TurnFailure, input: &TurnInput) -> TurnFailure {
        let needs = input.session.history().filter(|_| input.session.kept.is_none());
        match needs {
            Some(session)
                if self.sessions.is_some()
                    && failure.cause == FailureCause::Rejected
                    && !self.has_history(input) =>
            {
                let message = format!(
                    "{}; the session {session} is not on this host, and no engine keeps it: it was only on the host where the agent lived before; a state that begins a fresh session does not need it",
                    failure.message
                );
                TurnFailure { message, ..failure }
            }
            Some(_) | None => failure,
        }
    }
}

impl StepRunner for HostedRunner {
    fn run(
        self: Rc<Self>,
        mut input: TurnInput,
        notices: TurnNoticeHandler,
    ) -> LocalFuture<TurnOutcome> {
        Box::pin(async move {
            if let Err(error) = place_results(&mut input, &self.results) {
                let failure = TurnFailure::new(FailureCause::Storage, error.to_string());
                return TurnOutcome::Failed(failure);
            }
            if let Err(failure) = self.bring(&input).await {
                return TurnOutcome::Failed(failure);
            }
            match Rc::clone(&self.inner).run(input.clone(), notices).await {
                TurnOutcome::Replied(mut reply) => {
                    reply.session = self.keep(&input).await;
                    TurnOutcome::Replied(reply)
                }
                TurnOutcome::Failed(failure) => {
                    TurnOutcome::Failed(self.explained(failure, &input))
                }
            }
        })
    }

    fn begun_turns(&self, turns: Vec<TurnId>) -> Vec<TurnId> {
        self.inner.begun_turns(turns)
    }

    fn capacity(&self) -> usize {
        self.inner.capacity()
    }

    fn fits(&self) -> usize {
        self.inner.fits()
    }

    fn idle_agents(&self) -> Vec<AgentId> {
        self.inner.idle_agents()
    }

    fn keep(&self, agent: &AgentId, wanted: &dyn Fn(&SessionId) -> bool) {
        self.inner.keep(agent, wanted);
    }

    fn offer(&self) -> Option<SessionId> {
        self.inner.offer()
    }

    fn promise(&self, session: &SessionId) {
        self.inner.promise(session);
    }

    fn stop(&self, agent: &AgentId) {
        self.inner.stop(agent);
    }

    fn stop_all(&self, how: StopLevel) {
        self.inner.stop_all(how);
    }

    fn sweep(self: Rc<Self>, keep: Vec<TurnId>) -> LocalFuture<usize> {
        Rc::clone(&self.inner).sweep(keep)
    }

    fn sweeps_all_processes(&self) -> bool {
        self.inner.sweeps_all_processes()
    }
}
