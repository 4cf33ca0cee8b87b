"""The page in a browser: every view by mouse and by keyboard, narrow and wide, light and dark, for everyone."""

import functools
import re
import zipfile

import pytest

from opinionpool.page.answer import PageData, Source
from opinionpool.tables.read import read_forecasts

from .conftest import watched
from .test_handover import forecasts_file

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture
def with_file(serve, tmp_path):
    path = forecasts_file(tmp_path)
    return serve(PageData(read_forecasts(path), source=Source(("file.csv",))))


def settled(page):
    """Wait until every move is drawn."""
    page.wait_for_selector("html:not([data-busy])", timeout=20_000)


def probability(page):
    settled(page)
    return page.inner_text("#probability")


def violations(page):
    """What axe finds, in words."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="tests of accessibility need axe")
    found = axe.Axe().run(page).response["violations"]
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes'][:3]]}" for each in found]


def reach(page, ident):
    """Go to a control with the tabulator key."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == ident:
            return
    raise AssertionError(f"{ident} is not reached")


def test_terms_are_explained_and_the_example_can_be_cleared(browser, serve):
    server = serve()
    with watched(browser, server.address, viewport=WIDE) as page:
        page.click("[popovertarget=help-interval]")
        assert page.is_visible("#help-interval")
        page.keyboard.press("Escape")
        assert not page.is_visible("#help-interval")
        assert "This is an example" in page.inner_text("#example")
        assert not page.is_visible("#worth-2")
        page.click("#how-2 summary")
        assert page.is_visible("#worth-2")
        page.click("#blank")
        page.wait_for_selector("text=Add the first expert below")
        assert page.inner_text("#example") == ""


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (NARROW, "dark")], ids=["wide-light", "narrow-dark"])
def test_every_view_fits_and_is_accessible(browser, with_file, size, scheme):
    with watched(browser, with_file.address, viewport=size, color_scheme=scheme) as page:
        for view in ("events", "panel", "what_if", "evidence", "hand_over"):
            page.click(f"#view-{view}")
            page.wait_for_selector(f"#view-{view}[aria-current]")
            settled(page)
            if view == "what_if":
                page.wait_for_selector("#effects svg")
            if view == "panel":
                page.click("#more summary")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            assert violations(page) == [], view


def test_by_mouse(browser, serve, tmp_path):
    server = serve()
    with watched(browser, server.address, viewport=WIDE) as page:
        before = probability(page)
        slider = page.locator("#forecast-1-slide")
        box = slider.bounding_box()
        page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2)
        page.mouse.down()
        for share in (0.7, 0.5, 0.3, 0.1):
            page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        page.mouse.up()
        after = probability(page)
        assert int(after.rstrip("%")) < int(before.rstrip("%"))
        assert page.input_value("#forecast-1") == page.input_value("#forecast-1-slide")
        page.click("#undo")
        assert probability(page) == before
        assert page.is_disabled("#undo")
        page.click("#redo")
        assert probability(page) == after
        page.fill("#new", "Dana: 35%\nEvan\t0.9\nExpert 1")
        page.click("form.adding button")
        page.wait_for_selector("#name-6")
        assert [page.input_value(f"#name-{key}") for key in (4, 5, 6)] == ["Dana", "Evan", "Expert 1"]
        assert [page.input_value(f"#forecast-{key}") for key in (4, 5, 6)] == ["35", "90", ""]
        page.click("#remove-2")
        page.wait_for_selector("#name-2", state="detached")
        page.select_option("#unit", "hit_rate")
        settled(page)
        assert "hit rate" in page.inner_text("#fold-1")
        page.click("#view-hand_over")
        with page.expect_download() as waiting:
            page.click("text=assessment.zip")
        waiting.value.save_as(tmp_path / "assessment.zip")
        with zipfile.ZipFile(tmp_path / "assessment.zip") as packed:
            assert set(packed.namelist()) == {"report.html", "panel.toml", "forecasts.csv", "command.txt"}
            assert packed.read("command.txt").decode().strip() == page.inner_text("#command")


def test_by_keyboard_alone(browser, serve):
    server = serve()
    with watched(browser, server.address, viewport=WIDE) as page:
        before = probability(page)

        tab_to = functools.partial(reach, page)
        tab_to("forecast-1-slide")
        for _ in range(25):
            page.keyboard.press("ArrowLeft")
        assert int(probability(page).rstrip("%")) < int(before.rstrip("%"))
        # What is moved keeps the focus, and a screen reader hears the answer.
        assert page.evaluate("document.activeElement.id") == "forecast-1-slide"
        assert page.inner_text("#live").startswith("The answer: ")
        page.keyboard.press("Control+z")
        settled(page)
        tab_to("forecast-1")
        page.keyboard.type("12.5")
        page.keyboard.press("Enter")
        settled(page)
        assert page.input_value("#forecast-1-slide") in {"12", "13", "12.5"}
        tab_to("fold-1")
        page.keyboard.press("Enter")
        tab_to("worth-1")
        page.keyboard.press("End")
        settled(page)
        assert page.input_value("#worth-1") == "inf"
        tab_to("new")
        page.keyboard.type("Dana 60%")
        page.keyboard.press("Enter")
        page.wait_for_selector("#name-4")
        assert page.input_value("#forecast-4") == "60"
        page.evaluate("document.activeElement.blur()")
        tab_to("view-what_if")
        page.keyboard.press("Enter")
        page.wait_for_selector("#effects svg")
        assert page.evaluate("document.activeElement.tagName") == "H2"
        tab_to("candidate_auc")
        page.keyboard.press("End")
        settled(page)
        assert "happens 99 times in 100" in page.inner_text("#work")


