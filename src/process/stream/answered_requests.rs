//! The program's answers to the requests of the runtime. Pure.

use super::line::{ControlResponse, StreamLine, get, text};

/// The answers so far.
#[derive(Debug, Default)]
pub struct AnsweredRequests(Vec<AnsweredRequest>);

#[derive(Debug)]
struct AnsweredRequest {
    id: String,
    /// The reason for which the program has refused it.
    refusal: Option<String>,
}

impl AnsweredRequests {
    /// Takes an answer.
    pub(super) fn take(&mut self, event: &StreamLine<'_>) {
        let Some(answer) = get::<ControlResponse<'_>>(event.response) else { return };
        let Some(id) = text(answer.request_id) else { return };
        let is_refused = text(answer.subtype).as_deref() == Some("error");
        let refusal = is_refused.then(|| text(answer.error).unwrap_or_default());
        self.0.push(AnsweredRequest { id, refusal });
    }

    /// Returns the reason for which a request was refused; `None` if it was granted or has no answer.
    pub fn refusal(&self, id: &str) -> Option<&str> {
        self.0.iter().find(|answer| answer.id == id)?.refusal.as_deref()
    }

    /// Returns whether a request was granted.
    pub fn has_granted(&self, id: &str) -> bool {
        self.0.iter().any(|answer| answer.id == id && answer.refusal.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::super::StreamParser;

    #[test]
    fn error_refuses_a_request_and_everything_else_grants_it() {
        let mut stream = StreamParser::default();
        for line in [
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"a","response":{"model":"x"}}}"#,
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"b","error":"API error: 529 busy","error_code":"check_server_error"}}"#,
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"c"}}"#,
            r#"{"type":"control_response","response":7}"#,
        ] {
            stream.feed(format!("{line}\n").as_bytes()).expect("a short line");
        }
        let answers = &stream.answered_requests;
        assert!(answers.has_granted("a") && answers.refusal("a").is_none());
        assert_eq!(answers.refusal("b"), Some("API error: 529 busy"));
        assert_eq!((answers.refusal("c"), answers.has_granted("c")), (Some(""), false));
        assert!(!answers.has_granted("d") && answers.refusal("d").is_none());
    }
}
