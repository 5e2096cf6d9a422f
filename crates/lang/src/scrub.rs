//! Rules that replace secrets in texts before they are kept for others to read.
//!
//! A rule replaces what it finds by `[scrubbed:RULE]`. The usual rules know the forms of common credentials; a person
//! adds patterns and values. No rule finds every secret.

use std::collections::BTreeMap;

use regex::{Captures, Regex};

/// The names of the usual rules with their patterns. The groups `before` and `after` are kept.
const USUAL: [(&str, &str); 11] = [
    (
        "private-key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY( BLOCK)?-----|\z)",
    ),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{8,}"),
    ("openai-key", r"\bsk-(?:proj-)?[A-Za-z0-9_-]{20,}"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,})"),
    ("aws-key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("slack-token", r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    (
        "service-token",
        r"\b(?:glpat-[A-Za-z0-9_-]{20,}|AIza[A-Za-z0-9_-]{35}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|(?:npm|hf)_[A-Za-z0-9]{20,})",
    ),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    (
        "bearer",
        r"(?i)(?P<before>\bbearer |\bauthorization\\*[\x22']?\s*[:=]\s*\\*[\x22']?basic\s+)[a-z0-9._~+/-]{8,}=*",
    ),
    ("url-password", r"(?i)(?P<before>\b[a-z][a-z0-9+.-]*://)[^/\s:@<>]*:[^/\s:@<>]+(?P<after>@)"),
    (
        "password",
        r"(?i)(?P<before>(?:(?:\b|_)(?:password|passwd|passphrase|pwd|secret|(?:api|access|private)[_-]?key|(?:access|auth|api|client)[_-]?(?:token|secret))|_token)\\*[\x22']?\s*[=:]\s*\\*[\x22']?)[^\s\x22'<>{}()\[\]`,;&]{6,}",
    ),
];

/// The shortest value that is replaced wherever it occurs, in bytes.
const MIN_VALUE_BYTES: usize = 4;

/// A rule.
#[derive(Debug, Clone)]
struct ScrubRule {
    name: String,
    pattern: Regex,
}

/// The rules, in the order in which they are applied.
#[derive(Debug, Clone)]
pub struct ScrubRules(Vec<ScrubRule>);

/// The number of times that each rule has hit. A rule that has not is listed, too.
pub type ScrubCounts = BTreeMap<String, u64>;

impl ScrubRules {
    /// Returns no rules, for texts that stay with their owner.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Returns the usual rules.
    pub fn usual() -> Self {
        let rule = |&(name, pattern): &(&str, &str)| {
            // A test compiles each of them.
            let pattern = Regex::new(pattern).ok()?;
            Some(ScrubRule { name: name.to_owned(), pattern })
        };
        Self(USUAL.iter().filter_map(rule).collect())
    }

    /// Adds a pattern of a person's, which is applied before the usual rules.
    ///
    /// # Errors
    /// The reason why it is none.
    pub fn add_pattern(&mut self, name: &str, pattern: &str) -> Result<(), String> {
        let pattern = compiled(pattern)?;
        self.add(name, pattern);
        Ok(())
    }

    /// Adds a value of a person's, which is applied before the usual rules.
    ///
    /// # Errors
    /// The reason why it cannot be replaced.
    pub fn add_value(&mut self, name: &str, value: &str) -> Result<(), String> {
        if value.len() < MIN_VALUE_BYTES {
            return Err(format!(
                "the value has less than {MIN_VALUE_BYTES} bytes, and would be found in ordinary words"
            ));
        }
        self.add(name, compiled(&regex::escape(value))?);
        Ok(())
    }

    fn add(&mut self, name: &str, pattern: Regex) {
        let usual = self.0.len().min(USUAL.len());
        let place = self.0.len() - usual;
        let rule = ScrubRule { name: name.to_owned(), pattern };
        self.0.insert(place, rule);
    }

    /// Returns the counts before anything was scrubbed.
    pub fn counts(&self) -> ScrubCounts {
        self.0.iter().map(|rule| (rule.name.clone(), 0)).collect()
    }

    /// Returns a text without the secrets that are found, and counts them.
    pub fn scrub(&self, text: &str, counts: &mut ScrubCounts) -> String {
        let mut text = text.to_owned();
        for rule in &self.0 {
            if !rule.pattern.is_match(&text) {
                continue;
            }
            let mut hits = 0;
            let scrubbed = rule.pattern.replace_all(&text, |found: &Captures<'_>| {
                hits += 1;
                let kept = |group| found.name(group).map_or("", |kept| kept.as_str());
                format!("{}[scrubbed:{}]{}", kept("before"), rule.name, kept("after"))
            });
            text = scrubbed.into_owned();
            *counts.entry(rule.name.clone()).or_default() += hits;
        }
        text
    }
}

/// Returns the pattern of a person's.
///
/// # Errors
/// The reason why it is none.
pub fn compiled(pattern: &str) -> Result<Regex, String> {
    let compiled = Regex::new(pattern).map_err(|error| error.to_string())?;
    if compiled.is_match("") {
        return Err("it matches the empty text, and so everywhere".to_owned());
    }
    Ok(compiled)
}

/// Returns whether scrubbing can have produced `scrubbed` from `text`. Anything may stand where text was replaced.
pub fn is_scrubbed_form_of(scrubbed: &str, text: &str) -> bool {
    let mut pieces = pieces(scrubbed).into_iter();
    let Some(mut rest) = text.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(found) = rest.find(piece) else { return false };
        rest = &rest[found + piece.len()..];
    }
    rest.ends_with(last)
}

