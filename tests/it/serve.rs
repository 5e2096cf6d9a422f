//! `raymond serve` without a browser: who is let in, what it tells, and what its streams promise.

mod access;
mod actions;
mod described;
mod documents;
pub(crate) mod http;
mod streams;

use crate::support::{RunningRaymond, Test};
use http::PageClient;

/// A server and a client of it that has the token.
pub(crate) struct ServedPage<'t> {
    pub(crate) server: RunningRaymond<'t>,
    pub(crate) client: PageClient,
    /// The first address, with the token.
    pub(crate) first: String,
}

impl Test {
    /// Starts `raymond serve`, and waits for its address.
    pub(crate) fn serve(&self, arguments: &[&str]) -> ServedPage<'_> {
        let mut all = vec!["serve"];
        all.extend(arguments);
        let mut server = self.start(&all);
        server.wait_stdout("?token=");
        let first = server.stdout().trim().to_owned();
        let rest = first.strip_prefix("http://").expect("an address");
        let (address, token) = rest.split_once("/?token=").expect("an address and a token");
        let client = PageClient::new(address, token);
        ServedPage { server, client, first }
    }
}
