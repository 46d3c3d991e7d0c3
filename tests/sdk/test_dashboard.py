"""The dashboard in a real browser, before a real gateway: what is seen, and what a hand can do."""

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import httpx2 as httpx
import pytest
from browser import PHONE, Browser, expect
from provider import Reply

FAILS = Reply(status=503)


@pytest.fixture(scope="module")
def chromium():
    with Browser.started() as browser:
        yield browser


@pytest.fixture
def visit(chromium):
    """Opens pages; afterwards nothing may have gone wrong in any of them, and nobody else may have been asked."""
    visits = []

    def start(admin: str, size: dict | None = None, hash: str = "", **look):
        visit = chromium.page(size, **look)
        visits.append((visit, admin))
        return visit.open(admin, hash)

    yield start
    chromium.leave()
    for visit, admin in visits:
        assert visit.wrong == []
        assert [url for url in visit.requests if not url.startswith(admin + "/")] == []


@pytest.fixture
def watched(launch, primary):
    """A gateway with one provider, `primary`, whose breakers open at the fifth failure; `ask` makes calls."""

    def start(top: str = "", breaker: str = 'cooldown = "60s"', environment: dict[str, str] | None = None):
        return launch(
            f"""
            {top}
            [providers.primary]
            protocol = "openai"
            base_url = "{primary.url}/v1"
            api_key = "primary-key"

            [[routes]]
            model = "*"
            targets = [{{ provider = "primary" }}]
            retries = 0

            [breaker]
            trip = [{{ rule = "consecutive", failures = 5 }}]
            jitter = 0.0
            {breaker}
            """,
            environment,
        )

    return start


def ask(gateway, *models: str):
    """One call a model."""
    with httpx.Client(timeout=20) as client:
        for model in models:
            client.post(f"{gateway.url}/v1/chat/completions", json={"model": model, "messages": [{"role": "user", "content": "?"}]})


def test_a_click_forces_a_breaker_open_and_another_releases_it(watched, visit):
    gateway = watched()
    ask(gateway, "gpt-5")
    desk = visit(gateway.admin)
    desk.shows("#verdict", "All 3 breakers closed")
    page = desk.page
    desk.row("primary/gpt-5").click()
    desk.shows("#detail-state", "Closed")

    page.get_by_role("button", name="Force open").click()
    page.get_by_role("button", name="Cancel").click()
    assert gateway.all_closed(), "a command that was not confirmed is not carried out"

    page.get_by_role("button", name="Force open").click()
    desk.shows("#command-title", "Force open primary/gpt-5")
    page.get_by_label("For", exact=True).select_option("30 minutes")
    page.get_by_label("Note").fill("they said <b>so</b>")
    page.locator("#command-go").click()
    desk.shows("#detail-state", "Forced open")
    desk.shows("#detail-note", "they said <b>so</b>")
    desk.shows("#detail-clock", re.compile(r"Back to its rules in (29:5\d|30:00)"))
    desk.shows("#verdict", "1 of 3 breakers turns calls away")
    expect(desk.row("primary/gpt-5")).to_contain_text("Forced open")
    assert desk.names()[0] == "primary/gpt-5", "the worst is first"
    forced = gateway.the_broken()
    assert (forced["name"], forced["state"]) == ("primary/gpt-5", "forced_open")
    desk.picture("forced")

    page.get_by_role("button", name="Release").click()
    page.locator("#command-go").click()
    desk.shows("#detail-state", "Closed")
    assert gateway.all_closed()


