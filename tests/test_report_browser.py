"""Pages in a real browser: what is drawn, how it answers, what it asks for, and who can use it."""

import csv
import io
import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from vec2dag import ALIAS, bootstrap, simulate
from vec2dag.files.tables import csv_cell
from vec2dag.report import of_folder, of_model, page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
tools = pytest.importorskip(
    "benchmarks.report", reason="the driver is beside the package in a checkout, not in a source archive"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(tools.missing() is not None, reason=str(tools.missing())),
]

NAMES = (
    "<script>document.title='run'</script>",
    '"><img src=x onerror="document.title=1">',
    "</script>",
    "=1+1",
    "-2",
    'semi;colon, "quoted"',
    "two\nlines",
    "plain",
)
AXE = [Path(os.environ["AXE_CORE"])] if "AXE_CORE" in os.environ else [ROOT / "node_modules/axe-core/axe.min.js"]


@pytest.fixture(scope="module")
def model():
    X = simulate.linear_gaussian(d=8, k=2, n=400, rng=np.random.default_rng(3)).X
    fitted = ALIAS(random_state=0, knowledge={"required": [(NAMES[0], NAMES[7])]}).fit(X, names=NAMES)
    return fitted, X


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    """A page with everything: known, oriented and open edges, samples, a comparison, warnings."""
    fitted, X = model
    samples = bootstrap(ALIAS(), X, 10, names=NAMES, random_state=0, n_jobs=1)
    other = of_model(ALIAS("bge", random_state=0).fit(X, names=NAMES))
    source = of_model(fitted, X, samples)
    source.run["warnings"] = ["Duplicated columns: 'a' = 'b'; no score can tell them apart, keep one of each."]
    made = tmp_path_factory.mktemp("page") / "report.html"
    made.write_text(page(source, other), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def window(downloads):
    with tools.browser(downloads=downloads) as driver:
        yield driver


@pytest.fixture
def driver(window, file):
    """The page, freshly opened; at the end nothing may have been complained about or asked for."""
    window.get_log("browser"), window.get_log("performance")
    window.get(file.as_uri())
    assert window.execute_script("return document.documentElement.dataset.ready") == "true"
    yield window
    assert window.get_log("browser") == []
    asked = set()
    for entry in window.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.add(message["params"]["request"]["url"])
    # the download is made of what the page holds
    assert {url.split(":")[0] for url in asked} <= {"file", "blob"}
    assert {url for url in asked if url.startswith("file:")} <= {file.as_uri()}


def content(driver):
    return json.loads(driver.execute_script("return document.getElementById('report').textContent"))


def rows(driver):
    return driver.execute_script(
        "return [...document.querySelectorAll('#table tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    )


def drawn(driver):
    """Positions of the edges that can be seen."""
    return driver.execute_script(
        "return [...document.querySelectorAll('#drawing .edge')]"
        ".filter(e => getComputedStyle(e).display !== 'none').map(e => Number(e.dataset.edge))"
    )


def lit(driver, kind):
    """Positions of nodes or edges that are highlighted."""
    found = driver.execute_script(
        f"return [...document.querySelectorAll('#drawing .{kind}.on')].map(e => Number(e.dataset.{kind}))"
    )
    return set(found)


def set_value(driver, name, value, event="input"):
    driver.execute_script(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event(arguments[2], {bubbles: true}))",
        name,
        str(value),
        event,
    )


def find(driver, selector):
    return driver.find_element("css selector", selector)


def press(driver, *keys):
    from selenium.webdriver import ActionChains

    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def details(driver):
    return find(driver, "#details").text


def test_everything_is_drawn(driver):
    told = content(driver)
    assert {edge["direction"] for edge in told["edges"]} == {"free", "oriented", "known"}
    assert drawn(driver) == list(range(len(told["edges"])))
    assert len(driver.find_elements("css selector", "#drawing .node")) == 8
    for k, edge in enumerate(told["edges"]):
        group = f'#drawing [data-edge="{k}"]'
        dash, line, head, inner, opacity = driver.execute_script(
            "const g = document.querySelector(arguments[0]), l = g.querySelector('.line');"
            "return [getComputedStyle(l).strokeDasharray, Number(l.getAttribute('stroke-width')),"
            "g.querySelector('.head').getAttribute('d'), g.querySelectorAll('.inner').length,"
            "Number(getComputedStyle(l).strokeOpacity)]",
            group,
        )
        assert (dash != "none") == (edge["direction"] == "free")
        assert (head == "") == (edge["direction"] == "free")
        assert (inner == 1) == (edge["direction"] == "known")
        assert opacity == pytest.approx(0.25 + 0.75 * (1 - edge["shares"][3]))
        width = 1.25 + 4.25 * min(1, abs(edge["standardised"])) + 2.5 * (edge["direction"] == "known")
        assert line == pytest.approx(width)
    assert len(driver.find_elements("css selector", "#columns figure")) == 8
    assert len(driver.find_elements("css selector", "#curves svg")) >= 2
    assert driver.execute_script(
        "const c = document.querySelector('canvas'), p = c.getContext('2d').getImageData(0, 0, 1, 1).data;"
        "return c.width === 8 && p[3] === 255"
    )


def test_names_are_only_text(driver):
    assert driver.title.endswith("– causal graph")
    assert driver.execute_script("return document.querySelectorAll('img').length") == 0
    assert driver.execute_script("return document.scripts.length") == 2
    texts = driver.execute_script(
        "return [...document.querySelectorAll('#columns figcaption')].map(e => e.firstChild.data)"
    )
    assert texts == [name.replace("\n", "\\n") for name in NAMES]
    press_on = find(driver, '[data-node="1"]')
    driver.execute_script("arguments[0].focus()", press_on)
    press(driver, "\ue007")
    assert NAMES[1] in details(driver)
    assert driver.execute_script("return document.querySelectorAll('img').length") == 0


def test_filters(driver):
    edges = content(driver)["edges"]
    set_value(driver, "strength", 0.3)
    strong = [
        k
        for k, e in enumerate(edges)
        if abs(e["standardised"]) >= float(find(driver, "#strength").get_property("value"))
    ]
    assert drawn(driver) == strong
    assert 0 < len(strong) < len(edges)
    assert find(driver, "#count").text == f"{len(strong)} of {len(edges)} edges shown."
    assert len(rows(driver)) == len(strong)
    set_value(driver, "strength", 0)
    set_value(driver, "confidence", 80)
    sure = [k for k, e in enumerate(edges) if 1 - e["shares"][3] >= 0.8 - 1e-9]
    assert drawn(driver) == sure
    set_value(driver, "confidence", 0)
    find(driver, "#free").click()
    assert drawn(driver) == [k for k, e in enumerate(edges) if e["direction"] != "free"]
    find(driver, "#free").click()
    find(driver, "#differs").click()
    assert drawn(driver) == [k for k, e in enumerate(edges) if e["beside"] != "same"]


def test_the_table_is_sorted_and_filtered(driver):
    told = content(driver)
    heads = [e.text for e in driver.find_elements("css selector", "#table th")]
    assert heads[:6] == ["Cause", "Effect", "Direction", "Coefficient", "Std. error", "Standardised"]

    def number(text):
        return float(text.replace("−", "-"))

    column = heads.index("Coefficient")
    expected = sorted(e["coefficient"] for e in told["edges"])
    for order in ("descending", "ascending"):
        driver.find_elements("css selector", "#table th button")[column].click()
        assert driver.find_elements("css selector", "#table th")[column].get_attribute("aria-sort") == order
        values = [number(row[column]) for row in rows(driver)]
        assert values == pytest.approx(expected[::-1] if order == "descending" else expected, rel=1e-3)
    driver.find_elements("css selector", "#table th button")[1].click()
    effects = [row[1] for row in rows(driver)]
    assert len(set(effects)) > 1
    assert effects == driver.execute_script(
        "return [...arguments[0]].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))", effects
    )
    assert driver.execute_script("return document.querySelectorAll('#table th[aria-sort]').length") == 1
    set_value(driver, "filter", "PLAIN")
    assert rows(driver)
    assert all("plain" in row[0] + row[1] for row in rows(driver))
    assert len(rows(driver)) == sum("plain" in (NAMES[e["s"]], NAMES[e["t"]]) for e in told["edges"])
    set_value(driver, "filter", "no such name")
    assert rows(driver) == []
    assert not find(driver, "#download").is_enabled()


def test_the_file_has_the_filtered_rows(driver, downloads):
    set_value(driver, "strength", 0.2)
    told = content(driver)
    least = float(find(driver, "#strength").get_property("value"))
    wanted = {(e["s"], e["t"]): e for e in told["edges"] if abs(e["standardised"]) >= least - 1e-12}
    find(driver, "#download").click()
    target = downloads / told["file"]
    for _ in range(100):
        if target.exists():
            break
        time.sleep(0.1)
    text = target.read_bytes().decode("utf-8")
    target.unlink()
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    place = {csv_cell(name) if name.startswith(("=", "-")) else name: k for k, name in enumerate(NAMES)}
    assert {(place[row["source"]], place[row["target"]]) for row in read} == set(wanted)
    for row in read:
        edge = wanted[place[row["source"]], place[row["target"]]]
        assert float(row["coefficient"]) == edge["coefficient"]
        assert float(row["error"]) == edge["error"]
        shares = [float(row[k]) for k in ("same", "reversed", "free")]
        assert shares == pytest.approx(edge["shares"][:3])
    # every text is written as the command line writes it
    lines = text.split("\n", 1)[1]
    for i, j in wanted:
        assert f"{csv_cell(NAMES[i])},{csv_cell(NAMES[j])}," in lines


def test_search(driver):
    search = find(driver, "#find")
    search.send_keys("pla")
    matches = [e.text for e in driver.find_elements("css selector", "#matches button")]
    assert matches == ["plain"]
    assert driver.execute_script("return [...document.querySelectorAll('.node.match')].map(n => n.dataset.node)") == [
        "7"
    ]
    search.send_keys("\ue007")
    assert details(driver).startswith("plain")
    assert driver.execute_script("return document.activeElement.dataset.node") == "7"
    assert search.get_property("value") == ""
    search.send_keys("zzz")
    assert "No column has this in its name." in find(driver, "#matches").text


@pytest.mark.parametrize("node", [0, 3, 7])
def test_highlights(driver, model, node):
    fitted, _ = model
    A = fitted.adjacency_matrix_.astype(bool)
    reach = np.linalg.matrix_power(np.eye(8) + A, 8) > 0
    parents, children = A[:, node], A[node]
    spouses = A[:, children].any(axis=1)
    expected = {
        "neighbours": parents | children,
        "ancestors": reach[:, node],
        "descendants": reach[node],
        "blanket": parents | children | spouses,
    }
    driver.execute_script("arguments[0].focus()", find(driver, f'[data-node="{node}"]'))
    press(driver, "\ue007")
    for kind, members in expected.items():
        find(driver, f"input[value={kind}]").click()
        assert lit(driver, "node") == {*np.flatnonzero(members).tolist(), node}
        ends = [(e["s"], e["t"]) for e in content(driver)["edges"]]
        lines = {
            "neighbours": lambda i, j: node in (i, j),
            "ancestors": lambda i, j: reach[j, node],
            "descendants": lambda i, j: reach[node, i],
            "blanket": lambda i, j: node in (i, j) or A[node, j],
        }[kind]
        assert lit(driver, "edge") == {k for k, (i, j) in enumerate(ends) if lines(i, j)}
    press(driver, "\ue00c")
    driver.execute_script("document.querySelector('[data-node]').focus()")
    press(driver, "\ue00c")
    assert "Nothing chosen" in details(driver)
    assert not lit(driver, "node")


def test_an_edge_says_all_about_itself(driver):
    from selenium.webdriver import ActionChains

    edge = max(content(driver)["edges"], key=lambda e: abs(e["standardised"]))
    path = f'[data-edge="{content(driver)["edges"].index(edge)}"] .hit'
    driver.execute_script("document.getElementById('drawing').scrollIntoView({block: 'center'})")
    x, y = driver.execute_script(
        "const p = document.querySelector(arguments[0]), q = p.getPointAtLength(p.getTotalLength() * 0.5),"
        "s = new DOMPoint(q.x, q.y).matrixTransform(p.getScreenCTM()); return [s.x, s.y]",
        path,
    )
    mouse = ActionChains(driver)
    mouse.w3c_actions.pointer_action.move_to_location(int(x), int(y))
    mouse.perform()
    tip = find(driver, "#tip").text
    for word in ("coefficient", "±", "standardised", "p-value", "found in", "of the samples", "This direction"):
        assert word in tip
    mouse.click().perform()
    assert find(driver, "#tip").text == ""
    assert "standardised" in details(driver)
    assert driver.execute_script("return document.querySelectorAll('.edge.chosen').length") == 1


def drag(driver, x, y, dx, dy):
    """With the mouse, in pixels of the window."""
    from selenium.webdriver import ActionChains

    mouse = ActionChains(driver)
    mouse.w3c_actions.pointer_action.move_to_location(int(x), int(y)).pointer_down()
    mouse.w3c_actions.pointer_action.move_to_location(int(x + dx / 2), int(y + dy / 2))
    mouse.w3c_actions.pointer_action.move_to_location(int(x + dx), int(y + dy)).pointer_up()
    mouse.perform()


def test_nodes_and_the_view_can_be_dragged(driver):
    driver.execute_script("document.getElementById('drawing').scrollIntoView({block: 'center'})")
    where = "return document.querySelector('[data-node=\"7\"]').getAttribute('transform')"
    view = "return document.querySelector('#drawing > g').getAttribute('transform')"
    before, seen = driver.execute_script(where), driver.execute_script(view)
    edges = "return [...document.querySelectorAll('#drawing .line')].map(l => l.getAttribute('d')).join()"
    lines = driver.execute_script(edges)
    x, y = driver.execute_script(
        "const b = document.querySelector('[data-node=\"7\"]').getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + b.height / 2]"
    )
    drag(driver, x, y, 30, 25)
    assert driver.execute_script(where) != before
    assert driver.execute_script(edges) != lines
    assert driver.execute_script(view) == seen
    # what was dragged was not chosen
    assert "Nothing chosen" in details(driver)
    x, y = driver.execute_script(
        "const b = document.getElementById('drawing').getBoundingClientRect();return [b.left + 8, b.top + b.height / 2]"
    )
    drag(driver, x, y, 40, 10)
    assert driver.execute_script(view) != seen
    find(driver, "#fit").click()
    assert driver.execute_script(view) == seen
    find(driver, "#zoom-in").click()
    assert driver.execute_script(view) != seen


def test_the_keyboard_is_enough(driver):
    places = [(n["x"], n["y"]) for n in content(driver)["nodes"]]
    active = "return document.activeElement.dataset.node"
    find(driver, "#fit").click()
    press(driver, "\ue004")
    first = int(driver.execute_script(active))
    assert places[first][1] == min(y for _, y in places)
    order = [first]
    for _ in range(7):
        press(driver, "\ue014")
        order.append(int(driver.execute_script(active)))
    assert order == sorted(range(8), key=lambda k: places[k][::-1])
    press(driver, "\ue012")
    assert int(driver.execute_script(active)) == order[-2]
    for key, step in (("\ue013", -1), ("\ue015", 1)):
        above = places[int(driver.execute_script(active))][1]
        press(driver, key)
        assert step * (places[int(driver.execute_script(active))][1] - above) > 0
    here = int(driver.execute_script(active))
    press(driver, "\ue007")
    assert details(driver).startswith(NAMES[here].replace("\n", "\\n"))
    # from the drawing to the list of its edges, and to one of them
    press(driver, "\ue004")
    assert driver.execute_script("return document.activeElement.closest('#details') !== null")
    press(driver, "\ue007")
    assert "direction" in details(driver)
    # the focus can be seen
    driver.execute_script("document.getElementById('find').focus()")
    press(driver, "\ue004")
    assert driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    # and up and down in the table
    driver.execute_script("document.querySelector('#table tbody button').focus()")
    press(driver, "\ue015")
    assert driver.execute_script("return document.activeElement.closest('tr').rowIndex") == 2


def test_light_and_dark(driver, file):
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = driver.execute_script(colour)
    find(driver, "#theme").click()
    dark = driver.execute_script(colour)
    assert light != dark
    assert find(driver, "#theme").text == "Light"
    find(driver, "#theme").click()
    assert driver.execute_script(colour) == light
    with tools.browser(dark=True) as other:
        other.get(file.as_uri())
        assert other.execute_script(colour) == dark


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen(file, width):
    with tools.browser(width) as driver:
        driver.get(file.as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(not AXE[0].is_file(), reason="no axe-core: npm install axe-core here, or AXE_CORE=.../axe.min.js")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)])
