"""Themes, widths, contrast and keyboard."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.ui.browser.conftest import Site

Show = Callable[..., Page]

# Every visible text with its contrast to the ground it is drawn on, where that is too low (WCAG 2, 1.4.3).
LOW_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const light = ([r, g, b]) => [r, g, b]
    .map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const box = element.getBoundingClientRect();
    const text = walker.currentNode.data.trim();
    if (!text || box.width < 2 || !element.checkVisibility({ opacityProperty: true })) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${element.className} ${text.slice(0, 40)}`);
  }
  return [...new Set(low)];
}"""


@pytest.fixture(scope="module")
def rich(site: Site) -> str:
    """The path of a task with much in it, beside tasks of every state."""
    for agent, text in [
        ("echo", "x" * 300),
        ("ask", "a"),
        ("auth", "b"),
        ("boom", "c"),
        ("reject", "d"),
        ("direct", "e"),
    ]:
        site.send(agent, text)
    site.call("hold", "CancelTask", {"id": site.send("hold", "hold 600", wait=False)["task"]["id"]})
    site.send("hold", "hold 600", wait=False)
    table = f"| {' | '.join(['a wide column'] * 12)} |\n|{'---|' * 12}"
    parts = [
        {"text": f"# Title\n\n{table}\n\n```python\nx = 'long' {'* 3' * 90}\n```"},
        {"text": "y" * 400},
        {"data": {"key": "z" * 400, "n": 1, "t": True}},
        {"raw": "AAAA", "filename": "w" * 200 + ".bin"},
        {"url": "https://example.com/" + "v" * 300},
    ]
    return f"/tasks/{site.send('data', *parts)['task']['id']}/"


