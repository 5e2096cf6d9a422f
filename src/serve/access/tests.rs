//! Tests of access: the requests that are let in, and those that are refused.

use super::*;

const NOW: Timestamp = Timestamp(1_000_000);

fn rules_at(address: &str, runs: &str) -> AccessRules {
    let token = AccessToken::new("secret-token");
    AccessRules::new(&ProofKey::new("k"), token, address.parse().expect("an address"), runs.into())
}

fn rules() -> AccessRules {
    rules_at("127.0.0.1:8123", "/runs")
}

fn from_page(changes: bool) -> RequestHead {
    RequestHead {
        host: Some("127.0.0.1:8123".into()),
        origin: changes.then(|| "http://127.0.0.1:8123".into()),
        content_type: changes.then(|| "application/json".into()),
        fetch_site: Some("same-origin".into()),
        is_api: true,
        changes,
        ..RequestHead::default()
    }
}

/// Returns the name and the value in a header that sets a cookie.
fn given(header: &str) -> (String, String) {
    let pair = header.split(';').next().expect("a pair");
    let (name, value) = pair.split_once('=').expect("a name and a value");
    (name.to_owned(), value.to_owned())
}

#[test]
fn only_own_names_are_hosts() {
    let table = [
        ("127.0.0.1:8123", true),
        ("localhost:8123", true),
        ("LOCALHOST:8123", true),
        ("127.0.0.1", false),
        ("127.0.0.1:80", false),
        ("evil.example:8123", false),
        ("127.0.0.1.evil.example:8123", false),
        ("localhost.:8123", false),
        ("10.0.0.1:8123", false),
        ("[::1]:8123", false),
        ("", false),
    ];
    for (host, is_named) in table {
        assert_eq!(rules().is_named(host), is_named, "{host}");
    }
    assert!(rules_at("[::1]:8123", "/r").is_named("[::1]:8123"));
    let everywhere = rules_at("0.0.0.0:8123", "/r");
    assert!(everywhere.is_named("192.168.1.7:8123") && everywhere.is_named("localhost:8123"));
    assert!(!everywhere.is_named("evil.example:8123"), "no name can be made to lead here");
}

#[test]
fn requests_of_other_pages_are_refused() {
    let rules = rules();
    assert_eq!(rules.check_source(&from_page(false)), Ok(()));
    assert_eq!(rules.check_source(&from_page(true)), Ok(()));
    let refused = |change: &dyn Fn(&mut RequestHead)| {
        let mut head = from_page(true);
        change(&mut head);
        rules.check_source(&head).expect_err("refused")
    };
    assert_eq!(refused(&|head| head.host = None), AccessRefusal::Host);
    assert_eq!(refused(&|head| head.host = Some("evil.example".into())), AccessRefusal::Host);
    for origin in ["http://evil.example", "null", "https://127.0.0.1:8123", "http://127.0.0.1:1"] {
        assert_eq!(refused(&|head| head.origin = Some(origin.into())), AccessRefusal::Origin);
    }
    assert_eq!(refused(&|head| head.origin = None), AccessRefusal::Origin);
    assert_eq!(refused(&|head| head.fetch_site = Some("same-site".into())), AccessRefusal::Origin);
    for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
        let kind = kind.map(str::to_owned);
        assert_eq!(
            refused(&|head| head.content_type.clone_from(&kind)),
            AccessRefusal::ContentType
        );
    }
    let mut read = from_page(false);
    read.fetch_site = Some("cross-site".into());
    assert_eq!(rules.check_source(&read), Err(AccessRefusal::Origin));
    read.is_api = false;
    assert_eq!(rules.check_source(&read), Ok(()), "a link may lead to the page");
}

#[test]
fn cookie_holds_for_its_server_and_its_time_only() {
    let made = rules();
    let header = made.cookie(NOW);
    assert!(header.contains("; HttpOnly; SameSite=Strict") && header.contains("; Path=/"));
    assert!(!header.contains("secret-token"), "the token is not in it");
    let (name, value) = given(&header);
    let with = |value: &str| RequestHead {
        cookies: vec![("other".into(), "x".into()), (name.clone(), value.to_owned())],
        ..RequestHead::default()
    };
    assert_eq!(made.check_key(&with(&value), NOW), Ok(()));
    let late = NOW.plus(COOKIE_LIFETIME_MS);
    assert_eq!(made.check_key(&with(&value), late), Err(AccessRefusal::NoKey));
    let (_, proof) = value.split_once('.').expect("two parts");
    let longer = format!("{}.{proof}", late.plus(1).0);
    assert_eq!(made.check_key(&with(&longer), NOW), Err(AccessRefusal::NoKey));
    for nothing in ["", ".", "1.", "x.y", proof] {
        assert_eq!(made.check_key(&with(nothing), NOW), Err(AccessRefusal::NoKey), "{nothing}");
    }
    let restarted = AccessRules { token: AccessToken::new("another"), ..made.clone() };
    assert_eq!(restarted.check_key(&with(&value), NOW), Ok(()), "the next server takes it, too");
    for other in [rules_at("127.0.0.1:8124", "/runs"), rules_at("127.0.0.1:8123", "/others")] {
        let head = RequestHead {
            cookies: vec![(other.cookie_name(), value.clone())],
            ..RequestHead::default()
        };
        assert_eq!(other.check_key(&head, NOW), Err(AccessRefusal::NoKey));
    }
}

#[test]
fn token_is_taken_as_bearer_and_never_shown() {
    let rules = rules();
    let bearer = |token: &str| RequestHead { bearer: Some(token.into()), ..RequestHead::default() };
    assert_eq!(rules.check_key(&bearer("secret-token"), NOW), Ok(()));
    for wrong in ["", "secret-toke", "secret-token ", "Secret-token"] {
        assert_eq!(rules.check_key(&bearer(wrong), NOW), Err(AccessRefusal::NoKey), "{wrong}");
    }
    assert!(!format!("{rules:?}").contains("secret-token"));
}
