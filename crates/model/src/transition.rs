//! An agent's request at the end of a turn: one of the seven tags with its attributes, and its evaluation.
//!
//! [`Transition::from_parts`] decides the meaning of a tag's pieces: which attributes are part of its
//! structure, and which are variables of the state that is entered.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

pub use self::fork::{ANY_LIST, ForkList, ForkTag};
use super::id::{ScopePath, StateName, TagTarget, write_target};
use super::session::Session;
use super::time::format_duration;
pub use super::variables::Variables;
use crate::id::InvalidName;
use crate::time::millis;

mod fork;

/// A transition an agent asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "tag", rename_all = "lowercase")]
pub enum Transition {
    /// Continues in the same session.
    Goto {
        /// The state that is entered.
        target: StateName,
        /// The other folder that has the state, if it is in another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ScopePath>,
        /// Values for its placeholders.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        variables: Variables,
    },
    /// Continues in a fresh session; drops all pending returns, unless they are kept.
    Reset {
        /// The state that is entered.
        target: StateName,
        /// The other folder that has the state, if it is in another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ScopePath>,
        /// True if the pending returns are kept.
        #[serde(default, rename = "keep", skip_serializing_if = "std::ops::Not::not")]
        keeps_stack: bool,
        /// Values for its placeholders.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        variables: Variables,
    },
    /// Enters a subroutine in a branch of this session.
    Call {
        /// The state that is entered.
        target: StateName,
        /// The other folder that has the state, if it is in another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ScopePath>,
        /// The state the caller continues at when the subroutine returns.
        #[serde(rename = "return")]
        return_to: StateName,
        /// Values for the placeholders of `target`.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        variables: Variables,
    },
    /// Enters a subroutine in a fresh session.
    Function {
        /// The state that is entered.
        target: StateName,
        /// The other folder that has the state, if it is in another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ScopePath>,
        /// The state the caller continues at when the subroutine returns.
        #[serde(rename = "return")]
        return_to: StateName,
        /// Values for the placeholders of `target`.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        variables: Variables,
    },
    /// Starts independent agents and continues in the same session.
    Fork {
        /// The state the new agent starts in.
        target: StateName,
        /// The other folder that has the state, if it is in another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ScopePath>,
        /// The state this agent continues at.
        next: StateName,
        /// The list that has an entry for each of several agents.
        #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
        each: Option<Box<ForkList>>,
        /// The directory the new agent works in, below that of its parent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<Box<str>>,
        /// Values for the placeholders of `target`.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        variables: Variables,
        /// The further `<fork>` tags of the same reply.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        also: Vec<ForkTag>,
    },
    /// Asks a person, and continues in the same session with the answer.
    Ask {
        /// The text between the tags, for the person.
        question: String,
        /// The state that is entered with `{{answer}}`.
        next: StateName,
        /// The timeout of the answer.
        #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
        timeout: Option<AskTimeout>,
        /// Further values for the placeholders of `next`.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        variables: Variables,
    },
    /// Returns to the caller, or ends.
    Result {
        /// The text between the tags, as it stands.
        payload: String,
        /// Further values for the placeholders of the state that is returned to.
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        variables: Variables,
        /// True if the payload is a JSON object that was checked against the schema of its state.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        structured: bool,
    },
}

