//! The hosts: who serves one, and since when.

use std::time::Duration;

use raymond::domain::host::{HostEpoch, HostReport, HostStanding};
use raymond::engine::shared_log::RegisteredHost;
use raymond::engine::{Engine, EngineError};

use crate::support::{new_host, report, served_host, wait_until};

fn listed(engine: &dyn Engine, host: &raymond::domain::host::HostName) -> Option<RegisteredHost> {
    engine.hosts().expect("hosts").into_iter().find(|listed| listed.host == *host)
}

pub(crate) fn the_same_worker_keeps_its_epoch(one: &dyn Engine, other: &dyn Engine) {
    let host = new_host();
    let first = one.register_host(&host, "worker", &report(0), Duration::ZERO).expect("a claim");
    let again = other.register_host(&host, "worker", &report(1), Duration::ZERO).expect("a claim");
    assert_eq!(first, again);
    assert_eq!(one.heartbeat(&first, &report(2)), Ok(HostStanding::Active));
    assert_eq!(listed(other, &host).expect("the host").report, report(2));
}

pub(crate) fn another_worker_fences_the_first(one: &dyn Engine, other: &dyn Engine) {
    let first = served_host(one);
    let second =
        other.register_host(&first.host, "another", &report(0), Duration::ZERO).expect("a claim");
    assert_eq!(second.epoch, HostEpoch(first.epoch.0 + 1));
    let fenced = EngineError::HostFenced { host: first.host.clone() };
    assert_eq!(one.heartbeat(&first, &report(9)), Err(fenced));
    assert_eq!(other.heartbeat(&second, &report(1)), Ok(HostStanding::Active));
    assert_eq!(listed(one, &first.host).expect("the host").report, report(1));
}

pub(crate) fn another_worker_waits_until_the_first_is_silent(one: &dyn Engine, other: &dyn Engine) {
    let first = served_host(one);
    let long = Duration::from_hours(1);
    let taken = Err(EngineError::HostTaken { host: first.host.clone() });
    assert_eq!(other.register_host(&first.host, "another", &report(0), long), taken);
    assert_eq!(one.heartbeat(&first, &report(1)), Ok(HostStanding::Active));
    let own = one.register_host(&first.host, "worker", &report(0), long);
    assert_eq!(own, Ok(first.clone()));
    other.set_standing(&first.host, HostStanding::Lost).expect("it is lost");
    other.register_host(&first.host, "another", &report(0), long).expect("a claim");
}

pub(crate) fn a_lost_host_is_fenced_until_it_registers(one: &dyn Engine, other: &dyn Engine) {
    let first = served_host(one);
    other.set_standing(&first.host, HostStanding::Lost).expect("it is lost");
    let lost = listed(other, &first.host).expect("the host");
    assert_eq!((lost.standing, lost.epoch.0), (HostStanding::Lost, first.epoch.0 + 1));
    other.set_standing(&first.host, HostStanding::Lost).expect("it may be said again");
    assert_eq!(listed(other, &first.host).expect("the host").epoch, lost.epoch);
    let fenced = EngineError::HostFenced { host: first.host.clone() };
    assert_eq!(one.heartbeat(&first, &report(0)), Err(fenced.clone()));

    let again =
        one.register_host(&first.host, "worker", &report(0), Duration::ZERO).expect("a claim");
    assert!(again.epoch > lost.epoch, "{again:?}");
    assert_eq!(one.heartbeat(&again, &report(0)), Ok(HostStanding::Active));
    assert_eq!(one.heartbeat(&first, &report(0)), Err(fenced.clone()));

    other.set_standing(&first.host, HostStanding::Lost).expect("it is lost");
    other.set_standing(&first.host, HostStanding::Active).expect("it was not, after all");
    assert_eq!(one.heartbeat(&again, &report(0)), Err(fenced));
}

