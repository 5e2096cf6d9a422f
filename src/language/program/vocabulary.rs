//! The forms of programs, by kind.

/// A kind of forms, which may be in the same positions.
pub(super) struct FormKind {
    /// One of them, in a message.
    pub(super) what: &'static str,
    /// An example of one.
    pub(super) like: &'static str,
    pub(super) names: &'static [&'static str],
}

pub(super) const FILE: FormKind =
    FormKind { what: "a workflow", like: "`(workflow NAME …)`", names: &["workflow"] };

pub(super) const PART: FormKind = FormKind {
    what: "a part of a workflow",
    like: "`(state NAME …)`",
    names: &["metadata", "roles", "state"],
};

pub(super) const INSTRUCTION: FormKind = FormKind {
    what: "an instruction",
    like: "`(goto STATE)`",
    names: &["wait", "await", "action", "loop", "branch", "goto", "terminal"],
};

pub(super) const ACTION: FormKind = FormKind {
    what: "an action",
    like: "`(send-prompt :agent ROLE :template TEXT)`",
    names: &["send-prompt", "run-folder", "assert", "retract", "log", "wait", "await"],
};

pub(super) const ARM: FormKind = FormKind {
    what: "an arm of a branch",
    like: "`(on CONDITION …)`",
    names: &["on", "otherwise"],
};

pub(super) const CONDITION: FormKind = FormKind {
    what: "a condition",
    like: "`(signal LABEL)`",
    names: &["signal", "transcript-response", "matches", "after", "at", "and", "or", "not"],
};

pub(super) const VALUE: FormKind = FormKind {
    what: "a value",
    like: "`(response REQUEST)`",
    names: &["signal", "response", "feedback", "artifact"],
};

const ALL: [&FormKind; 7] = [&FILE, &PART, &INSTRUCTION, &ACTION, &ARM, &CONDITION, &VALUE];

/// Returns the kind of the form with this name, if there is one.
pub(super) fn sort_of(name: &str) -> Option<&'static FormKind> {
    ALL.into_iter().find(|sort| sort.names.contains(&name))
}
