//! Explains why a text is not an expression: names the mistake where the parser stopped, and a correct form.

use super::ast::Expression;
use super::fuel::SyntaxError;

/// The words of other languages for operators, with the form to write here.
const WORDS: [(&str, &str); 14] = [
    ("and", "write `a && b`"),
    ("or", "write `a || b`"),
    ("not", "write `!a`"),
    ("is", "write `a == b`"),
    ("in", "write `list.includes(x)`"),
    ("contains", "write `contains(a, b)`"),
    ("includes", "write `a.includes(b)`"),
    ("startswith", "write `startswith(a, b)`"),
    ("endswith", "write `endswith(a, b)`"),
    ("startsWith", "write `a.startsWith(b)`"),
    ("endsWith", "write `a.endsWith(b)`"),
    ("matches", "write `a.match(/…/)`"),
    ("if", "write `condition ? a : b`"),
    ("then", "write `condition ? a : b`"),
];

/// JavaScript's statements that functions lack.
const FOREIGN_STATEMENTS: [&str; 7] =
    ["while", "do", "switch", "try", "throw", "function", "async"];

/// The shell's comparisons, with the operators to write here.
const SHELL: [(&str, &str); 6] =
    [("-eq", "=="), ("-ne", "!="), ("-gt", ">"), ("-lt", "<"), ("-ge", ">="), ("-le", "<=")];

/// Returns the mistake of a text that could be read up to a place.
pub(super) fn diagnose(text: &str, at: usize) -> SyntaxError {
    let at = text.floor_char_boundary(at);
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return SyntaxError::syntax(0, "the expression is missing");
    }
    let failure = ParseFailure {
        start: text.len() - text.trim_start().len(),
        text: trimmed,
        at,
        before: text[..at].trim_end(),
        rest: text[at..].trim_end(),
    };
    let prose = || failure.prose();
    let specific = failure
        .statement()
        .or_else(prose)
        .or_else(|| failure.other_language())
        .or_else(|| failure.javascript());
    specific.unwrap_or_else(|| failure.plain())
}

/// A place where the parser stopped.
struct ParseFailure<'text> {
    /// Where the text begins.
    start: usize,
    text: &'text str,
    at: usize,
    before: &'text str,
    rest: &'text str,
}

