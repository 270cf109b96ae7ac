// Copy buttons of the admin. A path becomes a URL of the host that the page came from.
"use strict";

(() => {
  const absolute = (text) => (text.startsWith("/") ? location.origin + text : text);

  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) {
      await navigator.clipboard.writeText(text);
      return;
    }
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) throw new Error("copy refused");
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    event.preventDefault();
    const label = (button.dataset.label ??= button.textContent);
    try {
      await copy(absolute(button.dataset.copy));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copy it by hand";
    }
    setTimeout(() => (button.textContent = label), 1500);
  });

  document.addEventListener("DOMContentLoaded", () => {
    for (const code of document.querySelectorAll("code[data-url]")) {
      code.textContent = absolute(code.dataset.url);
    }
    for (const button of document.querySelectorAll("button[data-copy]")) {
      button.title = absolute(button.dataset.copy);
    }
  });
})();
