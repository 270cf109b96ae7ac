// Swagger UI has a dark mode that a class turns on; the theme is the one of all pages.
"use strict";
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function apply() {
    const theme = root.dataset.theme;
    root.classList.toggle("dark-mode", theme === "dark" || (theme !== "light" && dark.matches));
  }

  new MutationObserver(apply).observe(root, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", apply);
  apply();
})();