def test_an_outage_arrives_with_its_reason_and_goes_with_its_length(watched, visit, primary):
    gateway = watched(breaker='cooldown = "300ms"\nbackoff = 1.0')
    ask(gateway, "gpt-5")
    wall = visit(gateway.admin)
    wall.shows("#verdict", "All 3 breakers closed")
    wall.shows("#link-text", "Live")
    primary.answer(FAILS)
    ask(gateway, *["gpt-5"] * 5)
    row = wall.row("primary/gpt-5")
    expect(row.locator(".state")).to_have_text("Open")
    expect(row.locator(".why")).to_have_text("5 failures in a row, limit 5 (overloaded)")
    expect(row.locator(".clock")).to_have_text("next call is a probe")
    expect(row.locator(".number").first).to_have_text(re.compile(r"^\d+ % failed$"))
    wall.shows("#verdict", "1 of 3 breakers turns calls away")
    expect(wall.page).to_have_title("1 open · Fuseline")
    latest = wall.text("#log > .event").first
    expect(latest).to_contain_text("primary/gpt-5 Open")
    wall.picture("outage")

    primary.answer(Reply())
    gateway.wait_for_end_of_cooldown()
    ask(gateway, "gpt-5", "gpt-5")
    expect(row.locator(".state")).to_have_text("Closed")
    expect(latest).to_contain_text("2 of 2 probes were good; the incident lasted")
    wall.shows("#verdict", "All 3 breakers closed")
    told = wall.page.eval_on_selector_all("#log .state", "states => states.map(state => state.textContent)")
    assert told == ["Closed", "Half-open", "Open", "Degraded"], "each transition once, the latest first"

    # Whoever comes later sees the same past, and the history of the one breaker.
    later = visit(gateway.admin, hash="#/primary%2Fgpt-5")
    expect(later.text("#log > .event")).to_have_count(4)
    expect(later.text("#detail-history > .event")).to_have_count(4)
    later.shows("#detail-why", "2 of 2 probes were good.")


def test_five_hundred_breakers_are_searched_sorted_and_left_alone(watched, visit, primary):
    gateway = watched()
    models = [f"model-{number}" for number in range(498)]
    with ThreadPoolExecutor(8) as crowd:
        list(crowd.map(lambda some: ask(gateway, *some), [models[start::8] for start in range(8)]))
    primary.answer(FAILS)
    ask(gateway, *["model-77"] * 5)
    wall = visit(gateway.admin)
    wall.shows("#verdict", "1 of 500 breakers turns calls away")
    names = wall.names()
    assert len(names) == 500
    assert names[:4] == ["primary/model-77", "primary", "primary/model-0", "primary/model-1"], "numbers as numbers"
    assert wall.is_as_wide_as_its_window()
    expect(wall.text("#map > i")).to_have_count(500)
    wall.picture("500")

    page = wall.page
    page.evaluate(
        """() => {
            scrollTo(0, 4000);
            window.seen = { changes: 0, moves: 0 };
            new MutationObserver((all) => all.forEach(({ type, target }) => {
                if (target.closest?.(".in-closed") || type === "childList") seen[type === "childList" && target.id === "list" ? "moves" : "changes"] += 1;
            })).observe(document.getElementById("list"), { subtree: true, childList: true, attributes: true, characterData: true });
        }"""
    )
    with page.expect_response(lambda answer: answer.url.endswith("/breakers")):
        pass
    primary.answer(Reply())
    ask(gateway, "model-400")
    with page.expect_response(lambda answer: answer.url.endswith("/breakers")):
        pass
    seen = page.evaluate("() => ({ ...seen, scroll: scrollY })")
    assert seen["moves"] == 0 and seen["scroll"] == 4000, seen
    assert seen["changes"] < 50, f"what stays the same is not written again: {seen}"

    page.get_by_label("Search breakers").fill("MODEL-49 open")
    expect(wall.text("#list > .row:visible")).to_have_count(0)
    page.get_by_label("Search breakers").fill("MODEL-49")
    expect(wall.text("#list > .row:visible")).to_have_count(9)
    page.get_by_label("Search breakers").fill("nothing of the kind")
    wall.shows("#none", "Nothing fits")
    page.get_by_role("button", name="Show all breakers").click()
    page.get_by_role("button", name=re.compile("^Open 1$")).click()
    expect(wall.text("#list > .row:visible")).to_have_count(1)


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "'\"`</script>\u2028<svg onload=alert(4)>",
    "\u202egnol os ton",
    "نموذج كبير",
    "🧯👩‍🚒🔥 model",
    "../../reset?a=b#c",
    "a%2Fb%00c",
    "javascript:alert(3)",
    "a" * 200 + "z",
]


