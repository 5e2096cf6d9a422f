//! The process of a case: its directories, its arguments, its environment, and what it leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::TestSession;
use super::case_answers;
use super::case_dir::CaseDir;
use super::case_options::options;
use super::case_trust::is_trusted;
use super::discovery::{LoadedCase, shown};
use crate::cli::exit::Error;
use crate::domain::id::RunId;
use crate::domain::observed_run::ObservedRun;
use crate::fault::STOP_AFTER;
use crate::language::cases::CaseTexts;
use crate::process::child::exit::ProcessExit;
use crate::process::child::subreaper::ProcessPurpose;
use crate::process::child::{ChildEnvironment, ChildProcess, ChildProcessSpec};
use crate::process::turn_tail::for_each_begun;
use crate::runtime::OTHER_SCRIPT;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::view::story;
use crate::world::scripted_files::{ScriptedFiles, read_text};

/// The id of the run of every case.
const RUN: &str = "case";

/// The time that a run has to end when its case has taken too long.
const GRACE: Duration = Duration::from_secs(2);

/// The largest file that is compared, in bytes.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The end of a process of a case.
pub(super) enum CaseEnd {
    Exit(u8),
    Killed,
    TimedOut,
}

/// A case and its directories.
pub(super) struct CaseProcess<'case> {
    pub(super) session: &'case TestSession,
    pub(super) loaded: &'case LoadedCase,
    pub(super) dir: &'case CaseDir,
}

