//! A prompt taken apart: its head, the tags that its text shows, and the ways on.
//!
//! The text of a script, as far as the tags in it can be told without running it.
//!
//! Such an analysis is not certain: a script may print other tags, and may never print those that its text has.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::position::SourcePlace;
use crate::prompt::document::QuotedParts;
use crate::prompt::document::{self, ExaminedDocument};
use crate::prompt::frontmatter::{Frontmatter, FrontmatterPlaces};
use crate::prompt::implied_policy::EntryPlace;
use crate::prompt::judgement::Evaluator;
use crate::prompt::{frontmatter, step};
use crate::source::WorkflowSource;
use crate::tag::MisspeltTag;
use crate::yaml::YamlErrors;
use crate::{tag, template};
use raymond_model::id::StateName;
use raymond_model::join::{Join, JoinFallback};
use raymond_model::transition::{InvalidTransition, TagName, Transition, Variables};

/// A prompt as far as it can be read.
#[derive(Debug)]
pub struct FolderPrompt {
    pub frontmatter: Frontmatter,
    /// The places of its values.
    pub places: FrontmatterPlaces,
    /// The mistakes.
    pub errors: YamlErrors,
    /// The ways to other states: of the policy, the evaluator and the join, and without a policy also of the text.
    pub ways: Vec<TransitionEdge>,
    /// The warning about frontmatter in its text, which has no effect, and the place.
    pub lost_frontmatter: Option<(String, SourcePlace)>,
    /// The tags that its text shows.
    pub shown: Vec<ShownTag>,
    /// True if its text shows any tag, also one whose target a placeholder decides.
    pub shows_tags: bool,
    /// True if its text shows a tag whose target a placeholder decides.
    pub shows_filled_tags: bool,
    /// The words of its text that may name a state, with an ending or without.
    pub words: BTreeSet<String>,
    /// The texts that are nearly tags.
    pub misspelt: Vec<(MisspeltTag, SourcePlace)>,
    /// The files that its text speaks of.
    pub mentioned: Vec<StateName>,
    /// The placeholders, each with its first place.
    pub placeholders: Vec<(String, SourcePlace)>,
    /// What other tools would fill, outside of code: the text, the name that it means, and the place.
    pub foreign: Vec<(String, String, SourcePlace)>,
    /// The first word of its text, with its place.
    pub first_word: (String, SourcePlace),
}

/// A way from a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionEdge {
    pub transition: Transition,
    pub origin: TransitionOrigin,
    /// The place of the transition, and of the names in it.
    pub place: EntryPlace,
}

/// The origin of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransitionOrigin {
    /// The state's policy.
    Policy,
    /// The pattern of its evaluator.
    Evaluator,
    /// The join, if too many of its agents fail.
    Failure,
    /// The join, if its agents do not end in time.
    Timeout,
    /// A tag in its text.
    Text,
}

/// A tag in a prompt's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTag {
    /// The requested transition, or its mistake.
    pub transition: Result<Transition, InvalidTransition>,
    /// The name of the tag.
    pub tag: TagName,
    /// The state between the open tag and its close, if that is the name of one.
    pub encloses: Option<StateName>,
    /// What a shell makes of it before it is printed, and how to write it.
    pub misread: Option<&'static str>,
    /// True if the tag stands in code or in a comment, where it may be an example.
    pub is_quoted: bool,
    /// The place of the tag.
    pub place: SourcePlace,
}

/// The most texts of a prompt that other tools would fill.
const MAX_FOREIGN: usize = 100;

