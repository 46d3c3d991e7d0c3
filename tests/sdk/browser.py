"""A headless browser before a gateway's dashboard."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

ARTEFACTS = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "artefacts"
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1440, "height": 900}
PATIENCE = 15_000

expect.set_options(timeout=PATIENCE)


class Browser:
    """Runs until the end of `started`. Every page is a new visitor's."""

    def __init__(self, browser):
        self._browser = browser
        self._contexts: list[BrowserContext] = []

    @classmethod
    @contextmanager
    def started(cls):
        program = shutil.which("chromium-headless-shell")
        # The sandbox cannot be had as root in a container; the pages are our own.
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            yield cls(browser)
            browser.close()

    def page(self, size: dict | None = None, **look) -> "Visit":
        context = self._browser.new_context(viewport=size or DESK, **look)
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        return Visit(context.new_page())

    def leave(self):
        """Closes all pages."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()


class Visit:
    """One visitor's page, and all that went wrong in it."""

    def __init__(self, page: Page):
        self.page = page
        self.wrong: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (self.wrong.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, admin: str, hash: str = ""):
        self.page.goto(f"{admin}/{hash}")
        return self

    def row(self, name: str):
        return self.page.locator("#list > .row").filter(has=self.page.get_by_role("button", name=name, exact=True))

    def names(self) -> list[str]:
        """The breakers on show, from the top."""
        return self.page.eval_on_selector_all("#list > .row:not([hidden])", "rows => rows.map(row => row.dataset.breaker)")

    def text(self, selector: str):
        return self.page.locator(selector)

    def shows(self, selector: str, text):
        """Waits until it does."""
        expect(self.page.locator(selector)).to_contain_text(text)

    def is_as_wide_as_its_window(self) -> bool:
        return self.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")

    def picture(self, name: str):
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"dashboard-{name}.png")
