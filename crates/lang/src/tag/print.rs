//! The texts that an agent shows to people while its workflow goes on: `<print>text</print>`.
//!
//! They are no transitions, and stand beside the one tag of a reply. Their number and length are bounded, because they
//! are kept in the journal.

use memchr::memmem;

/// The name of the tag.
pub const PRINT: &str = "print";

/// The most texts of one reply; later ones are left out.
pub const MAX_PRINTS: usize = 20;

/// The longest text, in bytes; the rest is left out.
pub const MAX_PRINT_BYTES: usize = 4096;

/// A complete tag.
pub(super) struct PrintTag<'text> {
    /// The text between the open tag and its close.
    pub(super) text: &'text str,
    /// The end of the close tag.
    pub(super) end: usize,
}

/// Returns the tag that opens at `start` with this name, if it is one, has no attributes and is closed.
pub(super) fn at<'text>(text: &'text str, start: usize, name: &str) -> Option<PrintTag<'text>> {
    const CLOSE: &str = "</print>";
    let body = start + 1 + PRINT.len() + 1;
    if name != PRINT || text.as_bytes().get(body - 1) != Some(&b'>') {
        return None;
    }
    let length = memmem::find(&text.as_bytes()[body..], CLOSE.as_bytes())?;
    Some(PrintTag { text: &text[body..body + length], end: body + length + CLOSE.len() })
}

/// Returns the texts as people are shown them.
pub(super) fn shown(texts: &[&str]) -> Vec<String> {
    let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
    let cut = |text: &str| {
        if text.len() <= MAX_PRINT_BYTES {
            return text.to_owned();
        }
        format!("{}…", &text[..text.floor_char_boundary(MAX_PRINT_BYTES)])
    };
    texts.take(MAX_PRINTS).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::{find, written};

    #[test]
    fn print_stands_beside_the_one_tag_and_is_no_transition() {
        let found = find("<print> half done </print>\n<goto>A.md</goto><print></print>");
        assert_eq!((found.tags.len(), found.shown), (1, vec!["half done".to_owned()]));
        let found =
            find("<print>I will <goto>A.md</goto></print><result>x <print>y</print></result>");
        assert_eq!((found.tags.len(), found.shown.len()), (1, 1));
        assert_eq!(written("<print><goto>A.md</goto></print>").len(), 0);
    }

    #[test]
    fn open_print_is_text_and_long_ones_are_cut() {
        let found = find("<print>never closed <goto>A.md</goto>");
        assert_eq!((found.tags.len(), found.shown.len()), (1, 0));
        let many = "<print>x</print>".repeat(MAX_PRINTS + 5);
        assert_eq!(find(&many).shown.len(), MAX_PRINTS);
        let long = format!("<print>{}</print>", "é".repeat(MAX_PRINT_BYTES));
        let found = find(&long).shown;
        assert!(found[0].len() <= MAX_PRINT_BYTES + 4 && found[0].ends_with('…'));
    }
}
