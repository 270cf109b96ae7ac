// Runs before the page is drawn, so that the chosen theme never flashes. The choice is the admin's too: same key.
"use strict";
(() => {
  const KEY = "adminTheme"; // "auto", "light" or "dark", as JSON
  const CHOICES = ["auto", "light", "dark"];
  const NAMES = { auto: "system", light: "light", dark: "dark" };
  const root = document.documentElement;

  function stored() {
    try {
      const choice = JSON.parse(localStorage.getItem(KEY) || '"auto"');
      return CHOICES.includes(choice) ? choice : "auto";
    } catch {
      return "auto"; // storage is off or holds something else
    }
  }

  function apply(choice) {
    root.dataset.theme = choice;
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      button.setAttribute("aria-label", `Theme: ${NAMES[choice]}`);
      button.title = `Theme: ${NAMES[choice]}`;
    }
  }

  root.classList.add("js");
  apply(stored());
  document.addEventListener("DOMContentLoaded", () => apply(stored()));
  window.addEventListener("storage", () => apply(stored()));
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const next = CHOICES[(CHOICES.indexOf(root.dataset.theme) + 1) % CHOICES.length];
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
    } catch {
      // Storage is off: the choice lasts as long as the page.
    }
    apply(next);
  });
})();