def test_axe_finds_no_fault(file, width, dark):
    with tools.browser(width, dark=dark) as driver:
        driver.get(file.as_uri())
        driver.execute_script(AXE[0].read_text(encoding="utf-8"))
        for chosen in ("", "document.querySelector('[data-node]').focus()"):
            if chosen:
                driver.execute_script(chosen)
                press(driver, "\ue007")
            # colours are judged when they have settled
            found = driver.execute_async_script(
                "const done = arguments[0]; setTimeout(() => axe.run(document).then(done), 400)"
            )
            assert len(found["passes"]) > 30
            assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found["violations"]] == []


def test_a_large_graph_is_quick(tmp_path):
    made = tmp_path / "large.html"
    made.write_text(page(tools.random_source(500, 1000)), encoding="utf-8")
    opened, answers = tools.measure(made)
    assert opened < tools.OPEN
    assert max(answers) < tools.ANSWER


@pytest.fixture
def opened(tmp_path):
    """Opens a page at a width in pixels; yields the browser."""
    with ExitStack() as stack:

        def opened(source, width=1280):
            made = tmp_path / "report.html"
            made.write_text(page(source), encoding="utf-8")
            driver = stack.enter_context(tools.browser(width))
            driver.get(made.as_uri())
            return driver

        yield opened