/// Returns the pieces of a text between what was replaced in it.
fn pieces(scrubbed: &str) -> Vec<&str> {
    const MARK: &str = "[scrubbed:";
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(mark) = scrubbed[at..].find(MARK) {
        let mark = at + mark;
        let name = &scrubbed[mark + MARK.len()..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
        match name.find(|c| !is_name(c)) {
            Some(length) if length > 0 && name[length..].starts_with(']') => {
                pieces.push(&scrubbed[from..mark]);
                at = mark + MARK.len() + length + 1;
                from = at;
            }
            _ => at = mark + MARK.len(),
        }
    }
    pieces.push(&scrubbed[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(text: &str) -> String {
        let rules = ScrubRules::usual();
        rules.scrub(text, &mut rules.counts())
    }

    #[test]
    fn every_usual_rule_compiles_and_finds_its_form() {
        assert_eq!(ScrubRules::usual().0.len(), USUAL.len());
        let (key, hub) = ("a1B2".repeat(6), "0123456789abcdefABCD");
        let cases = [
            (format!("x sk-ant-api03-{key} y"), "x [scrubbed:anthropic-key] y"),
            (format!("sk-proj-{key}"), "[scrubbed:openai-key]"),
            (format!("ghp_{hub}, gho_{hub}"), "[scrubbed:github-token], [scrubbed:github-token]"),
            ("AKIAABCDEFGHIJKLMNOP".to_owned(), "[scrubbed:aws-key]"),
            ("xoxb-1234567890-abc".to_owned(), "[scrubbed:slack-token]"),
            (
                "Authorization: Bearer abc.def-123==".to_owned(),
                "Authorization: Bearer [scrubbed:bearer]",
            ),
            (
                "postgres://me:s3cret@host/db".to_owned(),
                "postgres://[scrubbed:url-password]@host/db",
            ),
            ("password=hunter22 x".to_owned(), "password=[scrubbed:password] x"),
            ("DB_PASSWORD=a:b=c12 x".to_owned(), "DB_PASSWORD=[scrubbed:password] x"),
            (
                "aws_secret_access_key: aB3/x+9".to_owned(),
                "aws_secret_access_key: [scrubbed:password]",
            ),
            (r#"{\"api_key\": \"abcdef1"#.to_owned(), r#"{\"api_key\": \"[scrubbed:password]"#),
            (
                "Authorization: Basic dXNlcjpwYXNz".to_owned(),
                "Authorization: Basic [scrubbed:bearer]",
            ),
            (format!("glpat-{hub} npm_{hub}"), "[scrubbed:service-token] [scrubbed:service-token]"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl".to_owned(), "[scrubbed:jwt]"),
            ("-----BEGIN PRIVATE KEY-----\nMII".to_owned(), "[scrubbed:private-key]"),
            (r#"{"api_key": "abcdef1"}"#.to_owned(), r#"{"api_key": "[scrubbed:password]"}"#),
            (
                "<result>password: swordfish</result>".to_owned(),
                "<result>password: [scrubbed:password]</result>",
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----.".to_owned(),
                "[scrubbed:private-key].",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(scrubbed(&text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "the secret of good prose",
            "password: {{password}}",
            "sk-short",
            "<goto>NEXT.md</goto>",
            "the bearer of news",
            "https://example.com/a:b@c",
            "a secret: <b>x</b>",
        ] {
            assert_eq!(scrubbed(text), text);
        }
    }

    #[test]
    fn given_rules_come_first_and_are_counted() {
        let mut rules = ScrubRules::usual();
        rules.add_pattern("scrub-1", "acme-[0-9]+").expect("a pattern");
        rules.add_value("env:TOKEN", "a.b+c").expect("a value");
        assert!(rules.add_value("env:X", "abc").is_err());
        assert!(rules.add_pattern("scrub-2", "x*").expect_err("empty").contains("empty text"));
        assert!(rules.add_pattern("scrub-2", "(").is_err());
        let mut counts = rules.counts();
        let text = rules.scrub("acme-1 acme-22 a.b+c aXb+c password=acme-333", &mut counts);
        assert_eq!(
            text,
            "[scrubbed:scrub-1] [scrubbed:scrub-1] [scrubbed:env:TOKEN] aXb+c password=[scrubbed:scrub-1]"
        );
        assert_eq!((counts["scrub-1"], counts["env:TOKEN"], counts["password"]), (3, 1, 0));
    }

    #[test]
    fn scrubbed_text_fits_the_text_it_was_made_of() {
        let scrubbed = "use [scrubbed:scrub-1] and [scrubbed:password], [scrubbed:] now";
        assert!(is_scrubbed_form_of(scrubbed, "use K and p and q, [scrubbed:] now"));
        assert!(!is_scrubbed_form_of(scrubbed, "use K and p, [scrubbed:] later"));
        assert!(!is_scrubbed_form_of(scrubbed, "Use K and p, [scrubbed:] now"));
        assert!(is_scrubbed_form_of("plain", "plain") && !is_scrubbed_form_of("plain", "plain."));
        assert!(
            is_scrubbed_form_of("[scrubbed:a]", "") && is_scrubbed_form_of("a[scrubbed:b]", "ab")
        );
    }
}
