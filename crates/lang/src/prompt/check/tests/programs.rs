//! Programs among the states of a folder.

use super::*;

const SOUND: &str = r#"
(workflow w
  (roles (worker :agent-kind "claude-code"))
  (state only
    (action (run-folder :agent worker :start "WORK.md" :request-id work))
    (await (transcript-response :request-id work))))
"#;

#[test]
fn check_follows_prompts_into_programs_and_back() {
    let call = prompt("tag: call, target: p.lisp, return: END.md", "x");
    let files = [
        ("START.md", call.as_str()),
        ("END.md", "{{result}} <result>x</result>"),
        ("p.lisp", SOUND),
        ("WORK.md", "{{input}} {{other}} <result>x</result>"),
        ("raymond.yaml", ""),
        ("replies.yaml", "p.lisp#worker: [x]\np.lisp#wroker: [x]\n"),
    ];
    let found = checked(&files, None, &[]);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("WORK.md:1:11: warning: RF401 nothing fills {{other}}"));
    assert!(found[1].starts_with("replies.yaml:2:1: warning: RF005 unknown role p.lisp#wroker"));
    let alone = checked(&files, Some("p.lisp"), &["other"]);
    assert_eq!(alone.len(), 1, "{alone:#?}");
}

#[test]
fn program_error_is_reported_from_goto_or_entry() {
    let wrong = SOUND.replace(":agent worker", ":agent wroker");
    let errors_in = |first: &str, text: &str| {
        let found = checked(&[(first, text), ("p.lisp", &wrong), ("WORK.md", "x")], None, &[]);
        found.iter().filter(|line| line.starts_with("p.lisp:5:")).count()
    };
    assert_eq!(errors_in("START.md", "<goto>p.lisp</goto>"), 1);
    assert_eq!(errors_in("raymond.yaml", "entry: p.lisp"), 1);
    let usual = checked(&[("workflow.lisp", &wrong), ("WORK.md", "x")], None, &[]);
    assert!(usual.iter().any(|line| line.starts_with("workflow.lisp:5:")), "{usual:#?}");
    let gone = checked(&[("START.md", &prompt("tag: goto, target: q.duet", "x"))], None, &[]);
    assert!(gone.iter().any(|line| line.contains("RF101 q.duet: there is no such file")));
}

#[test]
fn scripted_replies_for_unknown_state_or_role_are_reported() {
    let program = SOUND.replace("\"WORK.md\"", "\"below/WORK.md\"");
    let keys = [
        "p.lisp#worker",
        "beside.lisp#worker",
        "below/WORK.md",
        "below/q.lisp#worker",
        "below/g.yaml#node",
        "p.lisp#wroker",
        "p.lisp#zzz",
        "p.lsp#worker",
        "q.lisp#worker",
        "below/q.lisp#wroker",
        "below/GONE.md",
        "beneath/WORK.md",
        "p.lisp",
    ];
    let script = keys.map(|key| format!("{key}: [x]")).join("\n");
    let files = [
        ("p.lisp", program.as_str()),
        ("beside.lisp", SOUND),
        ("below/WORK.md", "<result>x</result>"),
        ("below/q.lisp", SOUND),
        ("below/g.yaml", "x"),
        ("replies.yaml", &script),
    ];
    let expected = [
        "6:1: warning: RF005 unknown role p.lisp#wroker; did you mean p.lisp#worker?",
        "7:1: warning: RF005 unknown role p.lisp#zzz; no agent is ever given these",
        "8:1: warning: RF005 unknown state p.lsp#worker; did you mean p.lisp#worker?",
        "9:1: warning: RF005 unknown role q.lisp#worker; did you mean p.lisp#worker?",
        "10:1: warning: RF005 unknown role below/q.lisp#wroker; did you mean below/q.lisp#worker?",
        "11:1: warning: RF005 unknown prompt below/GONE.md; no agent is ever given these",
        "12:1: warning: RF005 unknown prompt beneath/WORK.md; no agent is ever given these",
        "13:1: warning: RF005 unknown state p.lisp; did you mean p.lisp#worker?",
    ];
    let found = checked(&files, Some("p.lisp"), &[]);
    let found: Vec<_> =
        found.iter().filter_map(|line| line.strip_prefix("replies.yaml:")).collect();
    assert_eq!(found, expected);
}

#[test]
fn folders_run_by_program_are_checked() {
    let runs = |start: &str| SOUND.replace("\"WORK.md\"", &format!("\"{start}\""));
    let (program, inner) = (runs("below/q.lisp"), runs("deep/START.md"));
    let bad = prompt("tag: goto, target: GONE.md", "x");
    let files = [
        ("p.lisp", program.as_str()),
        ("below/q.lisp", &inner),
        ("below/OTHER.md", &bad),
        ("below/deep/START.md", &bad),
    ];
    let found = checked(&files, Some("p.lisp"), &[]);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].starts_with("START.md:3:3: RF201 this policy allows nothing"), "{found:#?}");
    assert!(found[1].ends_with(": RF101 GONE.md: there is no such file"), "{found:#?}");
}