@pytest.mark.parametrize("path", ["/tasks/", "/tasks/?owner=nobody", "/webhooks/", "/catalog/", "/queue/", "rich"])
def test_no_page_is_wider_than_its_window(path: str, rich: str, open_page: Show) -> None:
    page = open_page(rich if path == "rich" else path)
    for width in (1280, 1024, 768, 390, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_bar_holds_all_that_is_in_it(open_page: Show) -> None:
    page = open_page("/tasks/")
    page.locator(".who").evaluate("(who) => (who.textContent = 'somebody.with.a.long.name@example.com')")
    for width in (1280, 901, 900, 761, 760, 681, 680, 390, 360, 320):
        page.set_viewport_size({"width": width, "height": 800})
        cut = page.evaluate("""() => [...document.querySelectorAll(".bar-inner, .bar nav, .bar a, .bar-end")]
          .filter((e) => e.scrollWidth > e.clientWidth || e.getBoundingClientRect().right > innerWidth)
          .map((e) => e.className || e.textContent || e.tagName)""")
        assert (width, cut) == (width, [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_navigation_of_a_phone(open_page: Show, scheme: str) -> None:
    """All of it is there to be tapped (WCAG 2, 2.5.8), and stays when the page is scrolled."""
    page = open_page("/tasks/", 390, color_scheme=scheme)
    links = page.get_by_role("navigation", name="Main").get_by_role("link")
    assert links.all_inner_texts() == ["Tasks", "Queue", "Webhooks", "Agents", "Admin"]
    for link in links.all():
        box = link.bounding_box()
        assert box is not None
        assert box["width"] >= 44
        assert box["height"] >= 44
    assert page.evaluate(LOW_CONTRAST) == []
    page.evaluate("document.body.style.minHeight = '3000px', scrollTo(0, 1000)")
    expect(page.locator(".brand")).not_to_be_in_viewport()
    for link in links.all():
        expect(link).to_be_in_viewport(ratio=1)
    links.get_by_text("Webhooks").click()
    expect(page.get_by_role("heading", name="Webhooks", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Webhooks")).to_have_attribute("aria-current", "page")


def test_the_keyboard_finds_what_a_phone_has_scrolled_away(open_page: Show) -> None:
    page = open_page("/tasks/", 390)
    page.evaluate("document.body.style.minHeight = '3000px', scrollTo(0, 1000)")
    page.get_by_role("link", name="Admin").focus()
    page.keyboard.press("Tab")
    theme = page.locator("[data-theme-toggle]")
    expect(theme).to_be_focused()
    expect(theme).to_be_in_viewport(ratio=1)
    page.keyboard.press("Tab")
    log_out = page.get_by_role("button", name="Log out")
    expect(log_out).to_be_focused()
    expect(log_out).to_be_in_viewport(ratio=1)


def test_filters_unfold_on_a_phone(open_page: Show) -> None:
    page = open_page("/tasks/", 360)
    expect(page.get_by_label("Owner")).to_be_hidden()
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_label("Owner")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("path", ["/tasks/", "/catalog/", "/queue/", "rich"])
def test_text_stands_out(path: str, rich: str, open_page: Show) -> None:
    page = open_page(rich if path == "rich" else path, color_scheme="light", reduced_motion="reduce")
    assert page.evaluate(LOW_CONTRAST) == []
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(LOW_CONTRAST) == []


def test_the_theme_follows_the_system_until_one_is_chosen(open_page: Show) -> None:
    page = open_page("/tasks/", color_scheme="dark")
    toggle = page.locator("[data-theme-toggle]")

    def ground() -> str:
        color: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return color

    dark = ground()
    expect(toggle).to_have_attribute("aria-label", "Theme: system")
    page.emulate_media(color_scheme="light")
    light = ground()
    assert (light, dark) == ("rgb(245, 246, 248)", "rgb(14, 17, 22)")
    toggle.click()
    expect(toggle).to_have_attribute("aria-label", "Theme: light")
    toggle.click()
    expect(toggle).to_have_attribute("aria-label", "Theme: dark")
    assert ground() == dark
    page.goto("/catalog/")
    assert ground() == dark
    page.goto("/admin/")
    expect(page.locator("html.dark")).to_be_attached()
    page.goto("/tasks/")
    toggle.click()
    assert ground() == light


def test_a_chosen_theme_is_there_before_the_first_paint(open_page: Show) -> None:
    page = open_page("/tasks/", color_scheme="light")
    page.evaluate("localStorage.setItem('adminTheme', '\"dark\"')")
    page.add_init_script("""
      new MutationObserver((_, observer) => {
        if (!document.body) return;
        window.firstTheme = document.documentElement.dataset.theme;
        observer.disconnect();
      }).observe(document, { childList: true, subtree: true });
    """)
    page.reload()
    assert page.evaluate("window.firstTheme") == "dark"


def test_a_broken_choice_means_the_system(open_page: Show) -> None:
    page = open_page("/tasks/")
    for stored in ("{broken", '"purple"', "5", ""):
        page.evaluate("(stored) => localStorage.setItem('adminTheme', stored)", stored)
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", "auto")


def test_the_keyboard_reaches_everything(open_page: Show, rich: str) -> None:
    page = open_page("/tasks/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Text in messages")).to_be_focused()
    chip = page.locator(".chip input").first
    chip.focus()
    page.keyboard.press("Space")
    expect(chip).to_be_checked()
    outline = chip.evaluate("(input) => getComputedStyle(input.parentElement).outlineStyle")
    assert outline == "solid"


def test_everything_that_is_pressed_has_a_name(open_page: Show, rich: str) -> None:
    for path in ("/tasks/", "/catalog/", rich):
        page = open_page(path)
        nameless = page.evaluate("""() => [...document.querySelectorAll("button, a[href], input, select, summary, img")]
          .filter((e) => e.checkVisibility() && !(e.ariaLabel || e.title || e.textContent.trim() || e.labels?.length))
          .filter((e) => !(e.matches("img") && e.hasAttribute("alt")))
          .map((e) => e.outerHTML)""")
        assert nameless == []
        expect(page.locator("h1")).to_have_count(1)


def test_motion_is_reduced_for_those_who_ask(open_page: Show, site: Site) -> None:
    site.send("hold", "hold 600", wait=False)
    page = open_page("/tasks/", reduced_motion="reduce")
    spinner = page.locator("#rows .state-working .icon").first
    assert spinner.evaluate("(icon) => getComputedStyle(icon).animationName") == "none"
    page.emulate_media(reduced_motion="no-preference")
    assert spinner.evaluate("(icon) => getComputedStyle(icon).animationName") == "turn"