@pytest.mark.parametrize(("columns", "width"), [(16, 1280), (30, 1280), (13, 390), (30, 390)])
def test_names_stand_beside_their_rows_of_the_heat_map(opened, rng, columns, width):
    X = rng.standard_normal((100, columns))
    names = [f"column {k}" for k in range(columns)]
    driver = opened(of_model(ALIAS(random_state=0).fit(X, names=names), X), width)
    boxes, top, height = driver.execute_script("""
        const canvas = document.querySelector(".heat canvas").getBoundingClientRect(), range = document.createRange();
        const ends = (li) => {
            range.selectNodeContents(li);
            const { top, bottom } = range.getBoundingClientRect();
            return [top, bottom];
        };
        return [[...document.querySelectorAll(".heat li")].map(ends), canvas.top, canvas.height]""")
    rows = top + height * (np.arange(columns) + 0.5) / columns
    np.testing.assert_allclose(np.mean(boxes, axis=1), rows, atol=2)
    # letters of a name stay in its row, but for the space above and below them
    assert np.diff(boxes).max() < 1.25 * height / columns


def test_an_arrow_points_from_cause_to_effect_where_names_are_written_from_right_to_left(opened, rng):
    X = rng.standard_normal((400, 3))
    X[:, 2] += X[:, 0] + X[:, 1]
    driver = opened(of_model(ALIAS(random_state=0).fit(X, names=("חום", "לחץ", "נפח")), X))
    cause, arrow, effect = driver.execute_script("""
        document.querySelector("#table td button").click();
        const title = document.querySelector("#details h3"), letters = [], range = document.createRange();
        const walker = document.createTreeWalker(title, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const text = walker.currentNode;
            for (let k = 0; k < text.length; k += 1) {
                range.setStart(text, k), range.setEnd(text, k + 1);
                if (text.data[k].trim()) letters.push([text.data[k], range.getBoundingClientRect().left]);
            }
        }
        const at = letters.findIndex(([letter]) => letter === "→");
        return [letters[0][1], letters[at][1], letters.at(-1)[1]]""")
    assert cause < arrow < effect


