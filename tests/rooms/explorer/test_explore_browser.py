"""The explorer in a real browser: Chromium of the system, driven by Playwright."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from mutandis.rooms.explorer.workbench import Draft

if TYPE_CHECKING:
    from mutandis.auditing.audit import Audit

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"),
]
PATHS = ("/", "/people?is:verdict=evidence", "/person/{place}", "/workbench")
LOOKS = [("light", 1280), ("dark", 400)]

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def served() -> Iterator[Callable[[Audit], str]]:
    """Serve audits in threads, each once."""
    pytest.importorskip("uvicorn", reason="the extra `explore` is not installed")
    from mutandis.rooms.explorer.server import listen

    running: dict[int, Any] = {}

    def serve(audit: Audit) -> str:
        if id(audit) not in running:
            listening = listen(audit, name="results")
            thread = threading.Thread(target=listening.run, daemon=True)
            thread.start()
            running[id(audit)] = (listening, thread)
        return str(running[id(audit)][0].address)

    yield serve
    for listening, thread in running.values():
        listening.server.should_exit = True
        thread.join(10)


@pytest.fixture
def open_page(browser: Any, served: Callable[[Audit], str]) -> Iterator[Open]:
    """Open pages that fail the test if anything is loaded from elsewhere, or complains."""
    contexts, faults = [], []

    def open_it(audit: Audit, path: str = "/", *, width: int = 1280, **context: Any) -> Any:
        address = served(audit)
        made = browser.new_context(viewport={"width": width, "height": 900}, **context)
        contexts.append(made)
        page = made.new_page()
        home = urlsplit(address).netloc

        def look(request: Any) -> None:
            if urlsplit(request.url).netloc != home:
                faults.append(f"loaded from elsewhere: {request.url}")

        page.on("request", look)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: faults.append("a script of the table ran"))
        page.goto(address)
        assert "token" not in page.url
        if path != "/":
            page.goto(f"http://{home}{path}")
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert faults == []


def _first_with_pattern(audit: Audit) -> int:
    return int(audit.evaluate().has_pattern.argmax())


def _changed(page: Any, selector: str, before: str) -> str:
    page.wait_for_function(
        "([selector, before]) => document.querySelector(selector).textContent !== before",
        arg=[selector, before],
    )
    return str(page.locator(selector).inner_text())


def _see_levels(page: Any, audit: Audit) -> None:
    """Move a slider of the overview: counts are those of an audit with this level."""
    before = page.locator("#counts .big").inner_text()
    page.locator("#tau").fill("0.5")
    shown = _changed(page, "#counts .big", before)
    assert page.locator("output[for=tau]").inner_text() == "0.5"
    expected = audit.with_levels(tau=0.5).results.headline.counts()
    assert shown == f"{expected['significant_adjusted']:,}"
    page.wait_for_url(re.compile("tau=0.5"))


def _find_person(page: Any, audit: Audit) -> None:
    """Filter the refused and the robust, and open the first."""
    page.goto(f"{page.url.partition('?')[0]}people")
    page.get_by_text("Filters").click()
    negative = str(audit.plan.outcome.kind.negative)
    page.locator(f"input[name='is:outcome'][value='{negative}']").check()
    page.locator("input[name='is:grade'][value='robust']").check()
    found = audit.findings()
    robust = audit.tipping()["grade"] == "robust"
    number = int((robust & (found["outcome"].astype(str) == negative)).sum())
    assert number > 1
    page.get_by_text(f"{number:,} complainants of {len(found):,}").wait_for()
    # the view is in the address
    page.reload()
    assert page.get_by_text(f"{number:,} complainants of {len(found):,}").is_visible()
    page.locator("#people tbody a").first.click()
    page.wait_for_url(re.compile("/person/"))


def _see_person(page: Any) -> None:
    """Move λ, and take the case file along."""
    before = page.locator("#trial .big").inner_text()
    page.locator("#effect").fill("0")
    _changed(page, "#trial .big", before)
    assert "with 0.0% of the effect" in page.locator("#trial").inner_text()
    with page.expect_download() as download:
        page.get_by_role("link", name="Case file", exact=True).click()
    assert "Case file" in Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename.endswith(".html")


def _try_worldview(page: Any, audit: Audit) -> None:
    """Switch the first arrow from the status off, and see who loses the verdict."""
    page.get_by_role("link", name="Workbench").click()
    status, worldview = audit.plan.protections[0].attribute, audit.plan.worldview
    assert worldview is not None
    child, equation = next(
        (child, each) for child, each in worldview.equations.items() if status in each.parents
    )
    number, cause = list(worldview.equations).index(child), equation.parents.index(status)
    page.locator(f"input[name=off][value='{number}:{cause}']").check()
    page.get_by_text(f"the arrow {status} → {child} is switched off").first.wait_for()
    page.get_by_role("button", name="Run the audit again").click()
    page.locator("#matrix-caption").wait_for(timeout=120_000)
    said = page.locator("#trial").inner_text()
    draft = Draft.read(audit.plan, [("off", f"{number}:{cause}")])
    before, after = (each.evaluate().has_pattern for each in (audit, draft.to_plan().run()))
    assert f"{int((after & ~before).sum()):,} have the pattern in this worldview only" in said
    assert f"{int((before & ~after).sum()):,} in the audit only" in said
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as audit file").click()
    assert "worldview" in Path(download.value.path()).read_text(encoding="utf-8")


def test_a_visitor_goes_from_the_overview_to_another_worldview(
    open_page: Open, loan: Audit
) -> None:
    page = open_page(loan)
    _see_levels(page, loan)
    _find_person(page, loan)
    _see_person(page)
    _try_worldview(page, loan)


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_pages_fit_and_can_be_read_by_all(
    open_page: Open, loan: Audit, scheme: str, width: int
) -> None:
    """axe-core finds nothing, and nothing is wider than the screen."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing")
    place = _first_with_pattern(loan)
    page = open_page(loan, width=width, color_scheme=scheme)
    home = page.url
    for path in PATHS:
        page.goto(f"{home.rstrip('/')}{path.format(place=place)}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        found = axe.Axe().run(page).response["violations"]
        told = [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]
        assert told == [], path


def test_pages_work_without_scripts(open_page: Open, loan: Audit) -> None:
    page = open_page(loan, java_script_enabled=False)
    page.get_by_label("Group size k").select_option("10")
    page.get_by_role("button", name="Count").click()
    page.wait_for_url(re.compile("k=10"))
    assert "k = 10" in page.locator("#counts caption").inner_text()
    page.get_by_role("link", name="People", exact=True).click()
    page.get_by_label("Id contains").fill("7")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("id=7"))
    shown = page.locator("#people tbody th").all_inner_texts()
    assert shown
    assert all("7" in each for each in shown)


