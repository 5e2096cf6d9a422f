//! The forms of programs, by kind, and the keywords that they take.

use crate::turn_options::DASHED_KEYS;

/// The keys of the metadata.
pub const METADATA: [&str; 6] =
    ["label", "description", "max-iterations", "max-budget-usd", "model", "publish-state"];

/// The keywords of a role: its own, and those of the options of turns.
pub const ROLE_KEYWORDS: [&str; 5 + DASHED_KEYS.len()] = {
    let mut keys = ["agent-kind"; 5 + DASHED_KEYS.len()];
    (keys[1], keys[2], keys[3], keys[4]) = ("handle-ref", "model", "cwd", "output");
    let mut index = 0;
    while index < DASHED_KEYS.len() {
        keys[5 + index] = DASHED_KEYS[index];
        index += 1;
    }
    keys
};

/// A form and its keywords.
type FormKeywords = (&'static str, &'static [&'static str]);

/// The keywords of instructions and actions. Either is read where the other is expected.
const STEP_KEYWORDS: &[FormKeywords] = &[
    ("wait", &["timeout", "on-timeout"]),
    ("await", &["timeout", "on-timeout"]),
    ("loop", &["max", "on-max"]),
    ("terminal", &["status", "result"]),
    ("send-prompt", &["agent", "template", "args", "request-id", "expect", "output"]),
    ("run-folder", &["agent", "start", "input", "request-id"]),
    ("assert", &["key", "value"]),
    ("retract", &["key"]),
    ("run", &RUN_KEYWORDS),
    ("start-workflow", &["label", "args", "branch", "context", "budget", "as", "on-error"]),
    ("user-input", &["prompt", "args", "options", "timeout", "on-timeout", "as"]),
];

const RUN_KEYWORDS: [&str; 9] =
    ["command", "args", "cwd", "timeout", "unless", "once", "idempotent", "as", "on-error"];

/// A kind of forms, which may be in the same positions.
pub(super) struct FormKind {
    /// One of them, in a message.
    pub(super) what: &'static str,
    /// An example of one.
    pub(super) like: &'static str,
    pub(super) names: &'static [&'static str],
    /// The keywords of those that take some.
    keywords: &'static [FormKeywords],
}

impl FormKind {
    /// Returns the keywords that a form takes here.
    pub(super) fn keywords_of(&self, name: &str) -> &'static [&'static str] {
        self.keywords.iter().find(|(form, _)| *form == name).map_or(&[], |(_, keywords)| keywords)
    }
}

pub(super) const FILE: FormKind = FormKind {
    what: "a workflow",
    like: "`(workflow NAME …)`",
    names: &["workflow"],
    keywords: &[],
};

pub(super) const PART: FormKind = FormKind {
    what: "a part of a workflow",
    like: "`(state NAME …)`",
    names: &["metadata", "roles", "state"],
    keywords: &[],
};

pub(super) const INSTRUCTION: FormKind = FormKind {
    what: "an instruction",
    like: "`(goto STATE)`",
    names: &[
        "wait", "await", "action", "loop", "for-each", "branch", "break", "continue", "goto",
        "terminal",
    ],
    keywords: STEP_KEYWORDS,
};

pub(super) const ACTION: FormKind = FormKind {
    what: "an action",
    like: "`(send-prompt :agent ROLE :template TEXT)`",
    names: &[
        "send-prompt",
        "run-folder",
        "run",
        "start-workflow",
        "user-input",
        "assert",
        "retract",
        "log",
        "wait",
        "await",
    ],
    keywords: STEP_KEYWORDS,
};

pub(super) const ARM: FormKind = FormKind {
    what: "an arm of a branch",
    like: "`(on CONDITION …)`",
    names: &["on", "otherwise"],
    keywords: &[],
};

pub(super) const CONDITION: FormKind = FormKind {
    what: "a condition",
    like: "`(signal LABEL)`",
    names: &[
        "signal",
        "transcript-response",
        "verdict",
        "equals",
        "matches",
        "after",
        "at",
        "and",
        "or",
        "not",
    ],
    keywords: &[
        ("signal", &["key", "equals", "consume", "as"]),
        ("transcript-response", &["request-id", "on-error"]),
    ],
};

pub(super) const VALUE: FormKind = FormKind {
    what: "a value",
    like: "`(response REQUEST)`",
    names: &["signal", "response", "verdict", "feedback", "artifact"],
    keywords: &[("signal", &["key"]), ("response", &["field"]), ("feedback", &["field"])],
};

const DEFINITION: FormKind = FormKind {
    what: "a definition",
    like: "`(define NAME TEXT)`",
    names: &["define", "defn", "require"],
    keywords: &[],
};

const ALL: [&FormKind; 8] =
    [&DEFINITION, &FILE, &PART, &INSTRUCTION, &ACTION, &ARM, &CONDITION, &VALUE];

/// Returns the kind of the form with this name, if there is one.
pub(super) fn sort_of(name: &str) -> Option<&'static FormKind> {
    ALL.into_iter().find(|sort| sort.names.contains(&name))
}

/// Returns each form with the keywords that it takes. A form that can stand in several places is listed once for each.
pub fn forms() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    ALL.into_iter().flat_map(|kind| kind.names.iter().map(|name| (*name, kind.keywords_of(name))))
}