def test_report_150_names_are_text_whatever_they_are(watched, visit):
    gateway = watched()
    ask(gateway, *HOSTILE)
    desk = visit(gateway.admin)
    desk.shows("#verdict", f"All {2 + len(HOSTILE)} breakers closed")
    with httpx.Client() as client:
        headers = client.get(f"{gateway.admin}/breakers").headers
    assert (headers["content-type"], headers["x-content-type-options"]) == ("application/json", "nosniff")
    names = desk.names()
    for name in HOSTILE:
        assert f"primary/{name}" in names
    for at, name in enumerate(names):
        desk.page.locator("#list > .row").nth(at).click()
        expect(desk.text("#detail-name")).to_have_text(name)
        desk.shows("#detail-kind", "of primary")
        expect(desk.text("#detail-why")).to_have_text("It has never left closed.")
    assert desk.is_as_wide_as_its_window()
    assert desk.page.locator("#list script, #list img, #detail script, #detail img").count() == 0
    desk.picture("hostile")
    with pytest.raises(Exception, match="TrustedHTML"):
        desk.page.evaluate("document.body.innerHTML = '<b>no</b>'")


def test_report_150_a_name_of_ten_thousand_letters_is_cut_in_the_list_and_whole_in_its_place(watched, visit):
    gateway = watched()
    ask(gateway, "gpt-5")
    views = json.loads(gateway.get("/breakers"))
    monster = "primary/" + "🦕x" * 5_000
    view = next(view for view in views if view["name"] == "primary/gpt-5")
    desk = visit("about:blank#")
    page = desk.page
    page.route("**/breakers", lambda route: route.fulfill(json=[*views, view | {"name": monster}]))
    page.route("**/breakers/*", lambda route: route.fulfill(json=view | {"name": monster, "note": None, "history": []}))
    desk.open(gateway.admin)
    desk.shows("#verdict", f"All {len(views) + 1} breakers closed")
    row = page.locator("#list > .row").filter(has_text="🦕").first
    assert len(row.inner_text()) < 300
    assert desk.is_as_wide_as_its_window()
    row.click()
    expect(desk.text("#detail-name")).to_have_text(monster)
    assert page.locator("#detail h2").bounding_box()["height"] < 300
    desk.requests.clear()


def test_a_phone_shows_everything_and_its_buttons_fit_a_thumb(watched, visit, primary):
    gateway = watched()
    primary.answer(FAILS)
    ask(gateway, *["a-model-with-quite-a-long-name-20261130"] * 5, "other")
    phone = visit(gateway.admin, PHONE, has_touch=True, is_mobile=True, reduced_motion="reduce")
    page = phone.page
    phone.shows("#verdict", "1 of 3 breakers turns calls away")
    assert phone.is_as_wide_as_its_window()
    phone.picture("phone")
    page.get_by_role("button", name="Events", exact=True).tap()
    expect(phone.text("#log > .event").first).to_be_visible()
    expect(phone.text("#list")).to_be_hidden()
    page.get_by_role("button", name="Breakers", exact=True).tap()
    page.locator("#list > .row").first.tap()
    phone.shows("#detail-state", "Open for")
    assert phone.is_as_wide_as_its_window()
    box = page.locator("#detail").bounding_box()
    assert (box["x"], box["width"]) == (0, PHONE["width"])
    for button in page.locator("#detail .switches button").all():
        box = button.bounding_box()
        assert box["height"] >= 44 and box["x"] + box["width"] <= PHONE["width"]
    phone.picture("phone-detail")
    page.get_by_role("button", name="Close", exact=True).tap()
    expect(phone.text("#detail")).to_be_hidden()


