//! Tips about arguments that a command does not have: options of other programs, and values that are options here.

use std::path::Path;

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::questions::quoted;
use super::runnable::is_workflow;
use crate::language::hint::is_slip;

/// Options that are fixed when a run starts.
const OF_NEW_RUNS: &str = "--agent --base-branch --context --cwd --git-exchange --id --input --no-check --replay-until --shared-dir --strict-replay --then --var";
const FIXED: &str = "this is fixed when a run starts, and cannot change on resume; leave it out, or start a new run";
const BY_CASES: &str =
    "cases always run with scripted replies; leave this out (--real asks the model)";
const MAX_TURNS: &str =
    "max_turns is a key of a prompt or of raymond.yaml; or write -- --max-turns N";

/// Options of other programs or of other commands: the commands that lack them (none: any), their names, and the tip. A
/// tip that begins with an option is for the commands that have it.
const FOREIGN_OPTIONS: [(&str, &str, &str); 15] = [
    ("rewind", "--at --step", "--to SEQ names the record to rewind to"),
    ("branch", "--input", "`branch` takes --var KEY=VALUE; an --input is fixed at the start"),
    ("resume retry branch rewind", OF_NEW_RUNS, FIXED),
    ("test", "--agent --scripted", BY_CASES),
    ("", "--scripted --mock --fake", "--agent scripted runs without a model"),
    ("", "--output --format -o", "--json prints JSON"),
    ("run start", "--continue --resume -c -r", "`raymond resume RUN` resumes a run"),
    ("run start", "--max-turns", MAX_TURNS),
    ("", "--input-file --stdin", "--input - reads the text from stdin: --input - < FILE"),
    (
        "",
        "--prompt --message -p -i -f",
        "--input TEXT gives the text for {{input}}, --var KEY=VALUE that for {{KEY}}",
    ),
    ("run", "--detach --background -d", "`raymond start` runs a workflow in the background"),
    ("", "--parallel --jobs -j", "--max-procs N limits the processes"),
    ("", "--yolo", "--dangerously-skip-permissions allows everything"),
    ("", "--port --host --bind", "--listen 127.0.0.1:8080 sets address and port"),
    ("", "--fix", "--write writes the policies that texts imply"),
];

/// The tips about a word without a place: the commands, and the tip, with `{}` for the word.
const SURPLUS_WORDS: [(&str, &str); 7] = [
    ("show", "a step is an option: --step {}"),
    ("signal", "a value is an option: --value {}; --key names a run"),
    ("recover", "`raymond resume {}` resumes one run"),
    ("test", "a case is an option: --case {}"),
    ("rewind", "the record is an option: --to {}"),
    ("check graph", "give one PATH at a time"),
    ("status tree log costs resume stop top", "give one RUN at a time"),
];

/// The options that begin with a text, so that a word behind one may belong to it.
const TEXT_OPTIONS: &str = "--allow-tool --answer --input --on-event --plugin --reason";

/// Replaces a tip that names an unrelated option, or that says to write an unknown option behind `--`, with one of
/// raymond's: the words behind `--` are arguments of Claude Code. `words` follow the program's name.
pub(super) fn with_tips(mut error: clap::Error, grammar: &Command, words: &[&str]) -> clap::Error {
    let lacks_path = matches!(error.get(ContextKind::InvalidArg),
        Some(ContextValue::Strings(lacking)) if lacking.iter().any(|name| ["<TARGET>", "<PATH>"].contains(&&**name)));
    if lacks_path && is_workflow(Path::new(".")) {
        let tip = "this folder is a workflow: name it with `.`, as in `raymond run .`";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    let given = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(given)) if is_unknown => given.clone(),
        _ => return error,
    };
    let tip = if given.starts_with('-') {
        foreign(bare(&given), grammar, words)
    } else {
        surplus(grammar, words, &given)
    };
    let similar = error.get(ContextKind::SuggestedArg).map(ToString::to_string);
    if tip.is_some() || !similar.is_some_and(|similar| is_slip(bare(&given), bare(&similar))) {
        error.remove(ContextKind::SuggestedArg);
    }
    error.remove(ContextKind::Suggested);
    if let Some(tip) = tip.map(StyledStr::from) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// Returns the name of an option, without the value that may follow it.
fn bare(option: &str) -> &str {
    option.split([' ', '=', '[']).next().unwrap_or_default()
}

/// Returns whether a word is one of a list, or the list is empty.
fn is_of(word: &str, list: &str) -> bool {
    list.is_empty() || list.split(' ').any(|listed| listed == word)
}

