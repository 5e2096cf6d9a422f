//! Agents on other hosts, as the supervisor of their run sees them: what it asks their hosts for, and the answers.

mod mail_thread;
mod remote_runner;

pub(super) use remote_runner::RemoteHosts;
