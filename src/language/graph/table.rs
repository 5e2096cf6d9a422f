//! Formats a table as text with aligned columns.

use serde_json::Value;

/// Returns a table as text.
///
/// # Errors
/// A message about wrong headers or rows.
pub fn table(title: Option<&str>, headers: &Value, rows: &Value) -> Result<String, String> {
    let headers = cells(headers).ok_or("`headers` is not a list")?;
    let rows = rows.as_array().ok_or("`rows` is not a list")?;
    let row = |row| row_of(&headers, row).ok_or("a row is neither a list nor a map");
    let mut lines = vec![headers.clone()];
    lines.extend(rows.iter().map(row).collect::<Result<Vec<_>, _>>()?);
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(length).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text: Vec<String> = lines.iter().map(|line| aligned(line, &widths)).collect();
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    text.insert(1, rule.join("  "));
    text.splice(0..0, title.map(str::to_owned));
    Ok(text.join("\n"))
}

fn row_of(headers: &[String], row: &Value) -> Option<Vec<String>> {
    match row {
        Value::Object(map) => {
            Some(headers.iter().map(|key| map.get(key).map(cell).unwrap_or_default()).collect())
        }
        other => cells(other),
    }
}

fn cells(list: &Value) -> Option<Vec<String>> {
    Some(list.as_array()?.iter().map(cell).collect())
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

#[expect(clippy::ptr_arg, reason = "it is given to an iterator over the cells")]
fn length(cell: &String) -> usize {
    cell.chars().count()
}

fn aligned(line: &[String], widths: &[usize]) -> String {
    let cells = line.iter().zip(widths).map(|(cell, &width)| format!("{cell:width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = json!([["git", 12], {"id": "web pages", "files": null}]);
        let text = table(Some("Sources"), &json!(["id", "files"]), &rows).expect("a table");
        assert_eq!(text, "Sources\nid         files\n---------  -----\ngit        12\nweb pages");
        assert!(table(None, &json!("id"), &rows).is_err());
        assert!(table(None, &json!([]), &json!([1])).is_err());
    }
}
