//! The command lines of the run of a case.

use std::ffi::OsString;

use super::case_answers;
use super::case_dir::CaseDir;
use super::case_options::options;
use super::case_process::RUN;
use super::discovery::LoadedCase;
use super::live_terms::LiveTerms;

/// The options of a scripted run that a case does not name: nothing is to be waited for.
const SCRIPTED_DEFAULTS: [(&str, &str); 2] = [("stagger", "0s"), ("backoff", "1ms..5ms")];

/// Returns the arguments with which the run of a case begins.
pub(super) fn run_arguments(
    loaded: &LoadedCase,
    dir: &CaseDir,
    live: Option<&LiveTerms>,
) -> Vec<OsString> {
    let case = &loaded.case;
    let workflow = loaded.entry_path();
    let workflow = workflow.canonicalize().unwrap_or(workflow);
    let mut arguments: Vec<OsString> = vec!["run".into(), workflow.into()];
    let words = ["--id", RUN, "--on-wait", "exit", "--quiet", "--cwd"];
    arguments.extend(words.map(OsString::from));
    arguments.extend([dir.work().into(), OsString::from("--dir"), dir.runs().into()]);
    arguments.extend(case.input.iter().map(|input| format!("--input={input}").into()));
    let pair = |option: &str, (key, value): &(String, String)| -> OsString {
        format!("--{option}={key}={value}").into()
    };
    arguments.extend(case.variables.iter().map(|one| pair("var", one)));
    arguments.extend(case.answers.iter().map(|one| pair("answer", one)));
    if let Some(live) = live {
        arguments.extend(live.arguments(&case.settings));
        return arguments;
    }
    arguments.extend(case_answers::arguments(loaded));
    for (name, value) in SCRIPTED_DEFAULTS {
        if !case.settings.iter().any(|setting| setting.name == name) {
            arguments.extend([format!("--{name}").into(), value.into()]);
        }
    }
    arguments.extend(options(&case.settings));
    arguments
}

/// Returns the arguments with which the run goes on after it was killed.
pub(super) fn resume_arguments(dir: &CaseDir) -> Vec<OsString> {
    let words = ["resume", RUN, "--on-wait", "exit", "--quiet", "--dir"];
    let mut arguments: Vec<OsString> = words.map(OsString::from).into();
    arguments.push(dir.runs().into());
    arguments
}
