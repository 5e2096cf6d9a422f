//! The graphs and programs of a run, each text read once.
//!
//! As long as this process serves a run, a graph stays as it was when it was first entered. A later edit is seen
//! when the run is resumed, and refused there unless it is asked for. A program is known by the checksum of its text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::domain::id::{Folder, StateName};
use crate::language::diagnostic::Diagnostic;
use crate::language::graph::checked_graph::Graph;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read as read_graph;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::program::checked_program::Program;
use crate::language::program::read::read as read_program;
use crate::language::source::WorkflowSource;

/// The graphs that have been read, by folder and file.
type GraphsByFile = HashMap<(Option<Folder>, StateName), Rc<Graph>>;

/// The graphs and programs of a run.
#[derive(Debug, Default)]
pub struct WorkflowCache {
    /// The types that the nodes of graphs may use.
    pub vocabulary: GraphVocabulary,
    /// True if a graph that was edited since an agent entered it is taken as it is now.
    pub migrate: bool,
    graphs: RefCell<GraphsByFile>,
    programs: RefCell<HashMap<Arc<str>, Rc<Program>>>,
}

impl WorkflowCache {
    /// Returns an empty cache. Graphs are read with these types.
    #[must_use]
    pub fn new(vocabulary: GraphVocabulary, migrate: bool) -> Self {
        Self { vocabulary, migrate, ..Self::default() }
    }

    /// Returns the graph of a file.
    ///
    /// # Errors
    /// All errors in it, a line each.
    fn graph(
        &self,
        folder: Option<&Folder>,
        file: &StateName,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Graph>, String> {
        let key = (folder.cloned(), file.clone());
        if let Some(graph) = self.graphs.borrow().get(&key) {
            return Ok(Rc::clone(graph));
        }
        let text = source.read(file).map_err(|error| error.to_string())?;
        let path = source.path(file);
        let reading =
            read_graph(&path, None, &text, &self.vocabulary, source, GraphProfile::Lenient);
        let graph = Rc::new(reading.graph.ok_or_else(|| errors(&reading.diagnostics))?);
        self.graphs.borrow_mut().insert(key, Rc::clone(&graph));
        Ok(graph)
    }

    /// Returns the graph that an agent is to enter, or has entered: its checksum is `entered` then.
    ///
    /// # Errors
    /// All errors in it, a line each, or WF503 if it was edited since it was entered.
    pub(super) fn graph_of_agent(
        &self,
        folder: Option<&Folder>,
        file: &StateName,
        entered: Option<&Arc<str>>,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Graph>, String> {
        let graph = self.graph(folder, file, source)?;
        let is_edited = entered.is_some_and(|entered| **entered != *graph.hash);
        if is_edited && !self.migrate {
            return Err(format!(
                "{}: WF503 the graph has been edited since this run entered it; restore the old text, or resume with the new one by --migrate",
                source.path(file)
            ));
        }
        Ok(graph)
    }

    /// Returns the program of a text that was kept.
    ///
    /// # Errors
    /// All errors in it, a line each.
    pub(super) fn kept_program(
        &self,
        hash: &Arc<str>,
        file: &StateName,
        text: &str,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Program>, String> {
        self.known_program(hash).map_or_else(|| self.program(file, text, source), Ok)
    }

    /// Returns the program of a text that has been read.
    pub(super) fn known_program(&self, hash: &Arc<str>) -> Option<Rc<Program>> {
        self.programs.borrow().get(hash).map(Rc::clone)
    }

    /// Returns the program of a text.
    ///
    /// # Errors
    /// All errors in it, a line each.
    pub(super) fn program(
        &self,
        file: &StateName,
        text: &str,
        source: &dyn WorkflowSource,
    ) -> Result<Rc<Program>, String> {
        let reading = read_program(&source.path(file), text, source);
        let program = Rc::new(reading.program.ok_or_else(|| errors(&reading.diagnostics))?);
        self.programs.borrow_mut().insert(Arc::clone(&program.hash), Rc::clone(&program));
        Ok(program)
    }
}

/// Returns the errors among the diagnostics, a line each.
fn errors(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics.iter().filter(|one| one.is_error());
    errors.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const GRAPH: &str = "name: g\nversion: \"1\"\ndescription: d\nstart_node: a\nnodes:\n  a: { type: conditional, condition: { type: evaluate_expression, expression: \"1 == 1\" }, branches: { true: done, false: done } }\nendings:\n  done: { type: success, message: Done }\n";

    fn source(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn state(name: &str) -> StateName {
        StateName::parse(name).expect("a state")
    }

    fn cache(migrate: bool) -> WorkflowCache {
        WorkflowCache::new(GraphVocabulary::default(), migrate)
    }

    #[test]
    fn graph_is_read_once_and_an_edit_is_seen_by_the_next_process_alone() {
        let cache = cache(false);
        let graph = |cache: &WorkflowCache, text: &str| {
            let files = source(&[("g.yaml", text)]);
            cache.graph_of_agent(None, &state("g.yaml"), None, &files)
        };
        let first = graph(&cache, GRAPH).expect("a graph");
        let edited = GRAPH.replace("message: Done", "message: Edited");
        for text in [edited.as_str(), "no graph"] {
            assert!(Rc::ptr_eq(&first, &graph(&cache, text).expect("the first one")));
        }
        let below = Folder::parse("below").expect("a folder");
        let files = source(&[("g.yaml", &edited)]);
        let other = cache.graph_of_agent(Some(&below), &state("g.yaml"), None, &files);
        assert_ne!(other.expect("a graph").hash, first.hash, "another folder has its own");
        for migrate in [false, true] {
            let resumed = WorkflowCache::new(GraphVocabulary::default(), migrate);
            let entered = Arc::from(first.hash.as_str());
            let found = resumed.graph_of_agent(None, &state("g.yaml"), Some(&entered), &files);
            assert_eq!(found.is_ok(), migrate);
            assert!(found.err().is_none_or(|why| why.contains("WF503")));
        }
    }

    #[test]
    fn program_is_read_once_for_each_text() {
        let cache = cache(false);
        let (none, file) = (source(&[]), state("p.lisp"));
        let texts = ["(workflow w (state s (terminal)))", "(workflow w (state t (terminal)))"];
        let [first, edited] =
            texts.map(|text| cache.program(&file, text, &none).expect("a program"));
        assert_ne!(first.hash, edited.hash);
        for (program, text) in [(&first, texts[0]), (&edited, texts[1])] {
            assert!(Rc::ptr_eq(program, &cache.known_program(&program.hash).expect("known")));
            let kept = cache.kept_program(&program.hash, &file, text, &none).expect("kept");
            assert!(Rc::ptr_eq(program, &kept));
        }
        let kept = cache.kept_program(&first.hash, &file, "(no program", &none);
        assert!(Rc::ptr_eq(&first, &kept.expect("it is not read again")));
        assert!(cache.program(&file, "(no program", &none).is_err_and(|why| why.contains("SX102")));
    }
}
