//! A place in a file: the line and the column, as people count them.

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePlace {
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
}

impl SourcePlace {
    /// The beginning of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// Returns the place of a byte of a text whose first line is line `first_line` of the file.
    pub fn in_text(text: &str, offset: usize, first_line: u64) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line = before.matches('\n').count() as u64 + first_line;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
        Self { line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_one() {
        let place = |offset| SourcePlace::in_text("é {{a}}\n\n {{b}}", offset, 4);
        assert_eq!(place(0), SourcePlace { line: 4, column: 1 });
        assert_eq!(place(3), SourcePlace { line: 4, column: 3 });
        assert_eq!(place(11), SourcePlace { line: 6, column: 2 });
        assert_eq!(place(1), SourcePlace { line: 4, column: 1 }, "within a character is at it");
    }
}