impl Transition {
    /// Builds a transition from a tag, its attributes in their order and its body.
    ///
    /// # Errors
    /// [`InvalidTransition`] if there are too many attributes, a required one is missing, a structural one is out of
    /// place, or a target is not a bare file name.
    pub fn from_parts(
        tag: TagName,
        attributes: impl IntoIterator<Item = (String, String)>,
        body: &str,
    ) -> Result<Self, InvalidTransition> {
        let mut variables = Variables::new();
        for (attribute, value) in attributes {
            if variables.contains_key(&attribute) {
                return Err(InvalidTransition::RepeatedAttribute { tag, attribute });
            }
            if variables.len() == MAX_ATTRIBUTES {
                return Err(InvalidTransition::TooManyAttributes { tag });
            }
            variables.insert(attribute, value);
        }
        let is_stray = |name: &&str| match *name {
            "cd" | "cwd" => tag != TagName::Fork,
            name => tag.required_attribute() != Some(name),
        };
        let mut strays = ["return", "next", "cd", "cwd"].into_iter().filter(is_stray);
        let stray = strays.find(|&name| variables.contains_key(name));
        if let Some(attribute) = stray {
            return Err(InvalidTransition::UnexpectedAttribute {
                tag,
                attribute: attribute.to_owned(),
            });
        }
        let state = |name: &str| {
            StateName::parse(name).map_err(|error| InvalidTransition::Target { tag, error })
        };
        let mut required = |attribute| {
            let value = variables.remove(attribute);
            state(&value.ok_or(InvalidTransition::MissingAttribute { tag, attribute })?)
        };
        let place =
            || TagTarget::parse(body).map_err(|error| InvalidTransition::Target { tag, error });
        Ok(match tag {
            TagName::Goto => {
                let TagTarget { state: target, scope } = place()?;
                Self::Goto { target, scope, variables }
            }
            TagName::Reset => {
                let keeps_stack = keeps_stack(&mut variables)?;
                let TagTarget { state: target, scope } = place()?;
                Self::Reset { target, scope, keeps_stack, variables }
            }
            TagName::Call => {
                let return_to = required("return")?;
                let TagTarget { state: target, scope } = place()?;
                Self::Call { target, scope, return_to, variables }
            }
            TagName::Function => {
                let return_to = required("return")?;
                let TagTarget { state: target, scope } = place()?;
                Self::Function { target, scope, return_to, variables }
            }
            TagName::Fork => {
                let next = required("next")?;
                let each = fork::each(&mut variables)?;
                let cwd = fork::directory(&mut variables)?;
                let TagTarget { state: target, scope } = place()?;
                Self::Fork { target, scope, next, each, cwd, variables, also: Vec::new() }
            }
            TagName::Ask => {
                let next = required("next")?;
                let timeout = take(&mut variables)?;
                let question = body.trim().to_owned();
                if question.is_empty() {
                    return Err(InvalidTransition::NoQuestion);
                }
                Self::Ask { question, next, timeout, variables }
            }
            TagName::Result => {
                Self::Result { payload: body.to_owned(), variables, structured: false }
            }
        })
    }

    /// Returns the name of its tag.
    pub fn tag(&self) -> TagName {
        match self {
            Self::Goto { .. } => TagName::Goto,
            Self::Reset { .. } => TagName::Reset,
            Self::Call { .. } => TagName::Call,
            Self::Function { .. } => TagName::Function,
            Self::Fork { .. } => TagName::Fork,
            Self::Ask { .. } => TagName::Ask,
            Self::Result { .. } => TagName::Result,
        }
    }

    /// Returns the state between the tags, if it is in the same folder; `None` for a question and a result.
    pub fn target(&self) -> Option<&StateName> {
        self.entered().and_then(|(scope, target)| scope.is_none().then_some(target))
    }

    /// Returns the state in the `return` or `next` attribute, if the tag has one.
    pub fn continuation(&self) -> Option<&StateName> {
        match self {
            Self::Call { return_to, .. } | Self::Function { return_to, .. } => Some(return_to),
            Self::Fork { next, .. } | Self::Ask { next, .. } => Some(next),
            Self::Goto { .. } | Self::Reset { .. } | Self::Result { .. } => None,
        }
    }

    /// Returns the state whose turn the agent itself takes next; `None` for a question and a result.
    pub fn next_state(&self) -> Option<&StateName> {
        match self {
            Self::Fork { next, .. } => Some(next),
            other => other.entered().map(|(_, state)| state),
        }
    }

    /// Returns whether it starts other agents.
    pub fn is_fork(&self) -> bool {
        self.tag() == TagName::Fork
    }

