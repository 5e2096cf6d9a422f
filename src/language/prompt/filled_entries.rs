//! Fills the placeholders in the entries of a policy, and in those of an evaluator's pattern, when the prompt is asked.
//!
//! The directory of a fork is left as it is: its placeholders are filled for each new agent. An inserted value gives the
//! agent no choice that the entry does not give: a space before it keeps an empty text, and `any`, from meaning any.

use super::frontmatter::{Frontmatter, FrontmatterPlaces};
use crate::domain::transition::{ANY_LIST, Transition, Variables};
use crate::language::output::placeholder;
use crate::language::template;

/// Fills the entries. Returns the placeholders that nothing fills, with their lines.
pub(super) fn fill(
    frontmatter: &mut Frontmatter,
    values: &Variables,
    places: &FrontmatterPlaces,
) -> Vec<(String, u64)> {
    let mut unfilled = Vec::new();
    for (index, entry) in frontmatter.transitions_mut().enumerate() {
        let unknown = fill_entry(entry, values).into_iter();
        // Each entry of an evaluator or an output is one of the policy, too.
        if let Some(place) = places.entries.get(index) {
            unfilled.extend(unknown.map(|name| (name, place.entry.line)));
        }
    }
    unfilled
}

/// Fills an entry. Returns the placeholders that nothing fills.
pub(super) fn fill_entry(entry: &mut Transition, values: &Variables) -> Vec<String> {
    let mut unknown = Vec::new();
    entry.change_texts(|text, is_variable| {
        let filled = template::fill(text, |name| placeholder(values, name));
        unknown.extend(filled.unknown.into_iter().map(|(name, _)| name));
        *text = match filled.text.trim() {
            free @ ("" | ANY_LIST) if !is_variable && text.contains("{{") => format!(" {free}"),
            trimmed if !is_variable => trimmed.to_owned(),
            _ => filled.text,
        };
    });
    unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::transition::TagName;

    fn filled(tag: TagName, attributes: &[(&str, &str)], body: &str) -> (Transition, Vec<String>) {
        let owned = attributes.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let mut entry = Transition::from_parts(tag, owned, body).expect("an entry");
        let values =
            [("a", "x {{b}} \"y\""), ("b", ""), ("list", " any "), ("o", r#"{"n":[1,2]}"#)];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let unknown = fill_entry(&mut entry, &values);
        (entry, unknown)
    }

    #[test]
    fn values_are_filled_once_and_unknown_placeholders_stay() {
        let (entry, unknown) =
            filled(TagName::Goto, &[("v", "-{{ a }}-"), ("w", "{{o.n[1]}}{{c}}")], "B.md");
        let value = |name: &str| entry.variables()[name].as_str();
        assert_eq!((value("v"), value("w")), ("-x {{b}} \"y\"-", "2{{c}}"));
        assert_eq!(unknown, ["c"]);
        assert_eq!(fill_entry(&mut entry.clone(), &Variables::new()), ["b", "c"]);
    }

    #[test]
    fn filled_entry_leaves_no_more_to_the_agent() {
        let (result, _) = filled(TagName::Result, &[], "{{b}}");
        assert!(matches!(&result, Transition::Result { payload, .. } if payload == " "));
        let (free, _) = filled(TagName::Result, &[], "");
        assert!(matches!(&free, Transition::Result { payload, .. } if payload.is_empty()));
        let list = |each: &str| match filled(
            TagName::Fork,
            &[("next", "N.md"), ("each", each), ("cwd", "{{a}}")],
            "W.md",
        )
        .0
        {
            Transition::Fork { each: Some(each), cwd, .. } => {
                (each.list, cwd.expect("a directory").to_string())
            }
            other => panic!("{other}"),
        };
        assert_eq!(list("{{list}}").0, " any");
        assert_eq!(list("any").0, "any");
        assert_eq!(list("{{o.n}}"), ("[1,2]".to_owned(), "{{a}}".to_owned()));
    }
}
