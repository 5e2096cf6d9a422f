//! The parts of a shell command and their first words, as the permission rules for commands use them.

/// Programs whose second word says what they do.
const TWO_WORDS: [&str; 35] = [
    "apt",
    "apt-get",
    "aws",
    "az",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "deno",
    "docker",
    "dotnet",
    "env",
    "gcloud",
    "gem",
    "gh",
    "git",
    "go",
    "helm",
    "kubectl",
    "nix",
    "npm",
    "npx",
    "pip",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "sudo",
    "systemctl",
    "terraform",
    "uv",
    "xargs",
    "yarn",
];

/// Words of the shell that come before a command.
const BEFORE: [&str; 10] =
    ["!", "do", "elif", "else", "if", "then", "time", "until", "while", "nohup"];

/// Words of the shell that begin something other than a command.
const NO_COMMAND: [&str; 3] = ["for", "done", "fi"];

/// Returns the first words of the parts of a command, each once: of the parts that `named` contains, or of all if it
/// contains none. `None` if the command cannot be taken apart, or no rule covers one of the parts.
pub(super) fn prefixes(command: &str, named: Option<&str>) -> Option<Vec<String>> {
    let mut commands: Vec<&str> =
        parts(command)?.into_iter().filter_map(without_shell_words).collect();
    if commands.len() > 1 {
        commands.retain(|part| words(part).next() != Some("cd"));
    }
    let named = named.unwrap_or_default();
    let leaves_the_directory = named.starts_with("cd ") || named.contains(", cd ");
    if leaves_the_directory {
        return None;
    }
    let is_named = |part: &&str| named.contains(without_redirection(part));
    let named: Vec<&str> = commands.iter().copied().filter(is_named).collect();
    let needed = if named.is_empty() { commands } else { named };
    let mut prefixes: Vec<String> = Vec::new();
    for part in needed {
        let prefix = prefix(part)?;
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    (!prefixes.is_empty()).then_some(prefixes)
}

/// Returns the commands between the operators; `None` if only a shell can take the text apart.
fn parts(command: &str) -> Option<Vec<&str>> {
    let bytes = command.as_bytes();
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    let mut quote = None;
    while at < bytes.len() {
        let (byte, next) = (bytes[at], bytes.get(at + 1).copied());
        match (quote, byte) {
            (Some(b'\''), b'\'') | (Some(b'"'), b'"') => quote = None,
            (Some(b'\''), _) => {}
            (_, b'\\') => at += 1,
            (_, b'`') | (None, b'(' | b')' | b'{' | b'}') => return None,
            (_, b'$') if next == Some(b'(') => return None,
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'<') if next == Some(b'<') => return None,
            (None, b'&') if next == Some(b'>') || at > 0 && bytes[at - 1] == b'>' => {}
            (None, b'&') if next != Some(b'&') => return None,
            (None, b';' | b'\n' | b'|' | b'&') => {
                parts.push(command[begin..at].trim());
                let is_double = matches!(byte, b'|' | b'&') && matches!(next, Some(b'|' | b'&'));
                at += usize::from(is_double);
                begin = at + 1;
            }
            (Some(_) | None, _) => {}
        }
        at += 1;
    }
    if quote.is_some() {
        return None;
    }
    parts.push(command.get(begin..).unwrap_or_default().trim());
    parts.retain(|part| !part.is_empty());
    Some(parts)
}

/// Returns a part without the words of the shell before it; `None` if nothing is left.
fn without_shell_words(mut part: &str) -> Option<&str> {
    loop {
        let first = words(part).next()?;
        if NO_COMMAND.contains(&first) {
            return None;
        }
        if !BEFORE.contains(&first) {
            return Some(part);
        }
        part = part[first.len()..].trim_start();
    }
}

/// Returns the first words of a command, up to the word that names its action.
fn prefix(part: &str) -> Option<String> {
    let mut words = words(part).peekable();
    let mut prefix: Vec<&str> = Vec::new();
    while let Some(word) = words.next_if(|word| is_assignment(word)) {
        prefix.push(word);
    }
    let mut program = words.next()?;
    if program == "timeout" {
        let limit = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        if !prefix.is_empty() {
            prefix.extend([program, limit]);
        }
        program = words.next()?;
    }
    prefix.push(program);
    if TWO_WORDS.contains(&program) {
        prefix.extend(words.next_if(|word| is_subcommand(word)));
    }
    prefix.iter().all(|word| is_plain(word)).then(|| prefix.join(" "))
}

fn without_redirection(part: &str) -> &str {
    let command = part.split(['<', '>']).next().unwrap_or_default();
    let is_cut = command.len() < part.len();
    let descriptor = |c: char| c.is_ascii_digit() || c == '&';
    if is_cut { command.trim_end_matches(descriptor).trim_end() } else { command }
}

fn words(part: &str) -> impl Iterator<Item = &str> {
    part.split_ascii_whitespace()
}

fn is_assignment(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(is_name))
}

fn is_subcommand(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && is_plain(word)
}

/// Returns whether a word stands for itself in the shell and in a rule.
fn is_plain(word: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./+=@%:~".contains(c);
    !word.is_empty() && word.chars().all(is_plain)
}
