//! The text of a script, as far as the tags in it can be told without running it.
//!
//! Such an analysis is not certain: a script may print other tags, and may never print those that its text has.

use std::borrow::Cow;

use crate::language::position::SourcePlace;

/// The characters that make a name one that the script computes.
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

/// Returns whether a shell takes the quotes of the tag at a place: the tag stands within double quotes, and a quote
/// in its open tag, which is not escaped, ends them.
pub(super) fn loses_quotes(text: &str, place: SourcePlace) -> bool {
    let index = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let (mut quote, mut is_escaped) = (None, false);
    for (column, char) in (1..).zip(text.lines().nth(index).unwrap_or_default().chars()) {
        let is_in_tag = column >= place.column;
        if is_in_tag && quote != Some('"') {
            return false;
        }
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match (quote, char) {
            (_, '>') if is_in_tag => return false,
            (Some('"'), '"') if is_in_tag => return true,
            (Some(open), _) if open == char => quote = None,
            (None, '"' | '\'') => quote = Some(char),
            (None | Some('"'), '\\') => is_escaped = true,
            _ => {}
        }
    }
    false
}

/// Returns whether the script computes a name when it runs.
pub(super) fn is_computed(name: &str) -> bool {
    name.contains(COMPUTED)
}

#[cfg(test)]
mod tests {
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
    fn shell_takes_the_quotes_of_a_tag_that_it_does_not_find_escaped() {
        let table = [
            ("echo \"<call return=\"B.md\">A.md</call>\"", true),
            ("echo \"it's <call return=\"B.md\">A.md</call>\"", true),
            ("echo \"<call return=\\\"B.md\\\">A.md</call>\"", false),
            ("echo '<call return=\"B.md\">A.md</call>'", false),
            ("echo \"x\" '<call return=\"B.md\">A.md</call>'", false),
            ("echo \"<goto>B.md</goto>\"", false),
            ("<call return=\"B.md\">A.md</call>", false),
        ];
        for (line, expected) in table {
            let column = line.find('<').map_or(0, |at| at as u64 + 1);
            assert_eq!(loses_quotes(line, SourcePlace { line: 1, column }), expected, "{line}");
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