def test_everything_can_be_done_with_the_keyboard_alone(watched, visit):
    gateway = watched()
    ask(gateway, "gpt-5", "gpt-5-mini", "o9")
    desk = visit(gateway.admin)
    desk.shows("#verdict", "All 5 breakers closed")
    press = desk.page.keyboard.press
    focused = "() => document.activeElement.closest('[data-breaker]')?.dataset.breaker ?? document.activeElement.id"
    press("/")
    assert desk.page.evaluate(focused) == "search"
    desk.page.keyboard.type("gpt")
    press("ArrowDown")
    assert desk.page.evaluate(focused) == "primary/gpt-5"
    press("j")
    assert desk.page.evaluate(focused) == "primary/gpt-5-mini"
    press("Enter")
    expect(desk.text("#detail-state")).to_be_visible()
    press("Tab")
    press("Tab")
    assert desk.page.evaluate("document.activeElement.textContent") == "Force open"
    press("Enter")
    desk.shows("#command-title", "Force open primary/gpt-5-mini")
    press("Tab")
    desk.page.keyboard.type("by hand")
    press("Enter")
    desk.shows("#detail-state", "Forced open")
    desk.shows("#detail-note", "by hand")
    assert gateway.the_broken()["name"] == "primary/gpt-5-mini"
    press("Escape")
    expect(desk.text("#detail")).to_be_hidden()
    assert desk.page.evaluate(focused) == "primary/gpt-5-mini", "back where it was opened"
    press("?")
    expect(desk.text("#keys")).to_be_visible()
    press("Tab")
    press("Shift+Tab")
    assert desk.page.evaluate("document.activeElement.textContent") == "Reset all breakers"
    press("Enter")
    desk.shows("#command-title", "Reset all breakers")
    press("Enter")
    expect(desk.text("#command")).to_be_hidden()
    assert gateway.all_closed()


CONTRAST = """() => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const light = (name) => {
        paint.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
        paint.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...paint.getImageData(0, 0, 1, 1).data].map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const pairs = {};
    for (const ink of ["text", "calm", "closed", "degraded", "held", "half_open", "open", "forced_open", "forced_closed"])
        for (const ground of ["ground", "panel"]) {
            const [high, low] = [light(`--${ink}`), light(`--${ground}`)].sort((a, b) => b - a);
            pairs[`${ink} on ${ground}`] = (high + 0.05) / (low + 0.05);
        }
    return pairs;
}"""


def test_dark_and_light_follow_the_system_or_the_switch_and_can_be_read(watched, visit):
    gateway = watched()
    ask(gateway, "gpt-5")
    grounds = {}
    for scheme in ["dark", "light"]:
        desk = visit(gateway.admin, color_scheme=scheme, reduced_motion="reduce")
        desk.shows("#verdict", "All 3 breakers closed")
        grounds[scheme] = ground(desk)
        faint = {pair: ratio for pair, ratio in desk.page.evaluate(CONTRAST).items() if ratio < 4.5}
        assert faint == {}, scheme
        desk.picture(scheme)
        assert desk.page.evaluate("document.getAnimations().length") == 0, "who wants no motion gets none"
    assert grounds["dark"] != grounds["light"]
    switch = desk.page.get_by_role("button", name="Auto")
    switch.click()
    assert ground(desk) == grounds["dark"]
    desk.page.reload()
    desk.shows("#theme-text", "Dark")
    assert ground(desk) == grounds["dark"], "the choice is kept"


def ground(visit) -> str:
    return visit.page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_nothing_yet_and_then_the_first_call(watched, visit):
    gateway = watched()
    desk = visit(gateway.admin)
    desk.shows("#empty", "No breakers yet")
    desk.shows("#verdict", "Nothing to watch yet")
    desk.picture("empty")
    ask(gateway, "gpt-5")
    expect(desk.row("primary/gpt-5")).to_be_visible()
    expect(desk.text("#empty")).to_be_hidden()


