// Keeps the page up to date: told by server-sent events, and by a poll that is slow while those flow.
"use strict";
(() => {
  const STREAM = "/live/tasks";
  const POLL = 10000;
  const POLL_WITHOUT_STREAM = 2000;
  const CONNECT_AGAIN = 10000; // after the stream was refused
  const main = document.getElementById("main");
  let stream = null;
  let due = false;
  let busy = false;
  let last = Date.now();
  let connectAt = 0;

  // Least pause between two refreshes, in ms. A refresh takes time from the agents that run in the same process.
  const rest = () => Number(document.querySelector("[data-watch]")?.dataset.rest ?? 1000);

  // What the page watches: "*", the id of a task, or nothing any more.
  const watched = () => document.querySelector("[data-watch]")?.dataset.watch ?? "";

  function show(state) {
    for (const sign of document.querySelectorAll("[data-live-sign]")) {
      sign.dataset.liveSign = watched() ? state : "off";
      sign.title = state === "on" ? "This page updates by itself" : "Looking for changes every two seconds";
    }
  }

  async function refresh() {
    due = true;
    if (busy || document.hidden || !watched()) return;
    busy = true;
    while (due && watched()) {
      due = false;
      const started = Date.now();
      try {
        const address = location.pathname + location.search;
        await htmx.ajax("GET", address, { source: main, target: main, swap: "sections" });
      } catch {
        // The server is away; the poll tries again.
      }
      last = Date.now();
      const raw = document.querySelector("details[data-raw][open]");
      if (raw) htmx.trigger(raw, "stale");
      await new Promise((wake) => setTimeout(wake, Math.max(rest(), 4 * (last - started))));
    }
    busy = false;
    if (!watched()) disconnect();
  }

  function disconnect() {
    stream?.close();
    stream = null;
    show("off");
  }

  function connect() {
    if (stream || document.hidden || !watched() || Date.now() < connectAt) return;
    stream = new EventSource(STREAM);
    stream.addEventListener("open", () => {
      show("on");
      refresh(); // what changed while nobody listened
    });
    stream.addEventListener("error", () => {
      show("polling");
      if (stream?.readyState !== EventSource.CLOSED) return; // the browser connects again by itself
      stream = null;
      connectAt = Date.now() + CONNECT_AGAIN;
    });
    stream.addEventListener("tasks", (event) => {
      const ids = JSON.parse(event.data);
      if (watched() === "*" || ids.includes("*") || ids.includes(watched())) refresh();
    });
  }

  // A browser opens few connections to one host: tabs that nobody looks at give theirs back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else {
      connect();
      if (due) refresh();
    }
  });

  setInterval(() => {
    if (!watched()) return;
    const flowing = stream?.readyState === EventSource.OPEN;
    if (Date.now() - last >= (flowing ? POLL : POLL_WITHOUT_STREAM)) refresh();
    connect();
  }, 1000);

  show("polling");
  connect();
})();
