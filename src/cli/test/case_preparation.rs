//! The working directory of a case before its run: files, a repository, facts.

use std::ffi::OsString;
use std::path::PathBuf;

use super::case_answers;
use super::case_process::{CaseEnd, CaseProcess, RUN};
use crate::domain::git_config::FIXED_SETTINGS;
use crate::world::scripted_files::ScriptedFiles;

/// The configuration of git in a case that has no other user.
const GIT_CONFIG: &str =
    "[user]\n\tname = Test\n\temail = test@localhost\n[init]\n\tdefaultBranch = main\n";

/// The commands that make a repository of the files. A live run has the home of the user, who may have no name there.
const GIT_COMMANDS: [&[&str]; 5] = [
    &["init", "--quiet"],
    &["config", "user.name", "Test"],
    &["config", "user.email", "test@localhost"],
    &["add", "--all"],
    &["commit", "--quiet", "--allow-empty", "--message", "The files of the case"],
];

impl CaseProcess<'_> {
    /// Writes the files of the case, makes its repository, and asserts its facts.
    ///
    /// # Errors
    /// The part that failed, and the reason.
    pub(super) async fn prepare(&self) -> Result<(), String> {
        let case = &self.loaded.case;
        // A case comes with a workflow that may be untrusted: what it writes is confined as a reply's files are.
        let files = case.files.iter().map(|(path, text)| (path.as_str().to_owned(), text.clone()));
        let files = ScriptedFiles { write: files.collect(), delete: Vec::new() };
        files.apply(&self.dir.work(), &[], RUN).map_err(|why| format!("files: {why}"))?;
        let script = case_answers::script(self.loaded)?.filter(|_| self.live.is_none());
        if let Some(text) = script {
            write(&self.dir.replies(), &text)?;
        }
        if case.git {
            self.make_repository().await?;
        }
        self.assert_facts().await
    }

    async fn make_repository(&self) -> Result<(), String> {
        write(&self.dir.home().join(".gitconfig"), GIT_CONFIG)?;
        for words in GIT_COMMANDS {
            let safe = FIXED_SETTINGS.iter().map(|(key, value)| format!("{key}={value}"));
            let safe = safe.flat_map(|setting| ["-c".into(), setting.into()]);
            let arguments = safe.chain(words.iter().map(OsString::from)).collect();
            let exit = self.helper("git".into(), arguments).await;
            if !matches!(exit, Ok(CaseEnd::Exit(0))) {
                return Err(format!("git {} failed: {}", words[0], self.complaints().trim()));
            }
        }
        Ok(())
    }

    async fn assert_facts(&self) -> Result<(), String> {
        for fact in &self.loaded.case.facts {
            let key = fact.key.as_deref().unwrap_or(RUN);
            let words =
                ["signal", &fact.label, "--key", key, "--append", "--value", &fact.value, "--dir"];
            let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            arguments.push(self.dir.runs().into());
            let exit = self.helper(self.session.program.clone(), arguments).await;
            if !matches!(exit, Ok(CaseEnd::Exit(0))) {
                let (label, why) = (&fact.label, self.complaints());
                return Err(format!("the fact {label} cannot be asserted: {}", why.trim()));
            }
        }
        Ok(())
    }
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = made.and_then(|()| std::fs::write(path, text));
    written.map_err(|error| format!("{}: cannot write it: {error}", path.display()))
}
