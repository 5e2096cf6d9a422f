//! The tag finder on prose and on the worst that a reply can be.

use std::hint::black_box;
use std::time::Instant;

use raymond::language::tag::find;

use crate::Fallible;
use crate::place::Place;
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short, whole};

/// A quadratic finder shows on a part of the text already, and the whole is left out.
const PART: usize = 16;
const TOO_SLOW: f64 = 0.5;

const PROSE: &str = "The parser now keeps the position of each token, so an error can name its \
    line; I ran the tests (214 passed) and looked at `src/lexer.rs` again, where x < y and a <b> \
    tag in the docs are read as prose.\n\n";

const TEXTS: [(&str, &str); 12] = [
    ("prose", PROSE),
    ("<call a=\"", "<call a=\""),
    ("<goto>, never closed", "<goto>"),
    ("<result>, never closed", "<result>"),
    ("</result", "</result"),
    ("<result></results", "<result></results"),
    ("<fork next=\"", "<fork next=\""),
    ("<", "<"),
    ("<goto>A.md</goto>", "<goto>A.md</goto>"),
    ("<result></result> ", "<result></result> "),
    ("a='b' in one tag", "a='b' "),
    ("<call a='&'>A</call>", "<call a='&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&'>A</call>"),
];

#[expect(clippy::unnecessary_wraps, reason = "other figures can fail as a whole")]
pub(crate) fn figure(_: &Place, scale: &Scale) -> Fallible<Vec<Table>> {
    let title = format!("The tag finder on {} MB of …", short(as_float(scale.text) / 1e6));
    let mut table = Table::new(&title, ["", "seconds, median (least–greatest)", "MB/s"]);
    for (name, piece) in TEXTS {
        let text = text(name, piece, scale.text);
        let part = seconds(&text[..text.floor_char_boundary(scale.text / PART)]);
        if part > TOO_SLOW {
            table.row([
                name.to_owned(),
                format!("{part:.1} for a {PART}th"),
                "too slow".to_owned(),
            ]);
            continue;
        }
        let taken = Summary::of((0..scale.repeats).map(|_| seconds(&text)));
        let speed = as_float(text.len()) / 1e6 / taken.median();
        table.row([name.to_owned(), taken.shown(), whole(speed)]);
    }
    Ok(vec![table])
}

fn text(name: &str, piece: &str, length: usize) -> String {
    let opened = if name.ends_with("in one tag") { "<call " } else { "" };
    let mut text = opened.to_owned() + &piece.repeat(length / piece.len());
    if name == "prose" {
        text.push_str("<goto>NEXT.md</goto>");
    }
    text
}

fn seconds(text: &str) -> f64 {
    let started = Instant::now();
    black_box(find(black_box(text)));
    started.elapsed().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "sizes here are far below 2^52")]
fn as_float(number: usize) -> f64 {
    number as f64
}
