//! The forms of paths wherever one is given, and where `store_as` stores.

use serde_json::{Value, json};

use super::super::test;
use super::{ActionRow, fails, gives, play};

fn set(field: &str, value: i32) -> Value {
    json!({"type": "set_state", "field": field, "value": value})
}

fn compute(store: &str) -> Value {
    json!({"type": "compute", "expression": "'x'", "store_as": store})
}

fn rows() -> Vec<ActionRow> {
    let read = |store: &str| json!({"type": "read_file", "path": "a.txt", "store_as": store});
    let hash =
        |from: &str| json!({"type": "compute_hash", "from": from, "store_as": "computed.hash"});
    let is_hash = "${computed.hash.length}";
    vec![
        gives("a path with dots", json!([set("a.b.c", 1)]), "${a.b.c}", json!(1)),
        gives(
            "a path with a number after a dot",
            json!([set("list.0.id", 2)]),
            "${list[0].id}",
            json!(2),
        ),
        gives("a path with brackets", json!([set("list[0].id", 3)]), "${list[0].id}", json!(3)),
        gives(
            "a path with a negative index",
            json!([set("list[-1].id", 4)]),
            "${list[1].id}",
            json!(4),
        ),
        gives("a path with a leading dot", json!([set(".a.b.c", 5)]), "${a.b.c}", json!(5)),
        gives(
            "a path with a key in quotes",
            json!([set("a[\"x-y\"]", 6)]),
            "${a['x-y']}",
            json!(6),
        ),
        gives("a path that is filled", json!([set("a.${key}", 7)]), "${a.k}", json!(7)),
        fails("an index that is not there", set("list[2].id", 1), "has 2 elements, and no `[2]`"),
        fails("a negative index that is not there", set("list[-3].id", 1), "no `[-3]`"),
        fails("an index of no list", set("fresh[0]", 1), "`fresh` is not a list"),
        fails("a path that is none", set("${key}[", 1), "is not a path"),
        gives("a read path with an index", json!([hash("list[-1].id")]), is_hash, json!(71)),
        gives("a read path that is one reference", json!([hash("${list[0]}")]), is_hash, json!(71)),
        gives("a text with a negative index", json!([]), "${list[-1].id}", json!(4)),
        gives(
            "the history has negative indices",
            json!([]),
            "${history[-1].outcome}",
            json!("success"),
        ),
        gives(
            "compute stores at a full path",
            json!([compute("computed.full")]),
            "${computed.full}",
            json!("x"),
        ),
        gives("compute stores in a field", json!([compute("field")]), "${field}", json!("x")),
        gives(
            "compute stores below a field",
            json!([compute("a.computed_here")]),
            "${a.computed_here}",
            json!("x"),
        ),
        gives(
            "store_as strips computed",
            json!([read("computed.stripped")]),
            "${computed.stripped}",
            json!("text"),
        ),
        gives(
            "store_as writes below computed",
            json!([read("plain")]),
            "${computed.plain}",
            json!("text"),
        ),
        gives(
            "store_as has deep paths",
            json!([read("deep.er")]),
            "${computed.deep.er}",
            json!("text"),
        ),
        gives("store_as of a field of that name", json!([read("own")]), "${own}", json!("text")),
        gives(
            "store_path_as takes a full path",
            json!([
                {"type": "set_state", "field": "computed.page", "value": {"content": "c"}},
                {"type": "cache_web_content", "from": "computed.page", "dest": "d", "store_path_as": "computed.at"},
            ]),
            "${computed.at}",
            json!("d"),
        ),
        gives(
            "set_state takes a full path",
            json!([set("computed.direct", 8)]),
            "${computed.direct}",
            json!(8),
        ),
        gives(
            "set_state without computed is a field",
            json!([set("direct", 9)]),
            "${state.direct}",
            json!(9),
        ),
        gives("compute_hash takes a full path", json!([hash("key")]), is_hash, json!(71)),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    rows().into_iter().map(|row| row.name).collect()
}

#[test]
fn paths_have_all_their_forms() {
    let place = test(&json!({})).file("a.txt", b"text");
    let initial = json!({
        "a": {}, "list": [{"id": 0}, {"id": 0}], "key": "k", "own": null, "field": null, "direct": null,
    });
    play(place, initial, json!([]), &rows());
}
