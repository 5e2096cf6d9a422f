//! Errors as versions of Claude Code, proxies and the API word them, and what each means.

use super::*;

fn cause(status: Option<u16>, kinds: &[&str], text: &str) -> FailureCause {
    ApiError { status, kinds, text }.cause().0
}

#[test]
fn refused_content_differs_from_refused_request() {
    let poisoned = [
        "API Error: 400 {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Could not process image\"}}",
        "API Error: an image in the conversation could not be processed and was removed.",
        "messages.5.content.0.image.source.base64: image exceeds 5 MB maximum",
        "API Error: 400 The request body is not valid JSON: no low surrogate in string: line 1 column 812 (char 811)",
        "unexpected end of hex escape at line 1 column 91",
        "messages: text content blocks must be non-empty",
        "messages.3: all messages must have non-empty content except for the optional final assistant message",
        "cache_control cannot be set for empty text blocks",
        "messages.1.content.2.type: Field required",
        "messages[7].content: Extra inputs are not permitted",
        "The PDF specified was not valid.",
        "A maximum of 100 PDF pages may be provided",
        "Output blocked by content filtering policy",
        "messages.3: `tool_use` ids were found without `tool_result` blocks",
        "Expected `thinking` or `redacted_thinking`, but found `text`",
        "malformed content block",
    ];
    for text in poisoned {
        for kinds in [&["unknown"][..], &["invalid_request"]] {
            assert_eq!(cause(Some(400), kinds, text), FailureCause::Poisoned, "{text}");
        }
        assert_eq!(cause(Some(500), &["server_error"], text), FailureCause::Crash, "{text}");
    }
    assert_eq!(cause(Some(400), &["media_removed"], "gone"), FailureCause::Poisoned);
    let final_texts = [
        "no such beta",
        "foo: Extra inputs are not permitted",
        "Unknown parameter: thinking_effort",
        "max_tokens must be greater than thinking.budget_tokens",
        "tools.3.custom.input_schema: JSON schema is invalid",
        "Thinking may not be enabled when tool_choice forces tool use",
        "adaptive thinking is not supported on this model",
        "Unexpected value(s) `x` for the `anthropic-beta` header",
        "see the documentation of imagery",
        "Prompt is too long",
    ];
    for text in final_texts {
        assert_eq!(cause(Some(400), &["invalid_request"], text), FailureCause::Rejected, "{text}");
    }
}

#[test]
fn absent_network_differs_from_api_error() {
    let texts = [
        "API Error: Unable to connect to API (ECONNRESET)",
        "API Error: Unable to connect to API (ENOTFOUND)",
        "API Error: Unable to connect to API (ETIMEDOUT)",
        "API Error: Unable to connect to API (EAI_AGAIN)",
        "API Error: Unable to connect to API (UND_ERR_SOCKET)",
        "API Error: Unable to connect to API (ConnectionRefused)",
        "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)",
        "API Error: Connection error.",
        "API Error: Request timed out.",
        "getaddrinfo ENOTFOUND api.anthropic.com",
        "TypeError: fetch failed",
        "API Error: Connection lost before a response was produced. Try again.",
    ];
    for text in texts {
        for kinds in [&[][..], &["server_error"], &["unknown"]] {
            assert_eq!(cause(None, kinds, text), FailureCause::Network, "{text}");
        }
        assert_eq!(cause(Some(500), &["server_error"], text), FailureCause::Crash, "{text}");
    }
    assert_eq!(cause(None, &["connection_failed"], "in new words"), FailureCause::Network);
    let others = [
        "API Error: Unable to connect to API (SELF_SIGNED_CERT_IN_CHAIN)",
        "Unable to connect to API: SSL certificate verification failed",
        "API Error: something else",
        "the test for econnresetting failed",
    ];
    for text in others {
        assert_eq!(cause(None, &["server_error"], text), FailureCause::Crash, "{text}");
    }
}

#[test]
fn unusable_account_is_recognized_by_kind_or_words() {
    let table = [
        (
            "oauth_org_not_allowed",
            "Your organization has disabled Claude subscription access for Claude Code",
            "admin",
        ),
        (
            "oauth_org_not_allowed",
            "OAuth authentication is currently not allowed for this organization.",
            "admin",
        ),
        ("account_on_hold", "Your account is on hold and can't use Claude Code.", "hold"),
        ("verification_required", "Identity verification is required", "verification"),
        ("cloud_credential_error", "Could not load credentials from any providers", "renew"),
    ];
    for (kind, text, remedy) in table {
        for status in [None, Some(400), Some(401), Some(403)] {
            for error in [
                ApiError { status, kinds: &[kind], text: "no" },
                ApiError { status, kinds: &["unknown"], text },
            ] {
                let (cause, advice) = error.cause();
                assert_eq!(cause, FailureCause::Account, "{error:?}");
                assert!(advice.contains(remedy), "{advice}");
            }
        }
        assert_eq!(cause(Some(500), &["server_error"], text), FailureCause::Crash);
    }
    assert_eq!(cause(Some(403), &[], "authentication failed"), FailureCause::Authentication);
    assert_eq!(cause(Some(403), &[], "Request not allowed"), FailureCause::Crash);
    assert_eq!(cause(Some(500), &["authentication_failed"], "oops"), FailureCause::Crash);
}
