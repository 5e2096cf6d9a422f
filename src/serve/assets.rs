//! The files of the page, which are within the program. They are written by hand: nothing builds them.

/// A file of the page.
#[derive(Debug, PartialEq, Eq)]
pub struct PageAsset {
    /// The name.
    pub name: &'static str,
    /// The type of its content.
    pub kind: &'static str,
    /// The content.
    pub text: &'static str,
}

macro_rules! assets {
    ($($name:literal: $kind:literal),* $(,)?) => {
        &[$(PageAsset { name: $name, kind: $kind, text: include_str!(concat!("assets/", $name)) }),*]
    };
}

/// All files but the page itself.
const ASSETS: &[PageAsset] = assets! {
    "style.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "api.js": "text/javascript; charset=utf-8",
    "format.js": "text/javascript; charset=utf-8",
    "runs.js": "text/javascript; charset=utf-8",
    "run.js": "text/javascript; charset=utf-8",
    "tree.js": "text/javascript; charset=utf-8",
    "rows.js": "text/javascript; charset=utf-8",
    "log.js": "text/javascript; charset=utf-8",
    "graph.js": "text/javascript; charset=utf-8",
    "timeline.js": "text/javascript; charset=utf-8",
    "costs.js": "text/javascript; charset=utf-8",
    "agent.js": "text/javascript; charset=utf-8",
    "conversation.js": "text/javascript; charset=utf-8",
    "diff.js": "text/javascript; charset=utf-8",
    "needs.js": "text/javascript; charset=utf-8",
    "question.js": "text/javascript; charset=utf-8",
    "actions.js": "text/javascript; charset=utf-8",
    "start.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
};

/// The page.
pub const PAGE: PageAsset = PageAsset {
    name: "index.html",
    kind: "text/html; charset=utf-8",
    text: include_str!("assets/index.html"),
};

impl PageAsset {
    /// Returns the file of a name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ASSETS.iter().find(|asset| asset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways in which a text could become HTML or a program.
    const FORBIDDEN: [&str; 12] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
        "srcdoc",
        "javascript:",
        "createContextualFragment",
        "setHTML",
        "http://",
    ];

    #[test]
    fn no_script_makes_html_of_a_text() {
        for asset in ASSETS.iter().filter(|asset| asset.kind.starts_with("text/javascript")) {
            for word in FORBIDDEN {
                let found = asset.text.replace("http://www.w3.org/2000/svg", "");
                assert!(!found.contains(word), "{}: {word}", asset.name);
            }
        }
    }

    #[test]
    fn page_has_no_script_of_its_own_and_loads_only_its_files() {
        let page = PAGE.text;
        assert!(!page.contains("style=") && !page.contains("<style") && !page.contains(" on"));
        for part in page.split("src=\"").chain(page.split("href=\"")).skip(1) {
            let path = part.split('"').next().unwrap_or_default();
            let is_own =
                path.strip_prefix("/assets/").is_some_and(|name| PageAsset::named(name).is_some());
            assert!(
                is_own
                    || path == "/"
                    || path == "/needs-you"
                    || path == "/start"
                    || path.starts_with('#')
                    || path.starts_with("<!"),
                "{path}"
            );
        }
    }

    #[test]
    fn page_asks_for_all_its_modules_at_once() {
        let is_module = |asset: &&PageAsset| asset.kind.starts_with("text/javascript");
        for asset in ASSETS.iter().filter(is_module).filter(|asset| asset.name != "app.js") {
            let line = format!("<link rel=\"modulepreload\" href=\"/assets/{}\">", asset.name);
            assert!(PAGE.text.contains(&line), "{line}");
        }
    }

    #[test]
    fn each_module_imports_only_modules_that_are_here() {
        for asset in ASSETS.iter().filter(|asset| asset.kind.starts_with("text/javascript")) {
            for line in asset.text.lines().filter(|line| line.starts_with("import ")) {
                let from = line.rsplit('"').nth(1).unwrap_or_default();
                let name = from.strip_prefix("./").unwrap_or_default();
                assert!(PageAsset::named(name).is_some(), "{}: {line}", asset.name);
            }
        }
    }
}
