//! Rules for tools: which of them allow no more than is allowed anyway, and which cover others.

/// Tools that touch nothing outside of the session.
const INNER_TOOLS: [&str; 9] = [
    "Agent",
    "ExitPlanMode",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
];

/// Tools that read, within the paths they are given.
const READING_TOOLS: [&str; 4] = ["Glob", "Grep", "LS", "Read"];

/// Tools that change files, within the paths they are given.
const EDITING_TOOLS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Characters that can join a command to another, in a shell.
const JOINING: [char; 12] = [';', '&', '|', '<', '>', '$', '`', '\n', '(', ')', '{', '}'];

/// A rule taken apart.
struct RuleParts<'rule> {
    tool: &'rule str,
    /// The part in brackets.
    use_of: Option<&'rule str>,
}

impl<'rule> RuleParts<'rule> {
    fn of(rule: &'rule str) -> Self {
        match rule.split_once('(') {
            Some((tool, rest)) => {
                Self { tool, use_of: Some(rest.strip_suffix(')').unwrap_or(rest)) }
            }
            None => Self { tool: rule, use_of: None },
        }
    }
}

/// Returns whether a rule allows no more than runs unasked anyway. `edits` is true if edits in the working directory
/// run unasked.
pub(super) fn is_harmless(rule: &str, edits: bool) -> bool {
    let RuleParts { tool, use_of } = RuleParts::of(rule);
    if use_of.is_some_and(|use_of| use_of.contains(['(', ')', ','])) || tool.contains([' ', ',']) {
        // Claude Code may take it for several rules.
        return false;
    }
    if INNER_TOOLS.contains(&tool) {
        return true;
    }
    let changes = EDITING_TOOLS.contains(&tool);
    if !READING_TOOLS.contains(&tool) && !changes {
        return false;
    }
    use_of.is_some_and(is_inside) && (edits || !changes)
}

/// Returns the rule for the same tool that stays in the working directory, if a rule for all its uses has one.
pub(super) fn within_directory(rule: &str, edits: bool) -> Option<String> {
    let narrower = format!("{rule}(./**)");
    is_harmless(&narrower, edits).then_some(narrower).filter(|_| !INNER_TOOLS.contains(&rule))
}

/// Returns whether a path pattern stays below the working directory.
fn is_inside(pattern: &str) -> bool {
    let leaves =
        pattern.starts_with(['/', '~']) || pattern.split(['/', '\\']).any(|part| part == "..");
    !leaves && !pattern.is_empty()
}

/// Returns whether a `given` rule covers another rule: it is the same, it allows any use of the same tool, or its
/// command begins with the same words.
pub fn is_covered(rule: &str, given: &str) -> bool {
    if rule == given {
        return true;
    }
    let (wanted, given) = (RuleParts::of(rule), RuleParts::of(given));
    if wanted.use_of.is_some_and(|use_of| use_of.contains(['(', ')'])) && wanted.tool != "Bash" {
        // Claude Code reads what stands behind the first bracket that closes as further rules.
        return false;
    }
    let Some(given_use) = given.use_of else {
        let of_server =
            wanted.tool.strip_prefix(given.tool).is_some_and(|rest| rest.starts_with("__"));
        return wanted.tool == given.tool || (given.tool.starts_with("mcp__") && of_server);
    };
    let (Some(wanted_use), "Bash", "Bash") = (wanted.use_of, wanted.tool, given.tool) else {
        return false;
    };
    let Some(prefix) = prefix(given_use) else { return false };
    let command = self::prefix(wanted_use).unwrap_or(wanted_use);
    let rest = command.strip_prefix(prefix);
    rest.is_some_and(|rest| {
        (rest.is_empty() || rest.starts_with(' ')) && !rest.contains(JOINING) && !rest.contains('*')
    })
}

/// Returns whether a command is a single one, which the shell neither joins to another nor expands.
pub fn is_single_command(command: &str) -> bool {
    !command.contains(JOINING)
}

/// Returns the words that a command has to begin with: `cargo` of `cargo:*` and of `cargo *`.
fn prefix(use_of: &str) -> Option<&str> {
    let prefix = use_of.strip_suffix(":*").or_else(|| use_of.strip_suffix(" *"))?;
    (!prefix.is_empty() && !prefix.contains('*')).then_some(prefix)
}

/// Returns the rules that arguments for Claude Code give to every turn.
pub(super) fn granted_by(arguments: &[String]) -> Vec<String> {
    without_granted_rules(arguments).1
}

/// Splits arguments for Claude Code into those that allow no tools, and the rules of the others.
pub fn without_granted_rules(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut others, mut rules) = (Vec::new(), Vec::new());
    let mut is_list = false;
    for argument in arguments {
        let value = ["--allowedTools=", "--allowed-tools="]
            .iter()
            .find_map(|flag| argument.strip_prefix(flag));
        if let Some(value) = value {
            rules.extend(split_rules(value));
            is_list = false;
        } else if argument == "--allowedTools" || argument == "--allowed-tools" {
            is_list = true;
        } else if is_list && !argument.starts_with('-') {
            rules.extend(split_rules(argument));
        } else {
            is_list = false;
            others.push(argument.clone());
        }
    }
    (others, rules)
}

/// Splits a list of rules at commas and spaces that stand outside of brackets. As for Claude Code, the first bracket that
/// closes ends a rule.
pub fn split_rules(list: &str) -> Vec<String> {
    let mut is_inside = false;
    let parts = list.split(|c: char| {
        match c {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ => {}
        }
        !is_inside && (c == ',' || c == ' ')
    });
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