impl FolderPrompt {
    /// Takes a prompt file apart.
    pub fn of(text: &str) -> Self {
        let ExaminedDocument { document, places, errors } = document::examine(text);
        let body = document.body.as_str();
        let place = |offset| SourcePlace::in_text(body, offset, document.body_line);
        let written = tag::written(body);
        let spans: Vec<Range<usize>> = written.iter().map(|tag| tag.span.clone()).collect();
        let quoted = QuotedParts::of(body);
        let (filled, shown): (Vec<ShownTag>, Vec<ShownTag>) = written
            .into_iter()
            .map(|tag| ShownTag {
                transition: tag.transition,
                tag: tag.tag,
                encloses: StateName::parse(&body[tag.body]).ok(),
                misread: None,
                is_quoted: quoted.contains(tag.span.start),
                place: place(tag.span.start),
            })
            .partition(ShownTag::is_filled_in);
        let of_entries = document.frontmatter.policy.allowed.iter().zip(&places.entries);
        let of_entries = of_entries.flat_map(|(entry, place)| {
            let names = step::fill_entry(&mut entry.clone(), &Variables::new()).into_iter();
            names.map(|name| (name, place.entry))
        });
        let of_body = template::placeholders(body);
        let of_body = of_body.map(|(name, offset)| (name.to_owned(), place(offset)));
        let mut placeholders: Vec<(String, SourcePlace)> = Vec::new();
        for (name, place) in of_entries.chain(of_body) {
            if !placeholders.iter().any(|(known, _)| *known == name) {
                placeholders.push((name, place));
            }
        }
        let mut seen = BTreeSet::new();
        let foreign = template::foreign(body);
        let foreign = foreign.filter(|(text, _, at)| !quoted.contains(*at) && seen.insert(*text));
        // Each place is counted from the beginning of the text.
        let foreign = foreign.take(MAX_FOREIGN);
        let foreign =
            foreign.map(|(text, name, at)| (text.to_owned(), name.to_owned(), place(at))).collect();
        let misspelt = tag::misspelt(body).into_iter().map(|one| {
            let place = place(one.start);
            (one, place)
        });
        let first = body.trim_start();
        let first_place = place(body.len() - first.len());
        let first_word = first.split_whitespace().next().unwrap_or_default().to_owned();
        let mut prompt = Self {
            first_word: (first_word, first_place),
            shows_tags: !spans.is_empty(),
            shows_filled_tags: !filled.is_empty(),
            words: document::words(body).map(|(_, word)| word.to_owned()).collect(),
            lost_frontmatter: document::find(body, document.body_line),
            misspelt: misspelt.collect(),
            mentioned: document::names(body, &spans),
            frontmatter: document.frontmatter,
            ways: Vec::new(),
            places,
            errors,
            shown,
            placeholders,
            foreign,
        };
        prompt.ways = prompt.find_ways();
        prompt
    }

    /// Takes a script apart: the tags in its text are transitions that it may ask for. A tag whose target is computed
    /// is none of them, nor is one in a comment.
    pub fn of_script(text: &str) -> Self {
        let plain = plain(text);
        let mut script = Self::of(&plain);
        for shown in &mut script.shown {
            shown.is_quoted = true;
            shown.place = place(text, shown.place);
            shown.misread = misread_by_shell(text, shown.place);
        }
        let count = script.shown.len();
        script.shown.retain(|shown| !shown.names(is_computed));
        script.shows_filled_tags |= script.shown.len() < count;
        script.misspelt.clear();
        script.foreign.clear();
        script.ways = script.find_ways();
        script
    }

    /// Adds the endings to the names of states that have none.
    pub fn resolve_names(&mut self, source: &dyn WorkflowSource) {
        self.frontmatter.resolve_names(source);
        for shown in &mut self.shown {
            if let Ok(transition) = &mut shown.transition {
                frontmatter::resolve_transition(transition, source);
            }
            if let Some(state) = &mut shown.encloses {
                frontmatter::resolve(state, source);
            }
        }
        for state in self.misspelt.iter_mut().filter_map(|(tag, _)| tag.encloses.as_mut()) {
            frontmatter::resolve(state, source);
        }
        self.ways = self.find_ways();
    }

    /// Returns whether the state may lead anywhere. Mistakes count too: they leave the policy unknown.
    pub fn is_open(&self) -> bool {
        self.frontmatter.policy.is_open() || !self.errors.is_empty()
    }

    /// Returns whether the state may give a result.
    pub fn may_end(&self) -> bool {
        self.is_open() || self.ways.iter().any(|way| way.transition.tag() == TagName::Result)
    }

    /// Returns the prompt of the evaluator, if it is one.
    pub fn evaluator(&self) -> Option<&StateName> {
        match &self.frontmatter.evaluator {
            Some(Evaluator::Prompt { file, .. }) => Some(file),
            _ => None,
        }
    }