    /// Returns whether the agent comes back from the state that it enters.
    pub fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. } | Self::Function { .. })
    }

    /// Returns whether it drops the pending returns.
    pub fn drops_stack(&self) -> bool {
        matches!(self, Self::Reset { keeps_stack: false, .. })
    }

    /// Returns the state that is entered if no answer came in time, if a question names one.
    pub fn timeout_state(&self) -> Option<&StateName> {
        self.ask_timeout().map(|timeout| &timeout.timeout_next)
    }

    /// Returns the timeout of a question, if it has one.
    pub fn ask_timeout(&self) -> Option<&AskTimeout> {
        match self {
            Self::Ask { timeout, .. } => timeout.as_ref(),
            _ => None,
        }
    }

    /// Returns the attributes that are not structural.
    pub fn variables(&self) -> &Variables {
        match self {
            Self::Goto { variables, .. }
            | Self::Reset { variables, .. }
            | Self::Call { variables, .. }
            | Self::Function { variables, .. }
            | Self::Fork { variables, .. }
            | Self::Ask { variables, .. }
            | Self::Result { variables, .. } => variables,
        }
    }

    /// Returns the attributes that are not structural, to change them.
    pub fn variables_mut(&mut self) -> &mut Variables {
        match self {
            Self::Goto { variables, .. }
            | Self::Reset { variables, .. }
            | Self::Call { variables, .. }
            | Self::Function { variables, .. }
            | Self::Fork { variables, .. }
            | Self::Ask { variables, .. }
            | Self::Result { variables, .. } => variables,
        }
    }
}

/// The longest tag that is shown in full, in bytes.
const MAX_TAG_BYTES: usize = 300;

impl Transition {
    /// Returns the tag as an agent would write it. The middle of a long one is left out: it can hold a whole fork list.
    pub fn in_short(&self) -> String {
        let tag = self.to_string();
        if tag.len() <= MAX_TAG_BYTES {
            return tag;
        }
        let head = &tag[..tag.floor_char_boundary(MAX_TAG_BYTES * 2 / 3)];
        let tail = &tag[tag.ceil_char_boundary(tag.len() - MAX_TAG_BYTES / 3)..];
        format!("{head} … {tail}")
    }
}

impl fmt::Display for Transition {
    /// Writes the tag as an agent would; a result's payload is shortened to an ellipsis.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Fork { .. } = self {
            return fork::shown(self, f);
        }
        let tag = self.tag();
        let name = tag.name_into(self.named_scope());
        write!(f, "<{name}")?;
        if let (Some(attribute), Some(state)) = (tag.required_attribute(), self.continuation()) {
            write!(f, " {attribute}=\"{state}\"")?;
        }
        if let Self::Ask { timeout: Some(AskTimeout { timeout_ms, timeout_next }), .. } = self {
            write!(
                f,
                " timeout=\"{}\" timeout_next=\"{timeout_next}\"",
                format_duration(*timeout_ms)
            )?;
        }
        if let Self::Reset { keeps_stack: true, .. } = self {
            f.write_str(" keep=\"stack\"")?;
        }
        for (name, value) in self.variables() {
            write!(f, " {name}=\"{}\"", escape_attribute(value))?;
        }
        match self.entered() {
            Some((scope, state)) => {
                f.write_str(">")?;
                write_target(scope.map(ScopePath::as_written), state, f)?;
                write!(f, "</{name}>")
            }
            None => write!(f, ">…</{tag}>"),
        }
    }
}

/// Returns a value as it stands between double quotes in a tag.
pub fn escape_attribute(value: &str) -> String {
    value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

// The timeout of a question: `timeout` and `timeout_next` of an `<ask>`, both or neither.

/// The timeout of a question, and the state that follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskTimeout {
    /// The longest wait, in milliseconds.
    pub timeout_ms: u64,
    /// The state that is entered if no answer came.
    pub timeout_next: StateName,
}

