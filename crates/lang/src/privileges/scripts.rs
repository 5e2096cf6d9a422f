//! The scripts of a workflow that its states lead to. Others may lie there for people, and need no trust.

use std::collections::{BTreeMap, BTreeSet};

use super::PrivilegeSurvey;
use crate::manifest;
use crate::prompt::first_state::STARTS;
use crate::prompt::frontmatter;
use crate::prompt::workflow_map::FolderPrompt;
use raymond_model::id::{StateKind, StateName};

/// The scripts that are entered, by their folders.
#[derive(Debug, Default)]
pub(super) struct EnteredScripts<'files> {
    by_folder: BTreeMap<&'files str, BTreeSet<StateName>>,
    /// The names that lead to other folders.
    crossed: Option<BTreeSet<StateName>>,
}

impl<'files> EnteredScripts<'files> {
    /// Returns whether a file is a script that is entered.
    pub(super) fn is_entered(
        &mut self,
        survey: &PrivilegeSurvey<'_>,
        folder: &'files str,
        name: &str,
    ) -> bool {
        let Some(name) = StateName::parse(name).ok().filter(StateName::is_script) else {
            return false;
        };
        let Self { by_folder, crossed } = self;
        let entered = by_folder.entry(folder).or_insert_with(|| {
            let targets = crossed.get_or_insert_with(|| self::crossed(survey.files));
            let (at, entry) = survey.entry.rsplit_once('/').unwrap_or(("", survey.entry));
            let entry = StateName::parse(entry).ok().filter(|_| at == folder);
            let is_executable = |name: &StateName| {
                let path =
                    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") };
                survey.executables.contains(&path)
            };
            entered(&survey.below(folder), entry.iter().chain(&*targets), &is_executable)
        });
        entered.contains(&name)
    }
}

/// Returns the scripts of a folder that a way in it leads to, its manifest, or one of `others`. `files` are those of the
/// folder, by their names.
fn entered<'name>(
    files: &BTreeMap<String, String>,
    others: impl Iterator<Item = &'name StateName>,
    is_executable: &dyn Fn(&StateName) -> bool,
) -> BTreeSet<StateName> {
    let is_script =
        |name: &StateName| name.is_script_by_name() || (name.is_script() && is_executable(name));
    let names: Vec<StateName> =
        files.keys().filter_map(|name| StateName::parse(name).ok()).collect();
    if !names.iter().any(is_script) {
        return BTreeSet::new();
    }
    let mut entered: Vec<StateName> = others.cloned().collect();
    let first = files.get(manifest::FILE).map(|text| manifest::examine(text).manifest.entry);
    entered.extend(first.flatten().and_then(|name| StateName::parse(&name).ok()));
    for name in &names {
        let Some(text) = files.get(name.as_str()) else { continue };
        match StateKind::of(name) {
            Some(StateKind::Prompt | StateKind::Script) => {
                let ways = FolderPrompt::of(text).ways;
                entered.extend(ways.iter().flat_map(|way| way.transition.states()).cloned());
            }
            // The names of the states that they begin are values or texts in them.
            Some(StateKind::Graph | StateKind::Program) => entered.extend(
                names.iter().filter(|script| is_script(script) && mentions(text, script)).cloned(),
            ),
            None => {}
        }
    }
    for name in &mut entered {
        frontmatter::resolve(name, files);
    }
    entered.into_iter().filter(|name| is_script(name) && names.contains(name)).collect()
}

/// Returns whether a text has the name of a file with its ending.
fn mentions(text: &str, name: &StateName) -> bool {
    name.has_ending() && text.contains(name.as_str())
}

/// Returns the names of states in other folders that a tag, a policy, a graph or a program leads to. Where they lie is
/// not looked at, so that a script of that name counts in each folder.
fn crossed(files: &BTreeMap<String, String>) -> BTreeSet<StateName> {
    let named = |path: &String| StateName::parse(path.rsplit('/').next().unwrap_or(path)).ok();
    let scripts: BTreeSet<StateName> =
        files.keys().filter_map(named).filter(StateName::is_script).collect();
    let mut crossed = BTreeSet::new();
    for (path, text) in files {
        match named(path).and_then(|name| StateKind::of(&name)) {
            Some(StateKind::Prompt | StateKind::Script) => {
                let ways = FolderPrompt::of(text).ways;
                let targets = ways.iter().flat_map(|way| way.transition.states());
                crossed.extend(targets.filter_map(|name| Some(name.in_other_folder()?.1)));
                if crossed.iter().any(|state| state.is_entry() || !state.has_ending()) {
                    crossed.extend(STARTS.iter().filter_map(|name| StateName::parse(name).ok()));
                }
            }
            Some(StateKind::Graph | StateKind::Program) => {
                crossed.extend(scripts.iter().filter(|script| mentions(text, script)).cloned());
            }
            None => {}
        }
    }
    crossed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scripts_that_are_entered_are_found() {
        let files = [
            (
                "START.md",
                "<goto>BUILD</goto> or <goto>CHECK.tool</goto> or <goto>NOTES.tool</goto> or run helper.sh",
            ),
            ("BUILD.sh", "echo '<goto>TEST.py</goto>'"),
            ("TEST.py", "print('<result>x</result>')"),
            ("helper.sh", "true"),
            ("LICENSE", "text"),
            ("graph.yaml", "state: SPAWNED.sh"),
            ("SPAWNED.sh", "true"),
            ("LINT.sh", "true"),
            ("CHECK.tool", "echo"),
            ("NOTES.tool", "echo"),
        ];
        let files: BTreeMap<String, String> =
            files.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let names = |entry: Option<&str>| {
            let entry = entry.map(|name| StateName::parse(name).expect("a name"));
            let found = entered(&files, entry.iter(), &|name| name.as_str() == "CHECK.tool");
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["BUILD.sh", "CHECK.tool", "SPAWNED.sh", "TEST.py"]);
        assert_eq!(
            names(Some("LINT")),
            ["BUILD.sh", "CHECK.tool", "LINT.sh", "SPAWNED.sh", "TEST.py"]
        );
        assert_eq!(
            names(Some("helper.sh")),
            ["BUILD.sh", "CHECK.tool", "SPAWNED.sh", "TEST.py", "helper.sh"]
        );
    }
}