    fn find_ways(&self) -> Vec<TransitionEdge> {
        let listed = self.frontmatter.policy.allowed.iter().zip(&self.places.entries);
        let way = |origin| {
            move |(transition, place): (&Transition, &EntryPlace)| TransitionEdge {
                transition: transition.clone(),
                origin,
                place: *place,
            }
        };
        let mut ways: Vec<TransitionEdge> = listed.map(way(TransitionOrigin::Policy)).collect();
        if let Some(Evaluator::Pattern { found, missing, .. }) = &self.frontmatter.evaluator {
            let overrides = [found, missing].into_iter().flatten().map(Box::as_ref);
            let overrides = overrides.zip(&self.places.overrides);
            ways.extend(overrides.map(way(TransitionOrigin::Evaluator)));
        }
        ways.extend(self.frontmatter.join.iter().flat_map(|join| self.ways_of_join(join)));
        if self.is_open() {
            ways.extend(self.shown.iter().filter_map(ShownTag::edge));
        }
        for way in &mut ways {
            way.transition.change_targets(|scope, target| {
                if let Some(path) = scope.take() {
                    *target = StateName::beyond(&path, target);
                }
            });
        }
        ways
    }

    /// Returns the ways to the states that are entered if the join is not met.
    fn ways_of_join(&self, join: &Join) -> impl Iterator<Item = TransitionEdge> {
        let ways = [
            (&join.on_failure, TransitionOrigin::Failure, self.places.on_failure),
            (&join.on_timeout, TransitionOrigin::Timeout, self.places.on_timeout),
        ];
        let way =
            |(otherwise, origin, place): (&JoinFallback, TransitionOrigin, Option<SourcePlace>)| {
                let JoinFallback::State(state) = otherwise else { return None };
                let place = place.unwrap_or(SourcePlace::START);
                let transition = Transition::Goto {
                    target: state.clone(),
                    scope: None,
                    variables: Variables::new(),
                };
                let place = EntryPlace { target: Some(place), ..EntryPlace::whole(place) };
                Some(TransitionEdge { transition, origin, place })
            };
        ways.map(way).into_iter().flatten()
    }
}

impl TransitionEdge {
    /// Returns whether the way comes from more than a tag in a text.
    pub fn is_certain(&self) -> bool {
        self.origin != TransitionOrigin::Text
    }

    /// Returns the state that a call leads to, and the state that it returns to.
    pub fn call(&self) -> Option<(&StateName, &StateName)> {
        call(&self.transition)
    }

    /// Returns whether the way is taken without the agent, because a join was not met.
    pub fn is_of_join(&self) -> bool {
        matches!(self.origin, TransitionOrigin::Failure | TransitionOrigin::Timeout)
    }
}

/// Returns the state that a call or a function leads to, and the state that it returns to.
pub fn call(transition: &Transition) -> Option<(&StateName, &StateName)> {
    match transition {
        Transition::Call { target, return_to, .. }
        | Transition::Function { target, return_to, .. } => Some((target, return_to)),
        _ => None,
    }
}

impl ShownTag {
    /// Returns whether a placeholder decides the target, which is therefore unknown.
    fn is_filled_in(&self) -> bool {
        self.names(|name| name.contains("{{"))
    }

    /// Returns whether one of the states and folders that it names is such a name.
    fn names(&self, is_such: impl Fn(&str) -> bool) -> bool {
        let named = |transition: &Transition| {
            transition.states().any(|name| is_such(name.as_str()))
                || transition
                    .crossings()
                    .any(|(path, state)| is_such(path.as_str()) || is_such(state.as_str()))
        };
        self.transition.as_ref().is_ok_and(named)
    }

    fn edge(&self) -> Option<TransitionEdge> {
        let transition = self.transition.clone().ok()?;
        let place = EntryPlace::whole(self.place);
        Some(TransitionEdge { transition, origin: TransitionOrigin::Text, place })
    }
}

/// The characters of computed names: the script computes a name that contains any of them.
const COMPUTED: [char; 12] = ['$', '{', '}', '%', '+', '"', '\'', '`', '\\', '(', ' ', '#'];

/// Returns the text without its comments, and with plain quotes instead of escaped ones. Each line stays in its place.
pub(super) fn plain(text: &str) -> String {
    text.split_inclusive('\n').map(plain_line).collect()
}

fn plain_line(line: &str) -> Cow<'_, str> {
    let start = line.trim_start();
    if start.starts_with('#') || start.starts_with("//") {
        return Cow::Borrowed(if line.ends_with('\n') { "\n" } else { "" });
    }
    if !line.contains('\\') {
        return Cow::Borrowed(line);
    }
    Cow::Owned(line.replace("\\\"", "\"").replace("\\'", "'"))
}

