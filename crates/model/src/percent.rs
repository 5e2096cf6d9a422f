//! Percent-encoded text.

/// Returns a text without its percent-encoding; `None` if it is not one, or if the result is not UTF-8.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_or_refused() {
        for (text, decoded) in [
            ("", ""),
            ("a+b", "a+b"),
            ("/etc/my%20roots.pem", "/etc/my roots.pem"),
            ("%C3%bc%25", "ü%"),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), Some(decoded));
        }
        for wrong in ["%", "%4", "%zz", "%+4", "%-1", "a%c3", "%%20"] {
            assert_eq!(percent_decoded(wrong), None, "{wrong}");
        }
    }
}