@pytest.mark.parametrize(
    ("value", "expected"), [(0.996, "0.996"), (-0.9999972, "−0.999997"), (1.0, "1"), (0.71, "0.71"), (0.9949, "0.99")]
)
def test_a_correlation_below_one_is_not_shown_as_one(opened, rng, value, expected):
    source = of_model(ALIAS(random_state=0).fit(rng.standard_normal((100, 2))))
    source.summary["correlations"][1][0] = value
    driver = opened(source)
    told = driver.execute_script("return document.querySelector('.matrix ol li').textContent")
    assert told == f"x1 and x0: {expected} (no edge)"


def test_the_page_of_a_bootstrap_speaks_of_samples(opened, tmp_path):
    X = simulate.linear_gaussian(d=6, k=2, n=200, rng=np.random.default_rng(1)).X
    bootstrap(ALIAS(), X * 10.0 ** np.arange(6), 10, random_state=0, n_jobs=1).save(tmp_path / "boot")
    driver = opened(of_folder(tmp_path / "boot"))
    edges = content(driver)["edges"]
    assert {edge["direction"] for edge in edges} == {"free", "oriented"}
    for k in range(len(edges)):
        driver.execute_script("document.querySelectorAll('#table tbody button')[arguments[0]].click()", k)
        assert "decided by the score" not in details(driver)
    assert "most samples" in driver.execute_script("return document.querySelector('.found').textContent")
    assert "fit equally well" not in find(driver, "#notes").text
    # coefficients in different units cannot be compared
    widths = driver.execute_script(
        "return [...document.querySelectorAll('#drawing .line')].map(l => l.getAttribute('stroke-width'))"
    )
    assert len(set(widths)) == 1
    assert "Width" not in find(driver, "#legend").text
    assert not find(driver, "#strength-field").is_displayed()


