//! "Did you mean": the closest of the names that would have been right.

/// Returns the candidate most like `name`, if any is similar. Ties go to the closest in length, then to the first
/// by name, so that the order of the candidates does not matter.
#[must_use]
pub fn closest<'names>(
    name: &str,
    candidates: impl IntoIterator<Item = &'names str>,
) -> Option<&'names str> {
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(a, one), (b, other)| {
            let off = |name: &str| wanted.len().abs_diff(name.len());
            a.total_cmp(b).then(off(other).cmp(&off(one))).then(other.cmp(one))
        })
        .map(|(_, candidate)| candidate)
}

/// Returns whether `name` is a likely misspelling of `meant`: a letter or two missing, extra or out of place, or
/// the beginning of a name of several words.
#[must_use]
pub fn is_slip(name: &str, meant: &str) -> bool {
    let longer = name.len().max(meant.len());
    let begins = meant.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    begins || (longer > 2 && strsim::osa_distance(name, meant) <= (longer / 3).min(3))
}

/// Returns the candidate of which `name` is the likeliest misspelling, if it is one of any. Ties go to the first.
#[must_use]
pub fn closest_slip<'names>(
    name: &str,
    candidates: impl IntoIterator<Item = &'names str>,
) -> Option<&'names str> {
    let slips = candidates.into_iter().filter(|candidate| is_slip(name, candidate));
    slips.min_by_key(|candidate| strsim::osa_distance(name, candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_finds_misspelling_and_ignores_unrelated_name() {
        let names = ["REVIEW.md", "NEXT.md", "START.md"];
        assert_eq!(closest("REVEIW.md", names), Some("REVIEW.md"));
        assert_eq!(closest("next", names), Some("NEXT.md"));
        assert_eq!(closest("zzz", names), None);
        for agents in [["main", "main.1", "main.2"], ["main.2", "main.1", "main"]] {
            assert_eq!(closest("main.7", agents), Some("main.1"));
        }
    }

    #[test]
    fn misspelling_is_distinguished_from_similar_word() {
        for (name, meant) in [
            ("workflw", "workflow"),
            ("actoin", "action"),
            ("stat", "state"),
            ("rolez", "roles"),
            ("agnt", "agent"),
            ("send", "send-prompt"),
            ("orr", "or"),
        ] {
            assert!(is_slip(name, meant), "{name}");
        }
        assert_eq!(closest_slip("resul", ["reset", "result"]), Some("result"));
        for (name, other) in [("notify", "not"), ("as", "at"), ("sleep", "signal"), ("", "a")] {
            assert!(!is_slip(name, other), "{name}");
        }
    }
}
