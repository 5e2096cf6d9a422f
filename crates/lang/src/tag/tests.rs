//! The finder by a table, and by properties over any text.

use proptest::prelude::*;

use super::*;

fn shown(text: &str) -> Vec<String> {
    let show = |tag: Result<Transition, _>| match tag {
        Ok(Transition::Result { payload, .. }) => format!("result[{payload}]"),
        Ok(transition) => transition.to_string(),
        Err(error) => format!("error: {error}"),
    };
    find(text).tags.into_iter().map(show).collect()
}

#[test]
fn tags_are_distinguished_from_prose() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("just prose, 1 < 2 and a > b", &[]),
        ("done <goto>NEXT.md</goto>", &["<goto>NEXT.md</goto>"]),
        ("<goto>\n  NEXT.md \n</goto> trailing", &["<goto>NEXT.md</goto>"]),
        ("<reset>A.md</reset>", &["<reset>A.md</reset>"]),
        ("<call return=\"N.md\">C.md</call>", &["<call return=\"N.md\">C.md</call>"]),
        ("<function return='N.md'>E.md</function>", &["<function return=\"N.md\">E.md</function>"]),
        (
            "<fork\n  next = \"N.md\"\n  item='x'\n>W.md</fork>",
            &["<fork next=\"N.md\" item=\"x\">W.md</fork>"],
        ),
        ("<result></result>", &["result[]"]),
        ("<result> as it\nstands </result>", &["result[ as it\nstands ]"]),
        ("<results>prose</results>", &[]),
        ("<GOTO>A.md</GOTO>", &[]),
        ("<goto/>", &[]),
        ("<gotoA.md</goto>", &[]),
        ("<goto>A.md", &[]),
        ("<goto>A.md</goto", &[]),
        ("<goto>A.md</goto >", &["<goto>A.md</goto>"]),
        ("<goto>A.md</reset>", &[]),
        ("I could use <goto> here.\n<goto>B.md</goto>", &["<goto>B.md</goto>"]),
        ("<goto>A.md</goto><goto>B.md</goto>", &["<goto>A.md</goto>", "<goto>B.md</goto>"]),
        ("<result>use <goto>A.md</goto> then</result>", &["result[use <goto>A.md</goto> then]"]),
        ("<result>a <result>b</result> c</result>", &["result[a <result>b]"]),
        ("<result>x</results></result>", &["result[x</results>]"]),
        ("<result>never closed <goto>A.md</goto>", &["<goto>A.md</goto>"]),
        ("<call>C.md</call>", &["error: <call> needs the attribute return=\"FILE.md\""]),
        ("<call return=N.md>C.md</call>", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), *expected, "{text:?}");
    }
}

#[test]
fn attribute_values_are_unescaped_once() {
    let Some(Ok(Transition::Fork { variables, .. })) =
        find(r#"<fork next="N.md" q="a &lt;b&gt; &quot;&apos; &amp;lt; &unknown; &" s='say "hi" > now'>W.md</fork>"#)
            .tags
            .pop()
    else {
        panic!("no fork");
    };
    assert_eq!(variables["q"], "a <b> \"' &lt; &unknown; &");
    assert_eq!(variables["s"], "say \"hi\" > now");
}

#[test]
fn near_miss_of_tag_is_reported() {
    let near = |text| find(text).near_misses.join(", ");
    assert_eq!(near("<goto>A.md"), "a <goto> without its </goto>");
    assert_eq!(near("<jump>A.md</jump>"), "<jump>, which is not a tag");
    assert_eq!(near("<call return=N.md>C.md</call>"), "a <call> whose attributes cannot be read");
    assert_eq!(find("<a>x <b>x <c>x <d>x <e>x").near_misses.len(), NEAR_MISSES);
}

#[test]
fn open_tag_over_length_limit_is_ignored() {
    let long =
        |length: usize| format!("<fork next=\"N.md\" x=\"{}\">W.md</fork>", "é".repeat(length / 2));
    assert_eq!(find(&long(MAX_OPEN_TAG - 100)).tags.len(), 1);
    assert_eq!(find(&long(MAX_OPEN_TAG)).tags.len(), 0);
}

#[test]
fn only_first_tags_up_to_limit_are_read() {
    let count = |tag: &str, times: usize| find(&tag.repeat(times)).tags.len();
    assert_eq!(count("<goto>A.md</goto>", MAX_TAGS - 1), MAX_TAGS - 1);
    assert_eq!(count("<goto>A.md</goto>", MAX_TAGS * 2), MAX_TAGS);
    let cut = |tag: &str, times: usize| find(&format!("{} the end", tag.repeat(times))).cut;
    assert!(!cut("<goto>A.md</goto>", MAX_TAGS) && cut("<goto>A.md</goto>", MAX_TAGS + 1));
    let long = format!("<fork next=\"N.md\" x=\"{}\">W.md</fork>", "y".repeat(40_000));
    assert_eq!((count(&long, 1), count(&long, 2), count(&long, 9)), (1, 2, 2));
    assert!(!cut(&long, 2) && cut(&long, 3));
    assert_eq!(count(&format!("{long}{}", "<goto>A.md</goto>".repeat(3)), 1), 4);
}

proptest! {
    #[test]
    fn any_text_is_parsed_without_panic(text in ".*") {
        let _ = find(&text);
    }

    #[test]
    fn any_bytes_are_parsed_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = find(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_tag_fragments_are_parsed_without_panic(pieces in prop::collection::vec(
        prop::sample::select(vec!["<", ">", "</", "goto", "result", "fork", " next=\"", "\"", "N.md", "é", "\n", "<result>", "</result>", "<call a='"]), 0..60)) {
        let _ = find(&pieces.concat());
    }

    #[test]
    fn single_tag_is_found_at_any_position(before in "[^<]*", after in "[^<]*") {
        let reading = find(&format!("{before}<goto>NEXT.md</goto>{after}"));
        prop_assert_eq!(reading.tags.len(), 1);
    }

    #[test]
    fn displayed_fork_parses_back_to_same_transition(value in "[^\u{0}]*", name in "x[a-z]{0,7}") {
        let attributes = [("next".to_owned(), "N.md".to_owned()), (name, value)];
        let fork = Transition::from_parts(TagName::Fork, attributes, "W.md").expect("a fork");
        prop_assert_eq!(find(&fork.to_string()).tags, vec![Ok(fork)]);
    }
}