/// Returns the place in the text of a place in its [plain] form.
pub(super) fn place(text: &str, place: SourcePlace) -> SourcePlace {
    let SourcePlace { line, column } = place;
    let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut chars = text.lines().nth(index).unwrap_or_default().chars().peekable();
    let (mut plain, mut own) = (1, 1);
    while plain < column
        && let Some(char) = chars.next()
    {
        let is_escape = char == '\\' && chars.peek().is_some_and(|next| matches!(next, '"' | '\''));
        plain += u64::from(!is_escape);
        own += 1;
    }
    SourcePlace { line, column: own }
}

/// Returns what a shell makes of the tag at a place, if that is not the tag: it stands within double quotes, and a quote
/// in its open tag, which is not escaped, ends them; or it is a word of `echo` or `printf` without quotes.
pub(super) fn misread_by_shell(text: &str, place: SourcePlace) -> Option<&'static str> {
    let index = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = text.lines().nth(index).unwrap_or_default();
    let prints = matches!(line.split_whitespace().next(), Some("echo" | "printf"));
    let (mut quote, mut is_escaped) = (None, false);
    for (column, char) in (1..).zip(line.chars()) {
        let is_in_tag = column >= place.column;
        if is_in_tag && quote != Some('"') {
            let is_bare = prints && quote.is_none() && !is_escaped;
            return is_bare.then_some(
                "outside of quotes, where the shell redirects to files with < and >; put the whole tag into '…'",
            );
        }
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match (quote, char) {
            (_, '>') if is_in_tag => return None,
            (Some('"'), '"') if is_in_tag => {
                return Some(
                    "within \"…\", where the shell takes the quotes of its attributes; write \\\" there, or put the whole tag into '…'",
                );
            }
            (Some(open), _) if open == char => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None | Some('"'), '\\') => is_escaped = true,
            _ => {}
        }
    }
    None
}

/// Returns whether the script computes a name when it runs.
pub(super) fn is_computed(name: &str) -> bool {
    name.contains(COMPUTED)
}

#[cfg(test)]
mod script_text_tests {
    use super::*;

    #[test]
    fn escaped_quotes_and_comments_leave_places_as_they_are() {
        let text = "# <goto>A.md</goto>\necho \"x=\\\"1\\\" <goto>B.md</goto>\"\n";
        let plain = plain(text);
        assert_eq!(plain, "\necho \"x=\"1\" <goto>B.md</goto>\"\n");
        let column =
            plain.lines().nth(1).and_then(|line| line.find('<')).expect("a tag") as u64 + 1;
        let found = place(text, SourcePlace { line: 2, column });
        let expected =
            text.lines().nth(1).and_then(|line| line.find('<')).expect("a tag") as u64 + 1;
        assert_eq!((found.line, found.column), (2, expected));
    }

    #[test]
    fn shell_misreads_a_tag_without_quotes_or_with_its_own_in_them() {
        let table = [
            ("echo \"<call return=\"B.md\">A.md</call>\"", "within"),
            ("echo \"it's <call return=\"B.md\">A.md</call>\"", "within"),
            ("echo <result>ok</result>", "outside"),
            ("  printf '%s' <goto>B.md</goto>", "outside"),
            ("echo \\<result\\>ok", ""),
            ("<result>in a here document</result>", ""),
            ("echo \"<call return=\\\"B.md\\\">A.md</call>\"", ""),
            ("echo '<call return=\"B.md\">A.md</call>'", ""),
            ("echo \"x\" '<call return=\"B.md\">A.md</call>'", ""),
            ("echo \"<goto>B.md</goto>\"", ""),
            ("<call return=\"B.md\">A.md</call>", ""),
        ];
        for (line, expected) in table {
            let column = line.find('<').map_or(0, |at| at as u64 + 1);
            let found = misread_by_shell(line, SourcePlace { line: 1, column });
            let found = found.and_then(|why| why.split(' ').next()).unwrap_or_default();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn names_with_variables_are_computed() {
        for name in ["$NEXT", "${next}.md", "{state}.md", "%s", "#{name}"] {
            assert!(is_computed(name), "{name}");
        }
        assert!(!is_computed("NEXT-2.md"));
    }
}