/// Takes the timeout of an `<ask>` out of its attributes.
fn take(variables: &mut Variables) -> Result<Option<AskTimeout>, InvalidTransition> {
    let half = |missing, given| {
        InvalidTransition::AskTimeout(format!(
            "{given} needs {missing} beside it, and the other way round"
        ))
    };
    match (variables.remove("timeout"), variables.remove("timeout_next")) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(half("timeout_next=\"FILE.md\"", "timeout")),
        (None, Some(_)) => Err(half("timeout=\"24h\"", "timeout_next")),
        (Some(timeout), Some(next)) => {
            let timeout_ms = millis(&timeout)
                .map_err(|why| InvalidTransition::AskTimeout(format!("timeout: {why}")))?;
            let timeout_next = StateName::parse(&next)
                .map_err(|error| InvalidTransition::Target { tag: TagName::Ask, error })?;
            Ok(Some(AskTimeout { timeout_ms, timeout_next }))
        }
    }
}

// The states that a transition enters in other folders, which are separate scopes.

impl Transition {
    /// Returns the state between the tags, with its folder if that is another one; `None` for a question and a result.
    pub fn entered(&self) -> Option<(Option<&ScopePath>, &StateName)> {
        match self {
            Self::Goto { target, scope, .. }
            | Self::Reset { target, scope, .. }
            | Self::Call { target, scope, .. }
            | Self::Function { target, scope, .. }
            | Self::Fork { target, scope, .. } => Some((scope.as_ref(), target)),
            Self::Ask { .. } | Self::Result { .. } => None,
        }
    }

    /// Returns the other folder that the agent itself goes to, if it goes to one.
    pub fn named_scope(&self) -> Option<&ScopePath> {
        match self {
            Self::Fork { .. } => None,
            other => other.entered().and_then(|(scope, _)| scope),
        }
    }

    /// Returns the states that are entered in other folders: its own, and those of its further forks.
    pub fn crossings(&self) -> impl Iterator<Item = (&ScopePath, &StateName)> {
        let also =
            self.further_forks().iter().map(|forked| (forked.scope.as_ref(), &forked.target));
        self.entered().into_iter().chain(also).filter_map(|(scope, state)| Some((scope?, state)))
    }

    /// Returns the state between the tags, as a tag names it; `None` for a question and a result.
    pub fn destination(&self) -> Option<TagTarget> {
        let (scope, state) = self.entered()?;
        Some(TagTarget { scope: scope.cloned(), state: state.clone() })
    }

    /// Changes the variables of each state between the tags, by its folder. The last argument is true if a list may
    /// give more of them.
    pub fn change_given(
        &mut self,
        mut change: impl FnMut(Option<&ScopePath>, &mut Variables, bool),
    ) {
        match self {
            Self::Goto { scope, variables, .. }
            | Self::Reset { scope, variables, .. }
            | Self::Call { scope, variables, .. }
            | Self::Function { scope, variables, .. } => change(scope.as_ref(), variables, false),
            Self::Fork { scope, variables, each, also, .. } => {
                change(scope.as_ref(), variables, each.is_some());
                for forked in also {
                    let has_list = forked.each.is_some();
                    change(forked.scope.as_ref(), &mut forked.variables, has_list);
                }
            }
            Self::Ask { .. } | Self::Result { .. } => {}
        }
    }

    /// Changes the names of all states between the tags, and their folders.
    pub fn change_targets(
        &mut self,
        mut change: impl FnMut(&mut Option<ScopePath>, &mut StateName),
    ) {
        match self {
            Self::Goto { target, scope, .. }
            | Self::Reset { target, scope, .. }
            | Self::Call { target, scope, .. }
            | Self::Function { target, scope, .. } => change(scope, target),
            Self::Fork { target, scope, also, .. } => {
                change(scope, target);
                for forked in also {
                    change(&mut forked.scope, &mut forked.target);
                }
            }
            Self::Ask { .. } | Self::Result { .. } => {}
        }
    }
}

// The states and texts that a transition names, and the attribute that keeps the pending returns.

impl Transition {
    /// Returns the fork tags of one reply after the first.
    fn further_forks(&self) -> &[ForkTag] {
        if let Self::Fork { also, .. } = self { also } else { &[] }
    }

