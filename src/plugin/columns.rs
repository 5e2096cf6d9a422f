//! How the columns of a table share the width of a terminal. Pure.

use console::{Alignment, measure_text_width, pad_str};

/// The blanks between two columns.
const GAP: usize = 2;

/// The least width of a column that is never cut.
pub const UNCUT: usize = usize::MAX;

/// Returns the widths of columns, 0 for those that are left out: the natural ones if they fit. Otherwise columns are
/// dropped, in the order of `dropped`, until each of the others has its `least` width, and the wide ones share the rest.
pub fn widths<const N: usize>(
    available: usize,
    mut natural: [usize; N],
    least: [usize; N],
    dropped: &[usize],
) -> [usize; N] {
    let at_most = |natural: [usize; N], share: usize| -> [usize; N] {
        std::array::from_fn(|column| natural[column].min(least[column].max(share)))
    };
    for &column in dropped {
        if total(at_most(natural, 0)) > available {
            natural[column] = 0;
        }
    }
    let mut shares = (0..=available).rev().map(|share| at_most(natural, share));
    shares.find(|widths| total(*widths) <= available).unwrap_or_else(|| at_most(natural, 0))
}

fn total<const N: usize>(widths: [usize; N]) -> usize {
    let shown = widths.iter().filter(|&&width| width > 0);
    shown.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Returns the width of the widest text.
pub fn widest<'text>(texts: impl Iterator<Item = &'text str>) -> usize {
    texts.map(measure_text_width).max().unwrap_or(0)
}

/// Returns texts in columns of these widths, those at `right` aligned to the right.
pub fn line(texts: &[&str], widths: &[usize], right: &[usize]) -> String {
    let cells = texts.iter().zip(widths).enumerate().filter(|(_, (_, width))| **width > 0);
    let cells = cells.map(|(column, (text, width))| {
        let side = if right.contains(&column) { Alignment::Right } else { Alignment::Left };
        pad_str(text, *width, side, Some("…"))
    });
    cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: [usize; 4] = [10, 8, 6, 30];

    #[test]
    fn wide_columns_share_what_narrow_ones_leave() {
        let shared = |available, natural| widths(available, natural, LEAST, &[2, 1]);
        let table = [
            (200, [40, 50, 24, 80], [40, 50, 24, 80]),
            (199, [40, 50, 24, 80], [40, 50, 24, 79]),
            (160, [40, 50, 24, 500], [40, 45, 24, 45]),
            (80, [8, 7, 0, 90], [8, 7, 0, 61]),
            (80, [40, 50, 24, 90], [14, 14, 14, 30]),
            (60, [40, 50, 24, 90], [10, 8, 6, 30]),
            (59, [40, 50, 24, 90], [12, 12, 0, 30]),
            (50, [40, 50, 24, 90], [18, 0, 0, 30]),
            (20, [40, 50, 24, 90], [10, 0, 0, 30]),
            (20, [4, 3, 2, 5], [4, 3, 2, 5]),
            (0, [4, 0, 0, 5], [4, 0, 0, 5]),
        ];
        for (available, natural, expected) in table {
            assert_eq!(shared(available, natural), expected, "{available}: {natural:?}");
        }
    }

    #[test]
    fn nothing_is_cut_that_fits_and_nothing_overflows() {
        for available in 0..250 {
            for wide in [1, 5, 12, 30, 77, 200] {
                let natural = [wide, wide / 2, 24, 2 * wide];
                let widths = widths(available, natural, LEAST, &[2, 1]);
                if total(natural) <= available {
                    assert_eq!(widths, natural);
                } else if available >= LEAST[0] + GAP + LEAST[3] {
                    assert!(total(widths) <= available, "{available}: {natural:?} {widths:?}");
                    assert!(widths[3] >= natural[3].min(LEAST[3]), "{available}: {widths:?}");
                }
            }
        }
    }
}
