//! Agents on other hosts, as the supervisor of their run sees them: what it asks their hosts for, and the answers.

mod host_calls;
mod large_bodies;
mod mail_thread;
mod remote_executor;
mod remote_hosts;
mod remote_runner;
mod thread_end;

pub(super) use remote_hosts::RemoteHosts;
