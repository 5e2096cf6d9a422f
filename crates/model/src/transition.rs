//! An agent's request at the end of a turn: one of the seven tags, with its attributes.
//!
//! [`Transition::from_parts`] decides the meaning of a tag's pieces: which attributes are part of its
//! structure, and which are variables of the state that is entered.

mod ask_timeout;
mod fork;
mod scopes;
mod tag;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::ask_timeout::AskTimeout;
pub use self::fork::{ANY_LIST, ForkList, ForkTag};
pub use self::tag::TagName;
pub use self::tag::{InvalidTransition, MAX_ATTRIBUTES};
use super::id::{ScopePath, StateName, TagTarget, write_target};
use super::time::format_duration;
pub use super::variables::Variables;

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
                let keeps_stack = scopes::keeps_stack(&mut variables)?;
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
                let timeout = ask_timeout::take(&mut variables)?;
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
}

/// The longest tag that is told whole, in bytes.
const MAX_TOLD_TAG: usize = 300;

impl Transition {
    /// Returns the tag as an agent would write it. The middle of a long one is left out: it can hold a whole fork list.
    pub fn in_short(&self) -> String {
        let tag = self.to_string();
        if tag.len() <= MAX_TOLD_TAG {
            return tag;
        }
        let head = &tag[..tag.floor_char_boundary(MAX_TOLD_TAG * 2 / 3)];
        let tail = &tag[tag.ceil_char_boundary(tag.len() - MAX_TOLD_TAG / 3)..];
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
        let name = tag.name_into(self.own_scope());
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

#[cfg(test)]
mod tests;