    /// Returns all states of the same folder that it names.
    pub fn states(&self) -> impl Iterator<Item = &StateName> {
        let named =
            [self.target(), self.continuation(), self.timeout_state()].into_iter().flatten();
        let also = self.further_forks().iter().filter(|forked| forked.scope.is_none());
        named.chain(also.map(|forked| &forked.target))
    }

    /// Changes the names of all states of the same folder.
    pub fn rename_states(&mut self, mut change: impl FnMut(&mut StateName)) {
        self.change_targets(|scope, target| {
            if scope.is_none() {
                change(target);
            }
        });
        match self {
            Self::Call { return_to, .. } | Self::Function { return_to, .. } => change(return_to),
            Self::Fork { next, .. } => change(next),
            Self::Ask { next, timeout, .. } => {
                change(next);
                if let Some(timeout) = timeout {
                    change(&mut timeout.timeout_next);
                }
            }
            Self::Goto { .. } | Self::Reset { .. } | Self::Result { .. } => {}
        }
    }
}

impl Transition {
    /// Changes its texts: the values of its variables, for which `change` gets true, and the payload of a result, the
    /// text of a question, or the list of a fork.
    pub fn change_texts(&mut self, mut change: impl FnMut(&mut String, bool)) {
        for value in self.variables_mut().values_mut() {
            change(value, true);
        }
        match self {
            Self::Result { payload: text, .. } | Self::Ask { question: text, .. } => {
                change(text, false);
            }
            Self::Fork { each: Some(each), .. } => change(&mut each.list, false),
            _ => {}
        }
    }
}

/// Takes the `keep` of a reset from its attributes.
fn keeps_stack(variables: &mut Variables) -> Result<bool, InvalidTransition> {
    match variables.remove("keep").as_deref() {
        None => Ok(false),
        Some("stack") => Ok(true),
        Some(_) => Err(InvalidTransition::Keep),
    }
}

// The seven tags by name.

/// The ending of a tag's name that leads to a folder: `call-workflow` is `call`.
const WORKFLOW: &str = "-workflow";

/// The names of the seven tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, Display, EnumString, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TagName {
    Goto,
    Reset,
    Call,
    Function,
    Fork,
    Ask,
    Result,
}

impl TagName {
    /// All tags, in the order in which they are shown.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The names of the tags that lead to a folder, as other spellings.
    pub const OF_WORKFLOWS: [&str; 4] =
        ["call-workflow", "function-workflow", "fork-workflow", "reset-workflow"];

    /// Returns the name as it is written between the angle brackets.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the tag of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.strip_suffix(WORKFLOW) {
            None => name.parse().ok(),
            Some(short) => short.parse().ok().filter(|tag| {
                matches!(tag, Self::Call | Self::Function | Self::Fork | Self::Reset)
            }),
        }
    }

    /// Returns the text between the tags of this name: `call-workflow` names a folder also without a `/`, and may lead
    /// to one beside the run's root.
    pub fn body_of<'text>(name: &str, body: &'text str) -> Cow<'text, str> {
        let is_explicit = name.ends_with(WORKFLOW);
        if !is_explicit && matches!(name, "ask" | "result") {
            return Cow::Borrowed(body);
        }
        let path = body.trim().trim_start_matches("./");
        match (is_explicit, path.starts_with("../")) {
            (true, true) => Cow::Owned(format!("./{path}")),
            (false, true) => Cow::Borrowed(path),
            (true, false) if !path.is_empty() && !path.contains(['/', '\\']) => {
                Cow::Owned(format!("{path}/"))
            }
            _ => Cow::Borrowed(body),
        }
    }

    /// Returns the name of the tag for a way into this folder.
    fn name_into(self, scope: Option<&ScopePath>) -> String {
        let ending = if scope.is_some_and(ScopePath::is_explicit) { WORKFLOW } else { "" };
        format!("{self}{ending}")
    }

    /// Returns the attribute that this tag requires.
    pub fn required_attribute(self) -> Option<&'static str> {
        match self {
            Self::Call | Self::Function => Some("return"),
            Self::Fork | Self::Ask => Some("next"),
            Self::Goto | Self::Reset | Self::Result => None,
        }
    }
}

