//! How people write a span of time: `200ms`, `30s`, `1.5m`, `1h`.

/// Reads `200ms`, `1.5s`, `2m` or `1h` as milliseconds.
///
/// # Errors
/// A text that says what is expected.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be finite and not negative, and saturating"
)]
pub fn millis(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match text[digits..].trim() {
        "ms" => 1.0,
        "s" | "" => 1000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => {
            return Err(format!(
                "`{text}` is not a duration; write for example 200ms, 30s, 5m or 1h"
            ));
        }
    };
    match text[..digits].parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((number * factor) as u64),
        _ => Err(format!("`{text}` is not a duration; write for example 200ms, 30s, 5m or 1h")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(millis("200ms"), Ok(200));
        assert_eq!(millis("1.5s"), Ok(1500));
        assert_eq!(millis("2m"), Ok(120_000));
        assert_eq!(millis("1h"), Ok(3_600_000));
        for bad in ["", "s", "1d", "-1s", "1.2.3s"] {
            assert!(millis(bad).is_err(), "{bad:?}");
        }
    }
}
