//! Reads the pages of the reference: their sections, their tables, the names that they list.

use std::collections::BTreeSet;

/// Returns the lines of a page outside of examples.
fn lines(page: &str) -> impl Iterator<Item = &str> {
    let mut in_example = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_example ^= is_fence;
        !in_example && !is_fence
    })
}

/// Returns the depth of a heading; 0 for any other line.
fn depth(line: &str) -> usize {
    let depth = line.bytes().take_while(|&byte| byte == b'#').count();
    if line[depth..].starts_with(' ') { depth } else { 0 }
}

/// Returns the part of a page, without examples, from the first heading that `is_meant` to the next one that is not
/// deeper.
fn part(page: &str, is_meant: impl Fn(&str) -> bool) -> Option<String> {
    let mut rest =
        lines(page).skip_while(|line| depth(line) == 0 || !is_meant(line[depth(line)..].trim()));
    let heading = rest.next()?;
    let own = rest.take_while(|line| depth(line) == 0 || depth(line) > depth(heading));
    Some(std::iter::once(heading).chain(own).collect::<Vec<_>>().join("\n"))
}

/// Returns the section with this heading.
#[track_caller]
pub(super) fn section(page: &str, heading: &str) -> String {
    let found = part(page, |own| own == heading);
    found.unwrap_or_else(|| panic!("there is no section {heading}"))
}

/// Returns the section whose heading names this in backticks.
pub(super) fn section_about(page: &str, name: &str) -> Option<String> {
    part(page, |own| spans(own).any(|span| span == name))
}

/// Returns the rows of the tables in a text, each as its cells; heads are rows, too.
pub(super) fn rows(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let mut cells = vec![String::new()];
        let mut is_escaped = false;
        for letter in line.trim().trim_start_matches('|').chars() {
            if letter == '|' && !is_escaped {
                cells.push(String::new());
            } else if let Some(cell) = cells.last_mut() {
                cell.push(letter);
            }
            is_escaped = letter == '\\';
        }
        cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
    };
    lines(text).filter(|line| line.starts_with('|')).map(cells).collect()
}

/// Returns the texts in backticks.
pub(super) fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Returns the words of the texts in backticks: `agents[].id` has two.
pub(super) fn words(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    lines(text).flat_map(spans).flat_map(|span| span.split(move |c| !is_part(c))).collect()
}

/// Returns the names that a text lists: those in backticks in its headings, and in the first cells of its tables.
pub(super) fn listed(text: &str) -> BTreeSet<String> {
    let headings = lines(text).filter(|line| depth(line) > 0).map(str::to_owned);
    let heads = rows(text).into_iter().filter_map(|row| row.into_iter().next());
    let names = |head: String| spans(&head).map(str::to_owned).collect::<Vec<_>>();
    headings.chain(heads).flat_map(names).collect()
}

/// Returns the row whose first cell is just this name.
pub(super) fn row_of(text: &str, name: &str) -> Option<Vec<String>> {
    rows(text).into_iter().find(|row| row[0] == format!("`{name}`"))
}
