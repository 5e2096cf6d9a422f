// The page: shows what its path names.

import { el, say, show } from "./dom.js";
import { ApiError, get } from "./api.js";
import { runsView } from "./runs.js";
import { runView } from "./run.js";
import { agentView } from "./agent.js";
import { needsView } from "./needs.js";
import { startView } from "./start.js";

const main = document.getElementById("main");
let current = null;

function viewOf(parts) {
  if (parts.length === 0) return runsView(main);
  if (parts[0] === "needs-you") return needsView(main);
  if (parts[0] === "start") return startView(main);
  if (parts[0] === "runs" && parts.length === 2) return runView(main, parts[1]);
  if (parts[0] === "runs" && parts[2] === "agents") return agentView(main, parts[1], parts[3]);
  show(main, el("h1", null, "Nothing here"), el("p", null, "There is no such page."));
  return null;
}

// Shows the page of the address.
function open(focus) {
  current?.close();
  current = null;
  show(main);
  const parts = location.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.getAttribute("href") === location.pathname;
    if (own) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = parts.length ? `${parts[parts.length - 1]} – raymond` : "raymond";
  current = viewOf(parts);
  if (focus) main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

document.addEventListener("click", (event) => {
  if (event.target.closest?.("a.skip")) {
    event.preventDefault();
    main.focus();
    return;
  }
  const link = event.target.closest?.("a[data-link]");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (link.pathname + link.search !== location.pathname + location.search) history.pushState(null, "", link.href);
  open(true);
});
window.addEventListener("popstate", () => open(true));

// The number of questions beside the link to them.
const badge = document.getElementById("needs-count");
async function countNeeds() {
  if (document.hidden) return;
  try {
    const runs = await get("/questions");
    const number = runs.reduce((sum, run) => sum + run.questions.length, 0);
    badge.hidden = number === 0;
    say(badge, String(number));
    badge.setAttribute("aria-label", number === 1 ? "1 question" : `${number} questions`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) refuse();
  }
}

function refuse() {
  clearInterval(timer);
  current?.close();
  show(main, el("section", { class: "card narrow" },
    el("h1", null, "This browser has no key"),
    el("p", null, "Open the address that ", el("code", null, "raymond serve"), " prints. It has a token, which this browser exchanges for a key that holds for a day.")));
}
document.addEventListener("raymond-refused", refuse);
document.addEventListener("raymond-answered", countNeeds);

const timer = setInterval(countNeeds, 5000);
open(false);
countNeeds();
