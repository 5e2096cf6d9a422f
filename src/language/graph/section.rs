//! A section of a document: from its heading to the next one of the same or a higher level.

/// A heading of a document.
struct DocumentHeading<'text> {
    start: usize,
    level: usize,
    title: &'text str,
}

/// Returns the section under a heading, with the heading. An exact match of the title is preferred to one
/// in another case. Headings inside code fences do not count.
pub fn section<'text>(text: &'text str, title: &str) -> Option<&'text str> {
    let headings = headings(text);
    let wanted = title.trim().trim_start_matches('#').trim();
    let exact = headings.iter().position(|heading| heading.title == wanted);
    let alike = || {
        let wanted = wanted.to_lowercase();
        headings.iter().position(|heading| heading.title.to_lowercase() == wanted)
    };
    let found = exact.or_else(alike)?;
    let DocumentHeading { start, level, .. } = headings[found];
    let next = headings[found + 1..].iter().find(|heading| heading.level <= level);
    let section = &text[start..next.map_or(text.len(), |heading| heading.start)];
    Some(section.trim_end())
}

/// Returns the titles of a document's sections.
pub(super) fn titles(text: &str) -> Vec<&str> {
    headings(text).into_iter().map(|heading| heading.title).collect()
}

fn headings(text: &str) -> Vec<DocumentHeading<'_>> {
    let mut found = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let inner = line.trim_start_matches(' ');
        let content = if line.len() - inner.len() > 3 { "" } else { inner.trim_end() };
        match (fence, fence_of(content)) {
            (None, Some((mark, length, _))) => fence = Some((mark, length)),
            (Some(open), Some((mark, length, true))) if mark == open.0 && length >= open.1 => {
                fence = None;
            }
            (None, None) => {
                let heading = heading(content);
                found.extend(heading.map(|(level, title)| DocumentHeading { start, level, title }));
            }
            _ => {}
        }
        start += line.len();
    }
    found
}

/// Returns the mark of a code fence, its length, and whether nothing follows.
fn fence_of(line: &str) -> Option<(char, usize, bool)> {
    let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length, rest.is_empty()))
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let title = rest.trim();
    let open = title.trim_end_matches('#');
    let closed = open.is_empty() || open.ends_with([' ', '\t']);
    Some((level, if closed { open.trim_end() } else { title }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Git\n\nIntro\n\n## Clone Repository ##\n\nClone.\n\n```sh\n# Clone\n## Fetch\n```\n\n### Depth\n\nOne.\n\n## Fetch\n\nFetch.\n~~~\n```\n## No\n~~~~\n   ## C#\nSharp.\n    ## Code\n#hash\n";

    #[test]
    fn section_ends_at_next_heading_of_same_or_higher_level() {
        let clone = section(TEXT, "Clone Repository").expect("there");
        assert!(clone.starts_with("## Clone Repository ##\n\nClone."), "{clone}");
        assert!(clone.ends_with("### Depth\n\nOne."), "{clone}");
        assert_eq!(section(TEXT, "Depth"), Some("### Depth\n\nOne."));
        assert_eq!(section(TEXT, "## c#"), Some("   ## C#\nSharp.\n    ## Code\n#hash"));
        assert_eq!(section(TEXT, "Git"), Some(TEXT.trim_end()));
    }

    #[test]
    fn heading_in_code_fence_is_ignored() {
        assert_eq!(titles(TEXT), ["Git", "Clone Repository", "Depth", "Fetch", "C#"]);
        assert_eq!(section(TEXT, "No"), None);
        assert_eq!(section("", "x"), None);
    }
}