impl ParseFailure<'_> {
    /// Recognizes a statement of JavaScript, which only the body of a function can have.
    fn statement(&self) -> Option<SyntaxError> {
        let end = self.text.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.text.len());
        let (word, rest) = self.text.split_at(end);
        let rest = rest.trim();
        let is_statement = match word {
            "const" | "let" | "var" => {
                let name = rest.split(['=', ';', '\n']).next().unwrap_or_default().trim();
                rest.contains('=') && (!name.contains(' ') || name.starts_with(['{', '[']))
            }
            "if" | "for" | "while" | "switch" => {
                rest.starts_with('(') && (rest.contains(['{', ';']) || rest.contains("return"))
            }
            "function" => rest.contains('(') && rest.contains('{'),
            "return" => Expression::parse(rest.trim_end_matches(';')).is_ok(),
            _ => false,
        };
        is_statement.then(|| {
            let why = format!(
                "`{word}` begins a statement, which is only allowed in the braces of a function, as in `list.map(x => {{ const y = x.id; return y }})`; write one expression here, and compute values for it in actions before"
            );
            SyntaxError::syntax(self.start, why)
        })
    }

    fn prose(&self) -> Option<SyntaxError> {
        let start = self.text.starts_with('#');
        let word = |word: &str| word.chars().all(char::is_alphabetic);
        let mut words = self.rest.split_whitespace();
        let sentence = !self.before.is_empty()
            && self.before.split_whitespace().all(word)
            && !WORDS.iter().any(|(known, _)| words.clone().next() == Some(known))
            && words.by_ref().take(2).filter(|next| word(next)).count() == 2;
        (start || sentence).then(|| {
            let at = if start { 0 } else { self.at };
            SyntaxError::foreign(at, "this is prose; write an expression, such as `len(files) > 0`")
        })
    }

    /// Recognizes forms of the shell and of jq.
    fn other_language(&self) -> Option<SyntaxError> {
        let name = self.name();
        let (before, rest) = (self.before, self.rest);
        let after_colon = rest.strip_prefix(':').and_then(|rest| rest.chars().next());
        let foreign = |message: String| Some(SyntaxError::foreign(self.at, message));
        if self.text.starts_with("[ -") || self.text.starts_with("[[ ") || self.is_flag() {
            let why = "this is a shell's test; use a precondition such as file_exists";
            return Some(SyntaxError::foreign(0, why));
        }
        if let Some((sign, here)) = SHELL.iter().find(|(sign, _)| before.ends_with(sign)) {
            return foreign(format!("`{sign}` is a shell's comparison; write `{here}`"));
        }
        match after_colon {
            Some(sign @ ('-' | '=' | '+' | '?')) if self.closes() != Some(':') => {
                let here = in_place_of(sign, name, &rest[2..]);
                return foreign(format!("`:{sign}` is a shell's form; write `{here}`"));
            }
            Some('0'..='9') if self.closes() != Some(':') => {
                return foreign(format!("this is a shell's form; write `{name}.slice(0, 3)`"));
            }
            _ => {}
        }
        if let Some(what) = rest.strip_prefix('|') {
            let why = "`|` is a form of jq and the shell; write";
            let what =
                what.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let filter = rest[1..].trim();
            let instead = match what {
                "keys" if filter.ends_with("length") => format!("`Object.keys({name}).length`"),
                "tojson" => format!("`JSON.stringify({name})`"),
                "fromjson" => format!("`JSON.parse({name})`"),
                "first" => format!("`{name}[0]`"),
                "last" => format!("`{name}[-1]`"),
                "join" | "split" | "map" => format!("`{name}.{what}(…)`"),
                "select" => format!("`{name}.filter(x => …)`"),
                "length" => format!("`{name}.length`"),
                "keys" | "values" => format!("`Object.{what}({name})`"),
                "" => format!("`||`, or a method, as in `{name}.trim()`"),
                _ => format!("a method or a function, as in `{name}.trim()`"),
            };
            return foreign(format!("{why} {instead}"));
        }
        if before.ends_with('%') && rest.starts_with(['.', '*', '%']) {
            let why = "`%` with a pattern is a shell's form; write `name.replace(/…$/, '')`";
            return foreign(why.to_owned());
        }
        if before.ends_with('/') && rest.starts_with('/') {
            let why = "is a form of jq and the shell; write `a ?? b` or `a.replaceAll('x', 'y')`";
            return foreign(format!("`//` {why}"));
        }
        if rest.starts_with('#') {
            let why = "`#` is a shell's form; write `name.length`, or `name.replace('a', '')`";
            return foreign(why.to_owned());
        }
        if rest.starts_with("$(") {
            return foreign("`$(…)` is a shell's form; run the command in an action".to_owned());
        }
        if rest.starts_with('$') {
            return foreign("a `$` before a name is shell syntax; write only the name".to_owned());
        }
        if rest.starts_with('.') && !rest.starts_with("...") && before.is_empty() {
            return foreign(
                "a path that begins with a dot is jq's form; begin with a name".to_owned(),
            );
        }
        None
    }

    /// Recognizes JavaScript that this language lacks.
    fn javascript(&self) -> Option<SyntaxError> {
        let (before, rest) = (self.before, self.rest);
        let why = if FOREIGN_STATEMENTS.contains(&self.next()) || self.is_counting_loop() {
            "unknown statement; a function has `const`, `let`, `if`, `else`, \
             `for (const x of list)`, `list.push(x)`, assignments and `return`"
        } else if let Some(at) = self.open_backtick() {
            let why = "the text in backticks that opens here is not closed";
            return Some(SyntaxError::syntax(at, why));
        } else if before.ends_with("Date()") || before.ends_with("new") {
            "the time is `new Date().toISOString()`"
        } else if rest.starts_with("=>") {
            "a function may only be an argument of a method, as in `list.map(x => x.id)`"
        } else if rest.starts_with('=') {
            "`=` does not compare; write `==`"
        } else if rest.starts_with('&') {
            "write `&&`"
        } else if rest.starts_with(';') {
            "write one expression here, without `;`"
        } else if rest.starts_with("...") {
            "`...` is only allowed in a list, in a map, or among arguments, as in `[...list, x]`"
        } else if rest.starts_with(['“', '”', '‘', '’', '„']) {
            "write plain quotes, ' or \""
        } else if rest.starts_with(['\'', '"']) && !self.after_value() {
            "the quote that opens here is not closed"
        } else if rest.starts_with('/') && !self.after_value() {
            if before.ends_with(['(', ',']) {
                "the regular expression that begins here is not complete: `/…/`"
            } else {
                "a regular expression may only be an argument, as in `text.match(/…/)`"
            }
        } else {
            let (_, here) = WORDS.iter().find(|(word, _)| *word == self.next())?;
            return Some(SyntaxError::syntax(
                self.at,
                format!("`{}` is not an operator here; {here}", self.next()),
            ));
        };
        Some(SyntaxError::syntax(self.at, why))
    }

    /// Returns a message with the expected and the actual text.
    fn plain(&self) -> SyntaxError {
        let wanted = if self.before.ends_with('.') {
            "a name is expected after the dot".to_owned()
        } else if !self.after_value() {
            "a value is expected here".to_owned()
        } else {
            match self.closes() {
                Some(close) if self.rest.is_empty() => format!("`{close}` is missing"),
                Some(close) => format!("an operator or `{close}` is expected here"),
                None => "an operator is expected here".to_owned(),
            }
        };
        let given = match self.next() {
            "" => "the expression ends".to_owned(),
            next => format!("this is `{next}`"),
        };
        SyntaxError::syntax(self.at, format!("{wanted}, and {given}"))
    }

    /// Returns whether the place is in the head of `for (let i = 0; …)`.
    fn is_counting_loop(&self) -> bool {
        let head =
            self.before.rfind('(').map(|at| (self.before[..at].trim_end(), &self.before[at + 1..]));
        head.is_some_and(|(before, head)| {
            let declares =
                ["let ", "const ", "var "].iter().any(|word| head.trim_start().starts_with(word));
            before.ends_with("for") && declares && self.rest.starts_with(['=', ';'])
        })
    }

    /// Returns whether the text before the place ends with a value.
    fn after_value(&self) -> bool {
        let last = self.before.chars().last();
        last.is_some_and(|last| last.is_alphanumeric() || "_)]}'\"".contains(last))
    }

    /// Returns the place of a backtick that is the last, and closes nothing.
    fn open_backtick(&self) -> Option<usize> {
        let is_odd = self.before.matches('`').count() % 2 == 1;
        (is_odd && !self.rest.contains('`')).then(|| self.before.rfind('`'))?
    }

    /// Returns the word or sign at the place.
    fn next(&self) -> &str {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let word = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        &self.rest[..word.max(first)]
    }

    /// Returns the path before the place, for an example.
    fn name(&self) -> &str {
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let start = self
            .before
            .rfind(|c| !part(c))
            .map_or(0, |at| at + self.before[at..].chars().next().map_or(1, char::len_utf8));
        let name = &self.before[start..];
        if name.is_empty() || name.starts_with('.') { "name" } else { name }
    }

    /// Returns whether the text is a shell's test such as `-f path`.
    fn is_flag(&self) -> bool {
        let bytes = self.text.as_bytes();
        matches!(bytes, [b'-', b'a'..=b'z', b' ', ..]) && self.after_value()
    }

    /// Returns the sign that closes the innermost open bracket or `?`.
    fn closes(&self) -> Option<char> {
        let mut open = Vec::new();
        let mut quote = None;
        let mut chars = self.before.chars().peekable();
        while let Some(char) = chars.next() {
            match (quote, char) {
                (Some(_), '\\') => _ = chars.next(),
                (Some(close), char) if char == close => quote = None,
                (None, '\'' | '"') => quote = Some(char),
                (None, '(') => open.push(')'),
                (None, '[') => open.push(']'),
                (None, '{') => open.push('}'),
                (None, '?') if matches!(chars.peek(), Some('?' | '.')) => _ = chars.next(),
                (None, '?') => open.push(':'),
                (None, char) if open.last() == Some(&char) => _ = open.pop(),
                _ => {}
            }
        }
        open.pop()
    }
}

/// Returns what to write for a shell's `${name:-word}` and its like.
fn in_place_of(sign: char, name: &str, word: &str) -> String {
    let word = word.split('}').next().unwrap_or_default().trim();
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let word =
        if is_number { word.to_owned() } else { format!("'{}'", word.trim_matches(['"', '\''])) };
    match sign {
        '+' => format!("{name} ? {word} : ''"),
        _ => format!("{name} ?? {word}"),
    }
}
