//! The tag finder on prose and on the worst possible replies.
//!
//! The worst are floods: too many tags, texts that only look like tags, and texts that make a finder read the
//! same part again and again.

use std::hint::black_box;
use std::time::Instant;

use raymond::language::tag::find;

use crate::Fallible;
use crate::bench_folder::BenchFolder;
use crate::goals::{GoalBound, Goals};
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, short, whole};

/// The divisor for the first part of a text. A quadratic finder is already slow there, and the whole text is
/// left out.
const PART_DIVISOR: usize = 16;
const TOO_SLOW_SECONDS: f64 = 0.5;

const PROSE: &str = "The parser now keeps the position of each token, so an error can name its \
    line; I ran the tests (214 passed) and looked at `src/lexer.rs` again, where x < y and a <b> \
    tag in the docs are read as prose.\n\n";

/// The names of floods, and the pieces that are repeated.
const FLOODS: [(&str, &str); 27] = [
    ("<", "<"),
    ("< and a blank", "< "),
    ("</", "</"),
    ("<a", "<a"),
    ("<a>", "<a>"),
    ("<goto", "<goto"),
    ("<goto>, never closed", "<goto>"),
    ("<result>, never closed", "<result>"),
    ("all six, never closed", "<goto><reset><call><function><fork><result>"),
    ("</goto>", "</goto>"),
    ("</result", "</result"),
    ("<result></results", "<result></results"),
    ("<goto></goto, and blanks", "<goto></goto                                              "),
    ("<GoTo>A.md</GoTo>", "<GoTo>A.md</GoTo>"),
    ("<goto>A.md</reset>", "<goto>A.md</reset>"),
    ("<goto>A.md</goto>", "<goto>A.md</goto>"),
    ("<result></result>", "<result></result> "),
    ("<call a=\"", "<call a=\""),
    ("<fork next=\"", "<fork next=\""),
    ("<fork =></fork>", "<fork =></fork>"),
    ("<call a></call>", "<call a></call>"),
    ("<call a=''b></call>", "<call a=''b></call>"),
    ("<fork a='' b='' c='' d></fork>", "<fork a='' b='' c='' d></fork>"),
    ("<result a></result>", "<result a></result>"),
    ("<call a=''></call>", "<call a=''></call>"),
    ("<call a='&'>A</call>", "<call a='&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&'>A</call>"),
    ("<call a='&amp;'>A</call>", "<call a='&amp;&lt;&gt;&quot;&apos;&none;'>A</call>"),
];

type GeneratedText = (&'static str, fn() -> String);

/// Short replies that are read once.
const SHORT_REPLIES: [GeneratedText; 3] = [
    ("one tag of 60 kB of a1='b', alone", || {
        format!("<fork {}>A</fork>", numbered(6_000, "a", "='b' "))
    }),
    ("one tag of 60 kB of &, alone", || format!("<goto a='{}'>A</goto>", "&".repeat(60_000))),
    ("100 tags with an attribute, alone", || "<goto a='b'>A</goto>".repeat(100)),
];

/// Floods of generated pieces.
const GENERATED_FLOODS: [GeneratedText; 8] = [
    ("<a1><a2> … <a99999>", || numbered(100_000, "<a", ">")),
    ("<aaa… as long as a name may be", || format!("<{}", "a".repeat(64))),
    ("tags of 60 kB of a='b'", || format!("<call {}>A</call>", "a='b' ".repeat(10_000))),
    ("tags of 60 kB of a1='b'", || format!("<fork {}>A</fork>", numbered(6_000, "a", "='b' "))),
    ("tags of 60 kB, unreadable", || format!("<fork {}b>A</fork>", numbered(6_000, "a", "='b' "))),
    ("tags of 60 kB of &", || format!("<call a='{}'>A</call>", "&".repeat(60_000))),
    ("a='b' in an open tag", || format!("<call {}", "a='b' ".repeat(100_000))),
    ("<result> in <result>", || "<result>".repeat(100_000) + &"</result>".repeat(100_000)),
];

fn numbered(count: usize, before: &str, after: &str) -> String {
    let numbers = (0..count).map(|number| number.to_string());
    numbers.flat_map(|number| [before.to_owned(), number, after.to_owned()]).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "other figures can fail as a whole")]
pub(crate) fn figure(_: &BenchFolder, scale: &Scale, goals: &mut Goals) -> Fallible<Vec<Table>> {
    let title = format!("The tag finder on {} MB of …", short(as_float(scale.text) / 1e6));
    let mut table = Table::new(&title, ["", "ms, median (least–greatest)", "MB/s"]);
    let prose = repeated(PROSE, scale.text) + "<goto>NEXT.md</goto>";
    let speed = row(&mut table, "prose", &prose, scale);
    goals.add("tag finder on prose", speed, GoalBound::AtLeast(1_000.0), " MB/s");
    let floods = FLOODS.iter().map(|&(name, piece)| (name, piece.to_owned()));
    let made = GENERATED_FLOODS.iter().map(|&(name, make)| (name, make()));
    let floods = floods.chain(made).map(|(name, piece)| (name, repeated(&piece, scale.text)));
    let alone = SHORT_REPLIES.iter().map(|&(name, make)| (name, make()));
    let flood = worst(&mut table, floods, scale);
    let alone = worst(&mut table, alone, scale);
    for (kind, (name, speed)) in [("floods", flood), ("short ones", alone)] {
        table.note(format!("The worst of the {kind}: {name}, {} MB/s.", whole(speed)));
        let name = format!("tag finder on the worst of the {kind}, {name}");
        goals.add(name, speed, GoalBound::AtLeast(100.0), " MB/s");
    }
    table.note("The short ones are read whole; of a flood of tags only the first ones are.");
    Ok(vec![table])
}

/// Measures each text; returns the slowest, and the megabytes of it that are read a second.
fn worst(
    table: &mut Table,
    texts: impl Iterator<Item = (&'static str, String)>,
    scale: &Scale,
) -> (&'static str, f64) {
    texts.fold(("", f64::INFINITY), |worst, (name, text)| {
        let speed = row(table, name, &text, scale);
        if speed < worst.1 { (name, speed) } else { worst }
    })
}

/// Measures one text; returns the megabytes of it that are read a second.
fn row(table: &mut Table, name: &str, text: &str, scale: &Scale) -> f64 {
    let part = seconds(&text[..text.floor_char_boundary(text.len() / PART_DIVISOR)]);
    if part > TOO_SLOW_SECONDS {
        let taken = format!("{:.0} for a {PART_DIVISOR}th", part * 1e3);
        table.row([name.to_owned(), taken, "too slow".to_owned()]);
        return as_float(text.len() / PART_DIVISOR) / 1e6 / part;
    }
    let taken = Summary::of((0..scale.repeats).map(|_| seconds(text)));
    let speed = as_float(text.len()) / 1e6 / taken.median();
    let milliseconds = taken.scaled(1e3).shown();
    table.row([name.to_owned(), milliseconds, whole(speed)]);
    speed
}

fn repeated(piece: &str, length: usize) -> String {
    piece.repeat(length.div_ceil(piece.len()))
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
