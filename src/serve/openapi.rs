//! The description of the addresses, which tests compare with what the server does.

/// The document, in version 3.1 of `OpenAPI`.
pub const DOCUMENT: &str = include_str!("../../schema/openapi.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hyper::Method;
    use serde_json::Value;

    use super::*;
    use crate::serve::routes::PageRoute;

    /// Returns an example of the path of each route; the compiler asks for a further one.
    fn path_of(route: &PageRoute) -> &'static str {
        match route {
            PageRoute::Page => "/",
            PageRoute::Asset(_) => "/assets/app.js",
            PageRoute::OpenApi => "/api/openapi.json",
            PageRoute::Runs => "/api/runs",
            PageRoute::RunsFeed => "/api/events",
            PageRoute::Questions => "/api/questions",
            PageRoute::Workflows => "/api/workflows",
            PageRoute::Run(_) => "/api/runs/{run}",
            PageRoute::RunFeed(_) => "/api/runs/{run}/events",
            PageRoute::Agents(_) => "/api/runs/{run}/agents",
            PageRoute::Costs(_) => "/api/runs/{run}/costs",
            PageRoute::CostTimes(_) => "/api/runs/{run}/cost-times",
            PageRoute::Log(_) => "/api/runs/{run}/log",
            PageRoute::Graph(_) => "/api/runs/{run}/graph",
            PageRoute::Timeline(_) => "/api/runs/{run}/timeline",
            PageRoute::Agent(..) => "/api/runs/{run}/agents/{agent}",
            PageRoute::AgentFeed(..) => "/api/runs/{run}/agents/{agent}/events",
            PageRoute::AgentDiff(..) => "/api/runs/{run}/agents/{agent}/diff",
            PageRoute::Turn(..) => "/api/runs/{run}/agents/{agent}/turns/{step}/{turn}",
            PageRoute::Action(_) => "/api/actions/answer",
        }
    }

    #[test]
    fn every_described_path_is_a_route_of_its_own() {
        let document: Value = serde_json::from_str(DOCUMENT).expect("JSON");
        let mut routes = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().expect("paths") {
            for method in operations.as_object().expect("operations").keys() {
                let method: Method = method.to_uppercase().parse().expect("a method");
                let real = path.replace("{run}", "t").replace("{agent}", "main");
                let real = real.replace("{step}", "1").replace("{turn}", "0");
                let route = PageRoute::of(&method, &real).expect(path);
                assert!(route.is_guarded(), "{path}");
                match &route {
                    PageRoute::Action(name) => assert!(path.ends_with(name.as_str()), "{path}"),
                    route => assert_eq!(path_of(route), path),
                }
                routes.insert(path.clone());
            }
        }
        // Each variant but the page, its files and the actions, which are ten.
        assert_eq!(routes.len(), 17 + 10);
    }
}
