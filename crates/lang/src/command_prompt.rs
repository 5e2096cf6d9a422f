//! The check of prompts that begin with a slash word: they are sent as text, unless `run_command` says otherwise.

/// The code of the warnings.
pub const CODE: &str = "RF407";

/// Returns the warning about a prompt whose turn has this `run_command`, if it looks like a command and is sent as text,
/// or cannot be a command.
pub fn warning(text: &str, run_command: Option<bool>) -> Option<String> {
    let word = text.split_whitespace().next().unwrap_or_default();
    match run_command {
        None if is_command(word) => Some(format!(
            "the prompt begins with `{word}` and is sent as text; set `run_command: true` to run the command or skill, or `run_command: false` if it is text"
        )),
        Some(true) if !is_command(word) && !is_filled(word) => Some(
            "`run_command` has no effect, because the prompt does not begin with a command such as /review".to_owned(),
        ),
        _ => None,
    }
}

/// Returns whether Claude Code would take a word for a command: a slash and a name, which may be filled in, without a
/// further slash as in a path.
fn is_command(word: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    word.strip_prefix('/').is_some_and(|name| {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        is_filled(name) && !name.is_empty() || is_name && name.chars().all(is_of_name)
    })
}

/// Returns whether a text begins with a value that is filled in; an argument of a program leaves nothing.
fn is_filled(text: &str) -> bool {
    text.is_empty() || ["{{", "${"].iter().any(|start| text.starts_with(start))
}