pub(crate) fn a_draining_host_learns_its_standing(one: &dyn Engine, other: &dyn Engine) {
    let claim = served_host(one);
    other.set_standing(&claim.host, HostStanding::Draining).expect("it drains");
    assert_eq!(one.heartbeat(&claim, &report(0)), Ok(HostStanding::Draining));
    other.set_standing(&claim.host, HostStanding::Active).expect("it is back");
    assert_eq!(one.heartbeat(&claim, &report(0)), Ok(HostStanding::Active));
    other.set_standing(&claim.host, HostStanding::Draining).expect("it drains");
    let again =
        one.register_host(&claim.host, "worker", &report(0), Duration::ZERO).expect("a claim");
    assert_eq!(again, claim);
    assert_eq!(one.heartbeat(&claim, &report(0)), Ok(HostStanding::Active));
}

pub(crate) fn hosts_are_listed_with_their_reports(one: &dyn Engine, other: &dyn Engine) {
    let claims: Vec<_> = (0..12).map(|_| served_host(one)).collect();
    let mut report = report(3);
    for label in ["gpu", "linux"] {
        let label = raymond::domain::host::HostLabel::parse(label).expect("a label");
        report.labels.insert(label);
    }
    report.claude = None;
    report.takes_runs = true;
    one.heartbeat(&claims[0], &report).expect("a heartbeat");
    let hosts = other.hosts().expect("hosts");
    assert!(hosts.is_sorted_by_key(|listed| listed.host.clone()), "{hosts:?}");
    for claim in &claims {
        let listed = hosts.iter().find(|listed| listed.host == claim.host).expect("the host");
        assert_eq!((listed.epoch, listed.standing), (claim.epoch, HostStanding::Active));
    }
    assert_eq!(listed(other, &claims[0].host).expect("the host").report, report);
}

pub(crate) fn silence_is_measured_by_the_engine(one: &dyn Engine, other: &dyn Engine) {
    let claim = served_host(one);
    let silent = || listed(other, &claim.host).expect("the host").silent_for;
    wait_until("it is silent", || silent() > Duration::from_millis(300));
    one.heartbeat(&claim, &report(0)).expect("a heartbeat");
    assert!(silent() < Duration::from_secs(30));
    let before = silent();
    wait_until("it is silent again", || silent() > before);
}

pub(crate) fn a_removed_host_is_gone(one: &dyn Engine, other: &dyn Engine) {
    let claim = served_host(one);
    other.remove_host(&claim.host).expect("it is removed");
    assert_eq!(listed(one, &claim.host), None);
    let fenced = EngineError::HostFenced { host: claim.host.clone() };
    assert_eq!(one.heartbeat(&claim, &report(0)), Err(fenced.clone()));
    let again =
        one.register_host(&claim.host, "worker", &report(0), Duration::ZERO).expect("a claim");
    assert!(again.epoch > claim.epoch, "{again:?}");
    assert_eq!(one.heartbeat(&claim, &report(0)), Err(fenced));
}

pub(crate) fn hosts_that_are_not_there_are_named(one: &dyn Engine, _: &dyn Engine) {
    let host = new_host();
    let errors = [
        one.set_standing(&host, HostStanding::Draining).expect_err("no host"),
        one.remove_host(&host).expect_err("no host"),
    ];
    for error in errors {
        assert!(matches!(error, EngineError::NoSuchHost { .. }), "{error}");
        assert!(error.to_string().contains(host.as_str()), "{error}");
    }
}

pub(crate) fn the_later_start_of_a_copied_worker_serves_the_host(
    one: &dyn Engine,
    other: &dyn Engine,
) {
    let host = new_host();
    let [first, second] =
        ["1", "2"].map(|start| HostReport { start: start.to_owned(), ..report(0) });
    let claim = one.register_host(&host, "worker", &first, Duration::ZERO).expect("a claim");
    assert_eq!(one.heartbeat(&claim, &first), Ok(HostStanding::Active));
    assert_eq!(other.register_host(&host, "worker", &second, Duration::ZERO), Ok(claim.clone()));
    let fenced = EngineError::HostFenced { host: host.clone() };
    assert_eq!(one.heartbeat(&claim, &first), Err(fenced));
    assert_eq!(other.heartbeat(&claim, &second), Ok(HostStanding::Active));
}