def test_the_keyboard_reaches_everything(open_page: Open, loan: Audit) -> None:
    page = open_page(loan)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    wanted, seen = {"method", "k", "alpha", "tau"}, set()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id"))
    assert wanted <= seen
    page.locator("#alpha").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("alpha=0.055"))


@pytest.mark.parametrize("path", ["/", "/people", "/person/0"])
@pytest.mark.few("/person/0")
def test_hostile_tables_run_nothing(open_page: Open, hostile: Audit, path: str) -> None:
    page = open_page(hostile, path)
    assert page.locator("h1").is_visible()
    assert page.locator("main b, main i, main img:not([src='/workbench.svg'])").count() == 0


def test_another_site_gets_nothing(open_page: Open, browser: Any, loan: Audit) -> None:
    """A page of another origin can neither read, embed nor post."""
    page = open_page(loan)
    home = page.url
    other = page.context.new_page()
    other.route("http://evil.example/", lambda route: route.fulfill(body="<p>hello</p>"))
    other.goto("http://evil.example/")
    got = other.evaluate(
        """async home => {
            try { return await (await fetch(home, {credentials: "include"})).text(); }
            catch (error) { return error.name; }
        }""",
        home,
    )
    assert got == "TypeError"
    status = other.evaluate(
        """async home => {
            const frame = document.createElement("iframe");
            frame.src = home;
            document.body.append(frame);
            await new Promise(resolve => frame.onload = resolve);
            try { return frame.contentDocument.body.textContent; }
            catch (error) { return "blocked"; }
        }""",
        home,
    )
    assert "complainant" not in (status or "")
