//! The files that a prompt's text mentions: names with the ending of a state, outside of its tags.

use std::ops::Range;

use crate::domain::id::StateName;

/// Returns the names in a text that a state could have, each once.
pub(super) fn names(text: &str, tags: &[Range<usize>]) -> Vec<StateName> {
    let mut names = Vec::new();
    for (start, word) in words(text) {
        let in_tag = tags.iter().any(|tag| tag.contains(&start));
        let is_state = StateName::is_state_by_ending;
        let name = StateName::parse(word).ok().filter(|name| !in_tag && is_state(name));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

/// Returns the longest pieces of file name characters, without the dots of a sentence around them.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(part)?;
        let length = text[start..].find(|c| !part(c)).unwrap_or(text.len() - start);
        rest = start + length;
        Some((start, text[start..rest].trim_matches('.')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_names_are_found_in_prose_but_not_in_tags() {
        let text = "Go to A.md. Then `B-2.md`, a/C.md, (graph.yaml) or x.txt; <goto>D.md</goto> A.md raymond.yaml";
        let tag = text.find("<goto>").expect("a tag");
        let found = names(text, std::slice::from_ref(&(tag..tag + 17)));
        let found: Vec<&str> = found.iter().map(StateName::as_str).collect();
        assert_eq!(found, ["A.md", "B-2.md", "C.md", "graph.yaml"]);
    }
}
