// Copy buttons, times that stay fresh, filters, and the swap that changes only what is different.
"use strict";
(() => {
  // --- copy -------------------------------------------------------------------------------
  function say(text) {
    const voice = document.getElementById("voice");
    voice.textContent = text;
    voice.classList.add("shown");
    clearTimeout(voice.timer);
    voice.timer = setTimeout(() => voice.classList.remove("shown"), 1600);
  }

  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea"); // plain http on another host than localhost
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }

  async function textOf(button) {
    if (button.dataset.copyUrl) {
      const reply = await fetch(button.dataset.copyUrl);
      if (!reply.ok) throw new Error(reply.statusText);
      return reply.text();
    }
    return button.dataset.copy ?? document.getElementById(button.dataset.copyFrom).textContent;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from], [data-copy-url]");
    if (!button) return;
    try {
      await copy(await textOf(button));
      say("Copied");
    } catch {
      say("Could not copy");
    }
  });

  // --- times ------------------------------------------------------------------------------
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

  function ago(time) {
    const seconds = Math.floor((Date.now() - new Date(time.dateTime)) / 1000);
    if (seconds < 5) return "just now";
    if (seconds >= 30 * 86400) return time.dateTime.slice(0, 10);
    const [length, unit] = UNITS.find(([length]) => seconds >= length);
    return `${Math.floor(seconds / length)} ${unit} ago`;
  }

  function freshen() {
    for (const time of document.querySelectorAll("time[data-ago]")) time.textContent = ago(time);
  }
  setInterval(freshen, 10000);

  // --- filters ----------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-unfold]");
    if (!button) return;
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    document.getElementById(button.getAttribute("aria-controls")).classList.toggle("unfolded", open);
  });

  document.addEventListener("htmx:configRequest", (event) => {
    if (!event.detail.elt.matches("form[data-filters]")) return;
    const { formData } = event.detail; // keep the address short: no empty filters
    for (const name of new Set(formData.keys())) {
      const values = formData.getAll(name).filter((value) => value !== "");
      formData.delete(name);
      for (const value of values) formData.append(name, value);
    }
  });

  // --- swap -------------------------------------------------------------------------------
  // A response is a whole page. Each element with `data-live` and an id takes the place of its older self if its
  // `data-v` (or, without one, its HTML) is another; children of a `data-keyed` element are compared one by one, so
  // open details, focus and selected text survive.
  const same = (old, fresh) =>
    fresh.dataset.v === undefined ? old.outerHTML === fresh.outerHTML : old.dataset.v === fresh.dataset.v;

  function replace(old, fresh) {
    for (const details of fresh.querySelectorAll("details[id]")) {
      details.open = document.getElementById(details.id)?.open ?? details.open;
    }
    old.replaceWith(fresh);
  }

  function mergeChildren(old, fresh) {
    const known = new Map([...old.children].map((child) => [child.id, child]));
    let place = old.firstElementChild;
    for (const child of [...fresh.children]) {
      const before = known.get(child.id);
      known.delete(child.id);
      if (before && same(before, child)) {
        if (before === place) place = place.nextElementSibling;
        else old.insertBefore(before, place);
        continue;
      }
      if (old.dataset.keyed === "flash") child.classList.add("fresh");
      if (before && before === place) place = place.nextElementSibling;
      if (before) replace(before, child);
      old.insertBefore(child, place);
    }
    for (const gone of known.values()) gone.remove();
  }

  function merge(old, fresh) {
    if (fresh.dataset.keyed !== undefined && old.dataset.keyed !== undefined) mergeChildren(old, fresh);
    else if (!same(old, fresh)) replace(old, fresh);
  }

  htmx.defineExtension("sections", {
    isInlineSwap: (style) => style === "sections",
    handleSwap: (style, target, fragment) => {
      if (style !== "sections") return false;
      for (const fresh of fragment.querySelectorAll("[data-live]")) {
        const old = document.getElementById(fresh.id);
        if (old) merge(old, fresh);
      }
      freshen();
      return [target];
    },
  });
})();