def test_more_than_two_outcomes(browser, serve):
    server = serve()
    with watched(browser, server.address, viewport=WIDE) as page:
        page.click("#more summary")
        page.fill("#outcomes", "north, south, nobody")
        page.press("#outcomes", "Enter")
        page.wait_for_selector("#forecast-1-0")
        assert "Nobody has given a forecast yet" in page.inner_text("#answer")
        for key, at, value in ((1, 0, "60"), (1, 1, "30"), (2, 2, "70")):
            page.fill(f"#forecast-{key}-{at}", value)
            page.press(f"#forecast-{key}-{at}", "Enter")
            settled(page)
        shares = [float(page.input_value(f"#forecast-1-{at}")) for at in range(3)]
        assert shares[1] == 30
        assert sum(shares) == pytest.approx(100, abs=0.2)
        page.select_option("#about", "2")
        settled(page)
        assert page.locator("#answer svg[role=img]").count() == 2
        assert violations(page) == []


def test_the_views_of_a_file_by_keyboard_alone(browser, with_file):
    with watched(browser, with_file.address, viewport=NARROW) as page:
        reach(page, "view-events")
        page.keyboard.press("Enter")
        page.wait_for_selector("#search")
        reach(page, "search")
        page.keyboard.type("q31")
        page.wait_for_selector("text=1 event of 32")
        reach(page, "event-31")
        page.keyboard.press("Enter")
        page.wait_for_selector("h1 >> text=q31")
        assert page.evaluate("document.activeElement.tagName") == "H2"
        page.evaluate("document.activeElement.blur()")
        reach(page, "view-evidence")
        page.keyboard.press("Enter")
        page.wait_for_selector("#findings")
        page.evaluate("document.activeElement.blur()")
        reach(page, "view-hand_over")
        page.keyboard.press("Enter")
        reach(page, "assessor")
        page.keyboard.type("Jo")
        page.keyboard.press("Enter")
        settled(page)
        reach(page, "command")
        assert "q31" in page.inner_text("#command")


def test_hostile_names(browser, serve):
    server = serve()
    with watched(browser, server.address, viewport=NARROW) as page:
        dialogs = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        name = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>" + "W" * 120
        page.fill("#name-1", name)
        page.press("#name-1", "Enter")
        page.fill("#question", name + "?")
        page.press("#question", "Enter")
        settled(page)
        for view in ("what_if", "hand_over", "panel"):
            page.click(f"#view-{view}")
            settled(page)
            page.wait_for_timeout(150)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        assert page.locator("img").count() == 0
        assert dialogs == []


def test_what_cannot_be_done_is_said(browser, serve):
    server = serve()
    with watched(browser, server.address, viewport=WIDE) as page:
        page.fill("#name-1", "Ben, banker")
        page.press("#name-1", "Enter")
        page.wait_for_selector("#expert-1 .wrong >> text=There is already an expert called")
        assert page.get_attribute("#name-1", "aria-invalid") == "true"
        # What was typed stays to be corrected.
        assert page.input_value("#name-1") == "Ben, banker"
        page.fill("#name-1", "Bea")
        page.press("#name-1", "Enter")
        page.wait_for_selector(".wrong", state="detached")
        assert page.get_attribute("#name-1", "aria-invalid") is None
        assert "Bea" in page.inner_text("#answer")


def test_a_panel_file_is_loaded(browser, serve, tmp_path):
    (tmp_path / "panel.toml").write_text('correlation = 0.1\n[experts."Zoë"]\nauc = { value = 0.9, worth = 50 }\n')
    server = serve()
    with watched(browser, server.address, viewport=WIDE) as page:
        page.click("#more summary")
        page.set_input_files("#load", tmp_path / "panel.toml")
        page.wait_for_selector("#name-4")
        assert page.input_value("#name-4") == "Zoë"
        assert page.input_value("#worth-4") == "50"
        assert page.input_value("#correlation") == "0.1"


def test_it_goes_on_after_a_reload_and_says_when_the_server_has_ended(browser, serve):
    server = serve()
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.goto(server.address)
    page.fill("#forecast-1", "3")
    page.press("#forecast-1", "Enter")
    then = probability(page)
    page.reload()
    assert probability(page) == then
    other = context.new_page()
    other.goto(server.address)
    assert probability(other) != then
    server.server.stop()
    page.wait_for_selector("#trouble >> text=has ended", timeout=15_000)
    context.close()


def test_the_report_stands_alone(browser, serve, tmp_path):
    server = serve()
    page = server.page()
    server.move(page, {"do": "assessor", "value": "Jo"})
    (tmp_path / "report.html").write_bytes(server.request(f"{page}get/report.html")[2])
    text = (tmp_path / "report.html").read_text()
    assert not re.search(r"""(src|href)=["'](?!#)""", text)
    with watched(browser, (tmp_path / "report.html").as_uri(), viewport=NARROW) as shown:
        assert shown.locator("svg[role=img]").count() == 3
        assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(shown) == []
