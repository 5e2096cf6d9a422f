// Asks the server, and follows its streams.

import { say } from "./dom.js";

export class ApiError extends Error {
  constructor(status, message, field) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

async function answer(response) {
  const value = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, value.error || `the server answers ${response.status}`, value.field);
  return value;
}

export async function get(path, signal) {
  return answer(await fetch("/api" + path, { signal, headers: { accept: "application/json" } }));
}

export async function act(name, body) {
  const headers = { "content-type": "application/json" };
  const sent = fetch("/api/actions/" + name, { method: "POST", headers, body: JSON.stringify(body) });
  // The server may have done it before the connection broke.
  const reply = await sent.catch(() => {
    throw new ApiError(0, "No reply has come: see whether it was done before you do it again.");
  });
  return answer(reply);
}

export const path = (...parts) => "/" + parts.map(encodeURIComponent).join("/");

// Follows a stream. It is left while nobody looks at the page, and taken up again at its position.
export class Feed {
  constructor(path, handlers) {
    this.path = path;
    this.handlers = handlers;
    this.position = null;
    this.source = null;
    this.wait = 500;
    this.closed = false;
    this.seen = () => (document.hidden ? this.leave() : this.follow());
    document.addEventListener("visibilitychange", this.seen);
    this.follow();
  }

  follow() {
    if (this.closed || this.source || document.hidden) return;
    const at = this.position ? "?position=" + encodeURIComponent(this.position) : "";
    const source = new EventSource("/api" + this.path + at);
    this.source = source;
    source.onopen = () => {
      this.wait = 500;
      state("live");
    };
    source.onerror = () => this.failed(source);
    for (const [name, handle] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) this.position = event.lastEventId;
        handle(JSON.parse(event.data));
      });
    }
    for (const name of ["reset", "whole"]) {
      if (this.handlers[name]) continue;
      source.addEventListener(name, (event) => {
        if (event.lastEventId) this.position = event.lastEventId;
      });
    }
  }

  // A stream that breaks is asked for again, with the position of the last event that came.
  failed(source) {
    if (this.source !== source) return;
    this.leave();
    state("lost");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.retry(), this.wait);
    this.wait = Math.min(this.wait * 2, 5000);
  }

  // The reason is asked for, because a stream does not tell it.
  async retry() {
    if (this.closed) return;
    try {
      const response = await fetch("/api/openapi.json", { method: "GET" });
      if (response.status === 401) {
        state("no key");
        this.handlers.refused?.();
        return;
      }
    } catch {
      // The server is away; the stream is tried, which waits again.
    }
    this.follow();
  }

  leave() {
    this.source?.close();
    this.source = null;
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.seen);
    this.leave();
  }
}

const WORDS = { live: "live", lost: "not connected; trying again", "no key": "no key" };

export function state(word) {
  const element = document.getElementById("link-state");
  element.dataset.state = word;
  say(element, WORDS[word] || "");
}
