//! A case: it is run, compared, and killed after each of its records if that is asked for.
//!
//! The run of a case as its directory tells it, and the texts that it is compared by.
//!
//! The working directory of a case before its run: files, a repository, facts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use crate::cli::exit::Error;
use crate::cli::test::case_attempt::{AttemptKind, attempt};
use crate::cli::test::case_process::{CaseEnd, CaseProcess, RUN};
use crate::cli::test::case_report::CaseReport;
use crate::cli::test::discovery::LoadedCase;
use crate::cli::test::{TestSession, case_attempt, goldens, validation};
use crate::domain::git_config::FIXED_SETTINGS;
use crate::domain::id::RunId;
use crate::domain::observed_run::ObservedRun;
use crate::language::cases::{CaseTexts, mismatches};
use crate::process::turn_tail::for_each_begun;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::view::story;
use crate::world::scripted_files::{ScriptedFiles, read_text};

/// Runs a case, and compares it.
pub(super) async fn run_case(
    session: &TestSession,
    loaded: LoadedCase,
    number: usize,
) -> Result<CaseReport, Error> {
    let permit = session.permits.acquire().await;
    let begin = Instant::now();
    let mut report = CaseReport::new(loaded);
    match attempt(session, &report.loaded, &format!("{number}"), AttemptKind::Scripted).await? {
        Ok((run, texts)) => {
            report.mismatches = mismatches(&report.loaded.case.expected, &run, &texts);
            (report.run, report.texts) = (run, texts);
        }
        Err(failed) => (report.error, report.run) = (Some(failed.why), failed.run),
    }
    if session.args.update {
        let mut mismatches = std::mem::take(&mut report.mismatches);
        mismatches.retain(|mismatch| !goldens::is_renewed(&report, mismatch));
        report.mismatches = mismatches;
    }
    drop(permit);
    if session.args.kill_sweep && report.has_passed() {
        match case_attempt::sweep(session, &report, number).await? {
            Ok(sweep) => report.sweep = Some(sweep),
            Err(why) => report.error = Some(why),
        }
    }
    report.duration = begin.elapsed();
    Ok(report)
}

/// The largest file that is compared, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

impl CaseProcess<'_> {
    /// Returns the run as its directory tells it, and the texts that it is compared by.
    pub(super) fn observed(&self) -> (ObservedRun, CaseTexts) {
        let mut run = ObservedRun::default();
        let root = self.root();
        let Ok(id) = RunId::parse(RUN) else { return (run, CaseTexts::default()) };
        if let Ok(view) = story(&root, &id, |_, record| run.observe(record)) {
            run.finish(&view.run);
        }
        run.rename(|text| self.named(text));
        let mut turns = BTreeSet::new();
        let _ = for_each_begun(&root.run(&id).steps(), |stem| {
            turns.insert(stem.to_owned());
        });
        run.turns = turns.len() as u64;
        let mut texts = CaseTexts::default();
        for (_, expectation) in &self.loaded.case.expected {
            if let Some(path) = expectation.file() {
                let text = read_text(&self.dir.work(), path, MAX_FILE_BYTES);
                texts.files.extend(text.map(|text| (path.to_owned(), text)));
            }
            if let Some((name, _)) = expectation.golden(&run, &CaseTexts::default()) {
                let text = read_text(&self.loaded.beside(""), name, MAX_FILE_BYTES);
                texts.goldens.extend(text.map(|text| (name.to_owned(), text)));
            }
        }
        texts.facts = self.facts(&root).unwrap_or_default();
        (run, texts)
    }

    fn facts(&self, root: &RunsRoot) -> Option<BTreeMap<String, Vec<String>>> {
        let key = UserState::new(self.dir.state().join("raymond")).key().ok()?;
        let mut facts = BTreeMap::<String, Vec<String>>::new();
        for fact in Dataspace::of(root).with_key(&key).facts().ok()?.facts {
            facts.entry(fact.label).or_default().push(fact.value);
        }
        Some(facts)
    }
}

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
        let script = validation::script(self.loaded)?.filter(|_| self.live.is_none());
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
