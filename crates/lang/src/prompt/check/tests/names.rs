//! Tests of names without an ending, and of first prompts with numbers.

use super::*;

const END: (&str, &str) = ("END.md", "<result>x</result>");

#[test]
fn name_without_ending_leads_to_the_only_state_that_fits() {
    let start = prompt_with("tag: goto, target: NEXT; tag: goto, target: END", "NEXT or END");
    let next = ("NEXT.md", "<goto>END</goto>");
    assert!(checked(&[("START.md", &start), next, END], None, &[]).is_empty());
    let both = checked(&[("START.md", &start), next, ("NEXT.lisp", "x"), END], None, &[]);
    let why = "START.md:3:26: RF107 NEXT: this fits NEXT.md and NEXT.lisp; write the ending";
    assert!(both.iter().any(|line| line == why), "{both:?}");
    let text = ("START.md", "<goto>NEXT</goto>");
    let both = checked(&[text, next, ("NEXT.lisp", "x"), END], Some("START.md"), &[]);
    assert_eq!(
        both,
        [
            "START.md:1:1: RF107 the text shows <goto>NEXT</goto>, but NEXT: this fits NEXT.md and NEXT.lisp; write the ending"
        ]
    );
    let none = checked(&[text], Some("START.md"), &[]);
    assert!(none[0].starts_with("START.md:1:1: RF103 "), "{none:?}");
}

#[test]
fn numbered_first_prompt_begins_folder_unless_both_are_there() {
    let numbered = ("1_START.md", "<result>x</result>");
    assert!(checked(&[numbered], None, &[]).is_empty());
    let both = checked(&[numbered, ("START.md", "<result>x</result>")], None, &[]);
    assert_eq!(
        both,
        [
            "START.md:1:1: RF006 1_START.md exists as well, and nothing says which comes first; remove one, or name the first as `entry` in raymond.yaml"
        ]
    );
    let named = ("raymond.yaml", "entry: 1_START.md");
    let found = checked(&[numbered, ("START.md", "<goto>1_START</goto>"), named], None, &[]);
    assert!(found.iter().all(|line| !line.contains("RF006")), "{found:?}");
}

#[test]
fn reset_that_keeps_its_stack_may_come_back() {
    let call = "tag: call, target: A.md, return: END.md";
    let reset = prompt("tag: reset, target: B.md, keep: stack", "x");
    let files =
        [("START.md", &*prompt(call, "x")), ("A.md", &*reset), ("B.md", "<result>x</result>"), END];
    assert!(checked(&files, None, &[]).is_empty());
}

#[test]
fn force_implicit_needs_a_single_complete_entry() {
    let with = |entries: &str| {
        prompt_with(entries, "END").replace("---\nallowed", "---\nforce_implicit: true\nallowed")
    };
    for good in ["tag: goto, target: END.md", "tag: result, payload: \"YES\""] {
        let found = checked(&[("START.md", &with(good)), END], Some("START.md"), &[]);
        assert!(found.is_empty(), "{good}: {found:?}");
    }
    for bad in ["tag: goto, target: END.md; tag: result", "tag: ask, next: END.md", "tag: result"] {
        let found = checked(&[("START.md", &with(bad)), END], Some("START.md"), &[]);
        assert!(
            found[0].starts_with("START.md:2:17: RF002 this needs exactly one allowed transition"),
            "{bad}: {found:?}"
        );
    }
}

#[test]
fn inputs_of_the_manifest_fill_placeholders() {
    let manifest = ("raymond.yaml", "inputs: [{ name: topic }, { name: tone, default: kind }]\n");
    let start = ("START.md", "{{topic}} {{tone}} {{length}} <result>x</result>");
    let found = checked(&[manifest, start], None, &[]);
    assert!(found.len() == 1 && found[0].contains("{{length}}"), "{found:?}");
}
