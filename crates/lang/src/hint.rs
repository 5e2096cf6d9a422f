//! "Did you mean": the closest of the names that would have been right.
//!
//! Keys that people write by mistake have their own hints. The first row that fits wins. Its second column tells the
//! place, by a key that is known there.

/// Returns the candidate most like `name`, if any is similar. Ties go to the closest in length, then to the first
/// by name, so that the order of the candidates does not matter.
pub fn closest<'names>(
    name: &str,
    candidates: impl IntoIterator<Item = &'names str>,
) -> Option<&'names str> {
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let likeness = strsim::jaro_winkler(&wanted, &candidate.to_lowercase());
            (if looks_same(name, candidate) { 1.0 } else { likeness }, candidate)
        })
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(a, this), (b, other)| {
            let off = |name: &str| wanted.len().abs_diff(name.len());
            a.total_cmp(b).then(off(other).cmp(&off(this))).then(other.cmp(this))
        })
        .map(|(_, candidate)| candidate)
}

/// Returns the question after a file that does not exist, with the reason why a file that looks the same is another
/// one.
pub fn did_you_mean(wanted: &str, similar: &str) -> String {
    let [this, other] = [wanted, similar].map(|path| path.rsplit('/').next().unwrap_or_default());
    if wanted == similar {
        return "it is a link that leads nowhere".to_owned();
    }
    let reason = if looks_same(this, other) { SAME_LOOK } else { "" };
    format!("did you mean {similar}?{reason}")
}

/// Keys that people write instead of others: the key, another key that is known at the same place, and the remedy.
const FOREIGN_KEYS: [(&str, &str, &str); 10] = [
    ("start", "entry", "did you mean `entry`?"),
    ("tests", "cases", "did you mean `cases`?"),
    ("states steps", "path", "did you mean `path`?"),
    ("prompt", "allowed_transitions", "write the prompt below the second `---`"),
    ("vars variables", "inputs", "a run gets values with --var, and `inputs` declares them"),
    ("result goto ask fork call", "reply", "write the tag as in a reply: `- <goto>FILE.md</goto>`"),
    ("timeout timeout-minutes", "supervision", "write `supervision: { timeout: 10m }`"),
    ("agent", CASE_SETTING, "cases always run with scripted replies; leave it out"),
    ("input", CASE_SETTING, "it belongs in the case, beside `settings`"),
    ("agent cwd id input max_agents var", "on_budget", "it is an option of `raymond run`"),
];

/// A key that only the settings of a case have.
const CASE_SETTING: &str = "max_agents";

/// Returns what to write in place of a key that is not known.
pub fn for_unknown_key(key: &str, known: &[&str]) -> String {
    let is_row = |row: &&(&str, &str, &str)| {
        known.contains(&row.1) && row.0.split(' ').any(|written| written == key)
    };
    let foreign = FOREIGN_KEYS.iter().find(is_row);
    let meant =
        || closest(key, known.iter().copied()).map(|name| format!("did you mean `{name}`?"));
    let text =
        if known.contains(&"reply") { "quote the line if it is a text with `: `; " } else { "" };
    let all = || format!("{text}known here: {}", known.join(", "));
    foreign.map(|row| row.2.to_owned()).or_else(meant).unwrap_or_else(all)
}

/// Returns what to write in place of a name that is not known: the closest one, or else all of them after `verb`.
pub fn instead_of<'names>(
    name: &str,
    known: impl Iterator<Item = &'names str> + Clone,
    verb: &str,
) -> String {
    match closest(name, known.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{verb} {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// The reason why a file that looks the same is another one.
const SAME_LOOK: &str = " It looks the same, but one of the two names has composed characters and the other has letters with separate accents (Unicode NFC and NFD): rename the file, or copy its name";

/// Returns whether two different names look the same, as far as is known without tables of Unicode: where one has a
/// character, the other has a letter with marks.
fn looks_same(this: &str, other: &str) -> bool {
    let is_mark = |c: char| matches!(c, '\u{300}'..='\u{36f}' | '\u{1160}'..='\u{11ff}' | '\u{3099}' | '\u{309a}');
    let shape = |name: &str| {
        name.chars().fold(String::new(), |mut shape, c| {
            is_mark(c).then(|| shape.pop());
            shape.push(if c.is_ascii() { c } else { char::REPLACEMENT_CHARACTER });
            shape
        })
    };
    this != other && [this, other].concat().contains(is_mark) && shape(this) == shape(other)
}

/// Returns whether `name` is a likely misspelling of `meant`: a letter or two missing, extra or out of place, or
/// the beginning of a name of several words.
pub fn is_slip(name: &str, meant: &str) -> bool {
    let longer = name.len().max(meant.len());
    let begins = meant.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    begins || (longer > 2 && strsim::osa_distance(name, meant) <= (longer / 3).min(3))
}

/// Returns the candidate of which `name` is the likeliest misspelling, if it is one of any. Ties go to the first.
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
    fn composed_and_decomposed_names_have_hint() {
        for (this, other) in [
            ("PRÜFUNG.md", "PRU\u{308}FUNG.md"),
            ("é.md", "e\u{301}.md"),
            ("ệ.md", "e\u{323}\u{302}.md"),
            ("ệ.md", "ẹ\u{302}.md"),
            ("가각.md", "\u{1100}\u{1161}\u{1100}\u{1161}\u{11a8}.md"),
            ("が.md", "か\u{3099}.md"),
            ("ßÅ.md", "ßA\u{30a}.md"),
        ] {
            for (wanted, there) in [(this, other), (other, this)] {
                assert_eq!(closest(wanted, ["a.md", "PROFUNG.md", there]), Some(there));
                let hint = did_you_mean(&format!("flow/{wanted}"), there);
                assert!(hint.starts_with(&format!("did you mean {there}? It looks")), "{hint}");
            }
        }
        for (this, other) in [("é.md", "è.md"), ("a.md", "b.md")] {
            assert_eq!(did_you_mean(this, other), format!("did you mean {other}?"));
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
