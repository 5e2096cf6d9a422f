//! Agents on other hosts, as the supervisor of their run sees them: what it asks their hosts for, and the answers.

mod host_calls;
mod mail_thread;
mod remote_executor;
mod remote_hosts;
mod remote_runner;

pub(super) use remote_hosts::RemoteHosts;
