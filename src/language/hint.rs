//! "Did you mean": the closest of the names that would have been right.

/// The candidate most like `name`, if any is like it at all.
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
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_slips_and_nothing_else() {
        let names = ["REVIEW.md", "NEXT.md", "START.md"];
        assert_eq!(closest("REVEIW.md", names), Some("REVIEW.md"));
        assert_eq!(closest("next", names), Some("NEXT.md"));
        assert_eq!(closest("zzz", names), None);
    }
}
