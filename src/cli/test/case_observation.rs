//! The run of a case as its directory tells it, and the texts that it is compared by.

use std::collections::{BTreeMap, BTreeSet};

use super::case_process::{CaseProcess, RUN};
use crate::domain::id::RunId;
use crate::domain::observed_run::ObservedRun;
use crate::language::cases::CaseTexts;
use crate::process::turn_tail::for_each_begun;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::view::story;
use crate::world::scripted_files::read_text;

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