/// Returns the tip about an option that a command does not have.
fn foreign(option: &str, grammar: &Command, words: &[&str]) -> Option<String> {
    let named = words.iter().find_map(|word| grammar.find_subcommand(word));
    let command = named.or_else(|| grammar.find_subcommand("run"))?;
    let has = |tip: &str| match bare(tip).strip_prefix("--") {
        Some(name) => command.get_arguments().any(|argument| argument.get_long() == Some(name)),
        None => true,
    };
    let fits = |(commands, options, tip): &&(&str, &str, &str)| {
        is_of(option, options) && is_of(command.get_name(), commands) && has(tip)
    };
    FOREIGN_OPTIONS.iter().find(fits).map(|(_, _, tip)| (*tip).to_owned())
}

/// Returns the tip about a word that is not an option and has no place.
fn surplus(grammar: &Command, words: &[&str], word: &str) -> Option<String> {
    let shown = quoted(word);
    let at = words.iter().rposition(|given| *given == word)?;
    let option = words[..at].iter().rfind(|word| word.starts_with("--"));
    let option = option.map_or("none", |option| bare(option));
    let (command, first) = (words.first().copied()?, words.get(1).copied().unwrap_or_default());
    let target = match command {
        "run" | "start" => Some(first).filter(|first| *first != word && !first.starts_with('-')),
        path => Some(path).filter(|path| Path::new(path).exists()),
    };
    let verb = if command == "start" { "start" } else { "run" };
    // It may belong to the text of the option before it.
    let target = target.filter(|_| word.contains(' ') || !is_of(option, TEXT_OPTIONS));
    let of_command = SURPLUS_WORDS.iter().find(|(commands, _)| is_of(command, commands));
    Some(match (target, of_command) {
        _ if is_of(option, "--var --context") && word.contains('=') => {
            format!("repeat the option for each value: {option} {shown}")
        }
        (_, Some(_)) if command == "test" && Path::new(word).is_dir() => {
            "give one PATH at a time".to_owned()
        }
        (_, Some((_, tip))) => tip.replace("{}", &shown),
        (Some(path), None) if grammar.find_subcommand(word).is_some() => {
            format!("the command comes first: raymond {word} {path}")
        }
        (Some(folder), None) if Path::new(folder).join(word).is_file() => {
            format!("name one of the two: raymond {verb} {folder}/{word}")
        }
        (Some(path), None) => {
            format!(
                "the text for {{{{input}}}} is an option: raymond {verb} {path} --input {shown}"
            )
        }
        (None, None) => "put a text with spaces in quotes".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn tips(line: &str) -> String {
        let grammar = crate::cli::args::Cli::command();
        let words: Vec<&str> = line.split(' ').collect();
        let words: Vec<String> = words.iter().map(|word| word.replace('_', " ")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let all = [&["raymond"], &words[..]].concat();
        let error = grammar.clone().try_get_matches_from(all).expect_err("refused");
        with_tips(error, &grammar, &words).to_string()
    }

    #[test]
    fn surplus_word_or_foreign_option_has_its_tip() {
        let table = [
            ("run haiku the_sea", "raymond run haiku --input 'the sea'"),
            ("run haiku --var a=1 b=2", "repeat the option for each value: --var b=2"),
            ("run src lib.rs", "name one of the two: raymond run src/lib.rs"),
            ("run haiku --allow-tool Bash cargo", "put a text with spaces in quotes"),
            ("show r1 main 2", "--step 2"),
            ("signal label value", "--value value"),
            ("recover r1", "`raymond resume r1`"),
            ("test haiku one", "--case one"),
            ("check a b", "one PATH at a time"),
            ("status a b", "one RUN at a time"),
            ("rewind r1 2", "--to 2"),
            ("tell q1 main please hurry", "put a text with spaces in quotes"),
            ("rewind r1 --at 2", "tip: --to SEQ"),
            ("run haiku --scripted", "tip: --agent scripted"),
            ("test haiku --agent scripted", "leave this out"),
            ("run haiku --output json", "tip: --json"),
            ("run haiku --format=json", "tip: --json"),
            ("run haiku --continue", "`raymond resume RUN`"),
            ("run haiku --max-turns 3", "max_turns is a key"),
            ("resume b2 --id b3", "this is fixed when a run starts"),
            ("retry b2 --context a=b", "this is fixed when a run starts"),
            ("branch b2 --input x", "`branch` takes --var"),
            ("run haiku --input-file n.txt", "tip: --input - reads"),
            ("serve --port 80", "tip: --listen"),
            ("run haiku --buget 3", "a similar argument exists: '--budget'"),
        ];
        for (line, tip) in table {
            let text = tips(line);
            assert!(text.contains(tip) && text.matches("tip:").count() == 1, "{line}: {text}");
        }
        let unknown = tips("run haiku --quux");
        assert!(!unknown.contains("tip:"), "{unknown}");
    }
}