@pytest.mark.parametrize("name", ["W" * 22, "M" * 22, "m" * 22, "ABCDEFGHIJKLMNOPQRSTUV", "列" * 22, "i" * 22])
def test_labels_stay_in_their_boxes(opened, rng, name):
    X = rng.standard_normal((50, 2))
    driver = opened(of_model(ALIAS(random_state=0).fit(X, names=[name, "b  c"])))
    text, box = driver.execute_script("""
        const node = document.querySelector('.node[data-node="0"]');
        return ["text", "rect"].map((tag) => node.querySelector(tag).getBBox().width)""")
    assert text <= box
    # two spaces are two
    assert find(driver, '.node[data-node="1"]').get_property("textContent") == "b  c"


def test_counts_have_whole_ticks(opened, rng):
    X = rng.standard_normal((200, 3))
    X[:, 1] += X[:, 0]
    source = of_model(ALIAS(random_state=0).fit(X))
    source.summary["history"] = {"step": [1, 2, 3], "edges": [0, 1, 1], "best_score": [1.0, 2.0, 3.0]}
    driver = opened(source)
    ticks = driver.execute_script("""
        const chart = document.querySelector('#curves svg[aria-label^="Edges"]');
        return [...chart.querySelectorAll("text[text-anchor=end]")].map((t) => t.textContent)""")
    assert ticks == ["0", "1"]
    assert find(driver, "#count").text == "1 edge shown."