// The errors of a tag whose pieces do not make a transition.

/// The most attributes of a tag. A reply can be a flood of them, and each would be kept.
pub const MAX_ATTRIBUTES: usize = 256;

/// Returns what to write instead of an attribute that names a directory.
fn directory_hint(attribute: &str) -> &'static str {
    match attribute {
        "cd" | "cwd" => {
            "; only a <fork> takes a directory, cwd=\"DIR\", for the agent that it starts: to hand on a path, use another name, such as path=\"DIR\""
        }
        _ => "",
    }
}

/// The error of a tag whose pieces do not make a transition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTransition {
    /// A required `return` or `next` is missing.
    #[error("<{tag}> needs the attribute {attribute}=\"FILE.md\"")]
    MissingAttribute { tag: TagName, attribute: &'static str },
    /// A `return` or `next` is given to a tag that does not take it, or a directory to another tag than a fork.
    #[error("<{tag}> does not take the attribute `{attribute}`{}", directory_hint(.attribute))]
    UnexpectedAttribute { tag: TagName, attribute: String },
    /// The same attribute was given twice.
    #[error("<{tag}> has the attribute `{attribute}` twice")]
    RepeatedAttribute { tag: TagName, attribute: String },
    /// There are more attributes than a tag may have.
    #[error(
        "<{tag}> has more than {MAX_ATTRIBUTES} attributes; put long data into a file, and give its name"
    )]
    TooManyAttributes { tag: TagName },
    /// The list or the directory of a fork is not valid.
    #[error("<fork>: {0}")]
    Fork(String),
    /// The `keep` of a reset is not known.
    #[error("<reset> keeps only the pending returns: keep=\"stack\"")]
    Keep,
    /// The question is empty.
    #[error("<ask> needs a question between its tags")]
    NoQuestion,
    /// The timeout is not a time, or one of the two attributes of a timeout is missing.
    #[error("<ask>: {0}")]
    AskTimeout(String),
    /// A target is not the bare name of a file.
    #[error("<{tag}>: {error}")]
    Target {
        tag: TagName,
        /// The error in the name.
        error: InvalidName,
    },
}

// The evaluation of a transition before it is taken: by a pattern, or by a separate turn.
//
// A state may name an evaluator. A pattern judges at once. A prompt is a separate turn in the same step, in a fresh
// session. The requested transition is recorded first, as a [`TransitionProposal`], so the evaluator's turn is as
// durable as any other: a lost turn is run again, a paid turn never is. The step ends with that turn, regardless of
// the answer.

/// The transition an agent asked for, while its evaluator checks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitionProposal {
    pub transition: Transition,
    /// The reply had no tag and the policy left only one way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// The reply that asked for it, or the end of a long one.
    pub output: String,
    /// The evaluator's prompt.
    pub evaluator: StateName,
    /// The session the evaluator's turn runs in.
    pub session: Session,
}

/// A transition that was taken instead of the one an agent asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverruledTransition {
    /// The transition the agent asked for; `None` if it was not asked at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Transition>,
    /// The evaluator or plug-in that overruled it: `the evaluator CHECK.md`, `the plug-in budget`.
    pub by: String,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The maximum part of a reply that an evaluator is shown, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Returns the end of a reply, which an evaluator is shown: the tag is usually near it.
pub fn shown_output(reply: &str) -> &str {
    let start = reply.ceil_char_boundary(reply.len().saturating_sub(MAX_OUTPUT_BYTES));
    &reply[start..]
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod evaluation_tests {
    use super::*;

    #[test]
    fn long_reply_is_truncated_to_its_tail() {
        let long = "é".repeat(MAX_OUTPUT_BYTES);
        let shown = shown_output(&long);
        assert!(shown.len() <= MAX_OUTPUT_BYTES && long.ends_with(shown));
        assert_eq!(shown_output("short"), "short");
    }
}
