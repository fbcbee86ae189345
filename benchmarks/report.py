"""How fast a page about a large graph opens, and how fast it answers, in a real browser.

``python -m benchmarks.report [--nodes 500] [--edges 1000]``. Needs Chromium with its driver, and selenium.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from vec2dag import Moments
from vec2dag.confidence import coefficients
from vec2dag.report import Source, page
from vec2dag.report.summaries import FORMAT, of_table

# Seconds in which a page is open, and milliseconds in which a search is answered.
OPEN, ANSWER = 3.0, 200.0

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def missing() -> str | None:
    """What a browser lacks here; None if there is one."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "a browser is driven by selenium: pip install selenium"
    if _chromium() is None or shutil.which("chromedriver") is None:
        return "there is no chromium with a chromedriver: apt-get install chromium chromium-driver"
    return None


def _chromium() -> str | None:
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


@contextmanager
def browser(
    width: int = 1280, height: int = 900, *, dark: bool = False, downloads: Path | None = None
) -> Iterator[Any]:
    """A browser of this size without a window, with an empty profile, which is removed again."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = _chromium() or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    if downloads is not None:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            yield driver
        finally:
            driver.quit()


def random_source(nodes: int, edges: int, rows: int = 400, seed: int = 0) -> Source:
    """A random graph with random data and shares of samples: as much as a page can hold."""
    rng = np.random.default_rng(seed)
    upper = np.argwhere(np.triu(np.ones((nodes, nodes)), 1))
    A = np.zeros((nodes, nodes), np.uint8)
    A[tuple(upper[rng.choice(len(upper), edges, replace=False)].T)] = 1
    X = np.linalg.solve((np.eye(nodes) - 0.3 * A).T, rng.standard_normal((nodes, rows))).T
    fitted = coefficients(Moments.of(X), A)
    listed = [
        {
            "source": int(i),
            "target": int(j),
            "direction": "free" if rng.random() < 0.3 else "oriented",
            "coefficient": float(fitted.value[i, j]),
            "error": float(fitted.error[i, j]),
            "standardised": float(fitted.standardised[i, j]),
            "p_value_given_graph": float(fitted.p_value[i, j]),
        }
        for i, j in np.argwhere(A)
    ]
    pairs = []
    for edge in listed:
        forward, backward, free, absent = rng.dirichlet([4.0, 1.0, 1.0, 2.0]).tolist()
        shares = {"forward": forward, "backward": backward, "free": free, "absent": absent}
        pairs.append({"source": edge["source"], "target": edge["target"]} | shares)
    steps = list(range(1, 501))
    history = {"step": steps, "best_score": [-1 / k for k in steps], "mean_reward": [-2 / k for k in steps]}
    return Source(
        title="random",
        label="random",
        nodes=tuple(f"column {k:03d}" for k in range(nodes)),
        edges=listed,
        made=datetime.now(UTC),
        run={"rows": rows, "warnings": []},
        summary={**FORMAT, "model": {}, "history": history, "pruning": [], **of_table(X)},
        pairs=pairs,
    )


# Two frames, as the first may have been begun before.
DRAWN = """
const done = arguments[0];
requestAnimationFrame(() => requestAnimationFrame(() => done(document.documentElement.dataset.ready)));
"""
TYPE = """
const [text, done] = arguments, find = document.getElementById("find"), start = performance.now();
find.value = text;
find.dispatchEvent(new Event("input", { bubbles: true }));
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
"""


def measure(file: Path) -> tuple[float, list[float]]:
    """Seconds until a page is drawn, and milliseconds until each of some searches is answered."""
    with browser() as driver:
        driver.get("about:blank")
        start = time.perf_counter()
        driver.get(file.as_uri())
        assert driver.execute_async_script(DRAWN) == "true", "the script of the page has not run to its end"
        opened = time.perf_counter() - start
        return opened, [
            driver.execute_async_script(TYPE, text) for text in ("c", "co", "column 4", "column 49", "", "7")
        ]


def main() -> None:
    """Make a page, open it, and print how long that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--edges", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if (lack := missing()) is not None:
        raise SystemExit(lack)
    source = random_source(args.nodes, args.edges)
    start = time.perf_counter()
    text = page(source)
    composed = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(text, encoding="utf-8")
        runs = [measure(file) for _ in range(args.repeats)]
    opened = [seconds for seconds, _ in runs]
    answers = [answer for _, each in runs for answer in each]
    print(f"{args.nodes} nodes, {args.edges} edges: {len(text) / 1e6:.2f} MB, composed in {composed:.2f} s")
    print(f"open after {statistics.median(opened):.2f} s, at most {max(opened):.2f} s (wanted: {OPEN:g} s)")
    median, most = statistics.median(answers), max(answers)
    print(f"search answered after {median:.0f} ms, at most {most:.0f} ms (wanted: {ANSWER:g} ms)")


if __name__ == "__main__":
    main()