impl CaseProcess<'_> {
    /// Returns whether its run has begun.
    pub(super) fn has_begun(&self) -> bool {
        RunId::parse(RUN).is_ok_and(|id| self.root().run(&id).journal().is_file())
    }

    /// Returns the directory of its runs.
    fn root(&self) -> RunsRoot {
        RunsRoot::new(self.dir.runs())
    }

    /// Writes the files of the case, makes its repository, and asserts its facts.
    pub(super) async fn prepare(&self) -> Result<(), String> {
        let case = &self.loaded.case;
        let write = |path: PathBuf, text: &str| {
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            let written = made.and_then(|()| std::fs::write(&path, text));
            written.map_err(|error| format!("{}: cannot write it: {error}", path.display()))
        };
        // A case comes with a workflow that may be untrusted: what it writes is confined as a reply's files are.
        let files = case.files.iter().map(|(path, text)| (path.as_str().to_owned(), text.clone()));
        let files = ScriptedFiles { write: files.collect(), delete: Vec::new() };
        files.apply(&self.dir.work(), &[], RUN).map_err(|why| format!("files: {why}"))?;
        if let Some(text) = case_answers::script(self.loaded)? {
            write(self.dir.replies(), &text)?;
        }
        if case.git {
            let config =
                "[user]\n\tname = Test\n\temail = test@localhost\n[init]\n\tdefaultBranch = main\n";
            write(self.dir.home().join(".gitconfig"), config)?;
            let words = [
                &["init", "--quiet"][..],
                &["add", "--all"],
                &["commit", "--quiet", "--allow-empty", "--message", "The files of the case"],
            ];
            for words in words {
                let arguments = words.iter().map(OsString::from).collect();
                let exit = self.process(Path::new("git").to_owned(), arguments, None).await;
                if !matches!(exit, Ok(CaseEnd::Exit(0))) {
                    return Err(format!("git {} failed: {}", words[0], self.complaints().trim()));
                }
            }
        }
        for fact in &case.facts {
            let key = fact.key.as_deref().unwrap_or(RUN);
            let words =
                ["signal", &fact.label, "--key", key, "--append", "--value", &fact.value, "--dir"];
            let mut arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
            arguments.push(self.dir.runs().into());
            let exit = self.raymond(arguments, None).await;
            if !matches!(exit, Ok(CaseEnd::Exit(0))) {
                return Err(format!(
                    "the fact {} cannot be asserted: {}",
                    fact.label,
                    self.complaints().trim()
                ));
            }
        }
        Ok(())
    }

    /// Returns the arguments with which it begins.
    pub(super) fn run_arguments(&self) -> Vec<OsString> {
        let case = &self.loaded.case;
        let workflow = self.loaded.entry_path();
        let workflow = workflow.canonicalize().unwrap_or(workflow);
        let mut arguments: Vec<OsString> = vec!["run".into(), workflow.into()];
        arguments.extend(case_answers::arguments(self.loaded));
        let words = ["--id", RUN, "--on-wait", "exit", "--quiet", "--cwd"];
        arguments.extend(words.map(OsString::from));
        arguments.extend([self.dir.work().into(), OsString::from("--dir"), self.dir.runs().into()]);
        for (name, value) in [("stagger", "0s"), ("backoff", "1ms..5ms")] {
            if !case.settings.iter().any(|setting| setting.name == name) {
                arguments.extend([format!("--{name}").into(), value.into()]);
            }
        }
        arguments.extend(case.input.iter().map(|input| format!("--input={input}").into()));
        let pair = |option: &str, (key, value): &(String, String)| {
            format!("--{option}={key}={value}").into()
        };
        arguments.extend(case.variables.iter().map(|one| pair("var", one)));
        arguments.extend(case.answers.iter().map(|one| pair("answer", one)));
        arguments.extend(options(&case.settings));
        arguments
    }

    /// Returns the arguments with which it goes on after it was killed.
    pub(super) fn resume_arguments(&self) -> Vec<OsString> {
        let words = ["resume", RUN, "--on-wait", "exit", "--quiet", "--dir"];
        let mut arguments: Vec<OsString> = words.map(OsString::from).into();
        arguments.push(self.dir.runs().into());
        arguments
    }

    /// Executes raymond, which dies after a record if `kill_after` says so.
    pub(super) async fn raymond(
        &self,
        arguments: Vec<OsString>,
        kill_after: Option<u64>,
    ) -> Result<CaseEnd, Error> {
        self.process(self.session.program.clone(), arguments, kill_after).await
    }

    async fn process(
        &self,
        program: PathBuf,
        arguments: Vec<OsString>,
        kill_after: Option<u64>,
    ) -> Result<CaseEnd, Error> {
        let failed = |error| Error::Io { doing: "run a case with", path: program.clone(), error };
        let stderr = File::options()
            .append(true)
            .create(true)
            .open(self.dir.complaints())
            .map_err(failed)?;
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("HOME".into(), self.dir.home().into()),
            ("XDG_STATE_HOME".into(), self.dir.state().into()),
        ];
        let passed = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR"];
        let inherited =
            passed.iter().filter_map(|name| Some((OsString::from(*name), std::env::var_os(name)?)));
        variables.extend(inherited);
        // If the workflow cannot be read, the run says so.
        if is_trusted(self.loaded, &self.session.args.trust).unwrap_or(false) {
            variables.push(("RAYMOND_TRUST".into(), "true".into()));
        }
        if self.dir.replies().is_file() {
            variables.push((OTHER_SCRIPT.into(), self.dir.replies().into()));
        }
        variables.extend(kill_after.map(|record| (STOP_AFTER.into(), record.to_string().into())));
        let mut child = ChildProcess::start(ChildProcessSpec {
            program: program.clone(),
            arguments,
            cwd: Some(self.dir.work()),
            environment: ChildEnvironment::Only(variables),
            stdin: Stdio::null(),
            stdout: Stdio::null(),
            stderr: stderr.into(),
            purpose: ProcessPurpose::Beside,
            outlives_handle: false,
        })
        .map_err(failed)?;
        let limit = Duration::from_millis(self.loaded.case.time_limit_ms);
        match tokio::time::timeout(limit, child.exited()).await {
            Ok(ProcessExit::Code(code)) => Ok(CaseEnd::Exit(u8::try_from(code).unwrap_or(u8::MAX))),
            Ok(ProcessExit::Signal(_) | ProcessExit::Unseen) => Ok(CaseEnd::Killed),
            Err(_) => {
                child.end(GRACE).await;
                Ok(CaseEnd::TimedOut)
            }
        }
    }

    /// Returns what it printed to stderr. The script is named as the case, not as the file that was made of it.
    pub(super) fn complaints(&self) -> String {
        let bytes = std::fs::read(self.dir.complaints()).unwrap_or_default();
        self.named(&String::from_utf8_lossy(&bytes))
    }

    fn named(&self, text: &str) -> String {
        let script = self.dir.replies().display().to_string();
        let work = self.dir.work().display().to_string();
        text.replace(&script, &shown(&self.loaded.file)).replace(&work, "WORK")
    }

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
