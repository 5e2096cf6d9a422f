//! `--on-event`: a user's command that is called when the run needs a person or has ended; and a count of turn times.
//!
//! The command is given on the command line alone, neither kept with the run nor read from the workflow's manifest: the
//! user decides each time which further programs run on their machine.

use std::ffi::OsString;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix::{Actor, Context, Handler};

use crate::actor::observer::{FinishPublishing, Published};
use crate::cli::exit::Error;
use crate::cli::summary::TurnTimes;
use crate::domain::id::RunId;
use crate::domain::run::Run;
use crate::language::shell_words::words;
use crate::plugin::notify::{
    Notification, NotificationPlugin, NotificationSink, NotificationTracker,
};
use crate::process::command::locate;
use crate::process::on_event_command::{
    Hook, HookCall, HookCommand, HookFailureHandler, HookTimeouts,
};
use crate::process::plugin_process::{NamedVariables, passed_on};
use crate::store::layout::RunsRoot;

/// A command, as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnEventCommand {
    text: String,
    program: String,
    arguments: Vec<String>,
}

impl FromStr for OnEventCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = words(text)?.into_iter();
        let program = words.next().unwrap_or_default();
        Ok(Self { text: text.to_owned(), program, arguments: words.collect() })
    }
}

impl OnEventCommand {
    /// Returns the command as one text, for another raymond.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Finds the program, and adds the variables that the run's manifest names.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such program.
    pub fn program(&self, named: &NamedVariables) -> Result<HookCommand, Error> {
        let search: Option<OsString> = std::env::var_os("PATH");
        let path = locate(&self.program, search.as_deref()).ok_or_else(|| {
            let place = if self.program.contains('/') { "" } else { " on the PATH" };
            Error::Usage(format!(
                "--on-event: no executable program `{}`{place}; shell syntax needs a shell: --on-event \"sh -c '…'\"",
                self.program
            ))
        })?;
        Ok(HookCommand {
            path,
            arguments: self.arguments.clone(),
            environment: passed_on(std::env::vars_os(), named),
            timeouts: HookTimeouts::default(),
        })
    }

    /// Makes the hook for the command.
    ///
    /// # Errors
    /// As [`OnEventCommand::program`].
    pub fn hook(&self, named: &NamedVariables) -> Result<Hook, Error> {
        let text = self.text.clone();
        let tell: HookFailureHandler = Box::new(move |event, failure| {
            tracing::warn!(event, "--on-event `{text}` {failure}");
        });
        Ok(Hook::new(self.program(named)?, tell))
    }
}

/// Returns the actor that calls a hook for a run.
pub fn notify(hook: &Hook, root: &RunsRoot, run: &Run) -> NotificationPlugin<HookSink> {
    let calls = HookSink {
        hook: hook.clone(),
        run: run.workflow_id.clone(),
        dir: root.path().display().to_string(),
    };
    NotificationPlugin::new(NotificationTracker::new(run), calls)
}

/// A sink that calls a hook for each notification.
pub struct HookSink {
    hook: Hook,
    run: RunId,
    dir: String,
}

impl NotificationSink for HookSink {
    fn deliver(&self, notification: Notification) {
        let name = notification.kind.name();
        let input = format!("{}\n", notification.json(&self.run, &self.dir));
        let environment = vec![
            ("RAYMOND_EVENT", name.to_owned()),
            ("RAYMOND_RUN", self.run.to_string()),
            ("RAYMOND_DIR", self.dir.clone()),
            ("RAYMOND_MESSAGE", notification.message),
        ];
        self.hook.call(HookCall { name, input, environment });
    }

    fn finished(&self) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(self.hook.clone().finish())
    }
}

// The times of a run's turns, counted as they end. To read them again at the end of a long run takes seconds.

/// The counted times, to be summed up at the end.
#[derive(Debug, Default, Clone)]
pub(super) struct CountedTimes(Arc<Mutex<TimesCount>>);

/// The times, and whether those of all turns are in them.
#[derive(Debug, Default)]
struct TimesCount {
    times: TurnTimes,
    is_complete: bool,
}

impl CountedTimes {
    /// Returns the plug-in that counts the times of a run, and where it counts them. `None` if turns have ended before:
    /// it would not see those.
    pub(super) fn of_new_run(run: &Run) -> Option<(TurnTimesPlugin, Self)> {
        // The first record tells that the run was started.
        (run.seq <= 1).then(|| {
            let counted = Self::default();
            (TurnTimesPlugin(counted.clone()), counted)
        })
    }

    /// Returns the times; `None` if the plug-in has not seen all records.
    pub(super) fn take(&self) -> Option<TurnTimes> {
        let TimesCount { times, is_complete } = std::mem::take(&mut *self.lock());
        is_complete.then_some(times)
    }

    fn lock(&self) -> MutexGuard<'_, TimesCount> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts the times of a run's turns.
pub(super) struct TurnTimesPlugin(CountedTimes);

impl Actor for TurnTimesPlugin {
    type Context = Context<Self>;
}

impl Handler<Published> for TurnTimesPlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        self.0.lock().times.count(&published.record.event);
    }
}

impl Handler<FinishPublishing> for TurnTimesPlugin {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {
        self.0.lock().is_complete = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_split_like_a_shell() {
        let command: OnEventCommand = "sh -c 'cat >> \"my log\"' a\\ b".parse().expect("a command");
        assert_eq!(command.program, "sh");
        assert_eq!(command.arguments, ["-c", "cat >> \"my log\"", "a b"]);
        for (wrong, why) in
            [("sh 'x", "quote"), ("", "write a command"), ("'' x", "write a command")]
        {
            let error = wrong.parse::<OnEventCommand>().expect_err("it is none");
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn missing_program_is_reported_before_start() {
        let command: OnEventCommand = "/nowhere/hook x".parse().expect("a command");
        let error =
            command.program(&NamedVariables::default()).expect_err("it is not there").to_string();
        assert!(error.starts_with("--on-event: no executable program `/nowhere/hook`"), "{error}");
    }
}