def test_a_stopped_gateway_is_told_and_its_return_too(watched, visit):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        admin = f"127.0.0.1:{held.getsockname()[1]}"
    gateway = watched(environment={"FUSELINE_ADMIN_LISTEN": admin})
    ask(gateway, "gpt-5")
    desk = visit(gateway.admin)
    desk.shows("#link-text", "Live")
    assert gateway.stop() == 0
    desk.shows("#link-text", "Disconnected")
    desk.shows("#trouble", "The gateway cannot be reached.")
    desk.shows("#trouble", "What is shown is as of")
    expect(desk.row("primary/gpt-5")).to_be_visible()
    desk.picture("disconnected")
    desk.page.get_by_role("button", name="Try now").click()
    watched(environment={"FUSELINE_ADMIN_LISTEN": admin})
    desk.shows("#link-text", "Live")
    expect(desk.text("#trouble")).to_be_hidden()
    expect(desk.row("primary/gpt-5")).to_have_count(0)


def test_a_token_is_asked_for_kept_in_the_tab_and_sent(watched, visit):
    gateway = watched(top='admin_token = "opensesame"')
    ask(gateway, "gpt-5")
    desk = visit(gateway.admin)
    page = desk.page
    desk.shows("#token-title", "asks for a token")
    desk.picture("token")
    for token in ["wrong", "opensesame"]:
        if token != "wrong":
            desk.shows("#token-error", "That is not the token")
        page.get_by_role("textbox", name="Token").fill(token)
        page.keyboard.press("Enter")
    desk.shows("#link-text", "Live")
    expect(desk.row("primary")).to_be_visible()
    assert page.evaluate("Object.values(sessionStorage)") == ["opensesame"]
    assert "opensesame" not in page.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
    page.reload()
    desk.shows("#link-text", "Live")
    expect(desk.text("#token")).to_be_hidden()
    expect(page.locator("body")).to_have_attribute("data-phase", "live")
    desk.row("primary").click()
    page.get_by_role("button", name="Force closed").click()
    page.locator("#command-go").click()
    desk.shows("#detail-state", "Forced closed")


def test_what_the_gateway_refuses_is_said_in_its_words(watched, visit):
    gateway = watched()
    ask(gateway, "gpt-5")
    desk = visit(gateway.admin)
    page = desk.page
    desk.row("primary/gpt-5").click()
    desk.shows("#detail-state", "Closed")
    page.route("**/reset", lambda route: route.fulfill(status=400, json={"error": "not <i>today</i>"}))
    page.get_by_role("button", name="Reset").click()
    page.locator("#command-go").click()
    desk.shows("#command-error", "Not done: not <i>today</i>")
    page.keyboard.press("Escape")

    # No seat at the feed: asking alone goes on.
    page.route("**/events*", lambda route: route.fulfill(status=503, json={"error": "64 listen"}))
    page.reload()
    desk.shows("#link-text", "Live, by asking")
    expect(desk.row("primary/gpt-5")).to_be_visible()

    gap = 'event: missed\ndata: {"missed":7}\n\n'
    page.route("**/events*", lambda route: route.fulfill(body=gap, headers={"content-type": "text/event-stream"}))
    page.reload()
    desk.shows("#log", "7 transitions were not told here")

    page.route("**/breakers", lambda route: route.fulfill(status=403, json={"error": "another site"}))
    page.reload()
    desk.shows("#trouble", "The gateway refuses to tell. another site.")

    page.route("**/breakers", lambda route: None)
    page.reload()
    expect(desk.text(".skeleton")).to_be_visible()
    desk.shows("#verdict", "Asking the gateway")


def test_a_breaker_that_is_gone_is_said_to_be(watched, visit):
    gateway = watched()
    desk = visit(gateway.admin, hash=f"#/{quote('primary/never', safe='')}")
    desk.shows("#detail-why", 'no breaker is called "primary/never"')
    expect(desk.text("#detail-why")).to_be_visible()
    expect(desk.text("#detail .switches")).to_be_hidden()
