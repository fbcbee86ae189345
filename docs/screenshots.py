"""Pictures of the report for the documentation: docs/img/report-desktop.png, report-dark.png and report-phone.png.

``python -m docs.screenshots``. Needs Chromium with its driver, and selenium.
"""

import base64
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.report import browser, missing
from vec2dag import ALIAS, bootstrap, datasets
from vec2dag.report import of_model, page

IMAGES = Path(__file__).resolve().parent / "img"
# Bytes of a picture at most.
LARGEST = 200_000
# By file: width and height of the window, whether it is dark, and the column that is chosen.
PICTURES = {
    "report-desktop.png": (1280, 1000, False, "PKC"),
    "report-dark.png": (1280, 1000, True, "PKC"),
    "report-phone.png": (390, 844, False, None),
}
CHOOSE = """
const node = [...document.querySelectorAll("[data-node]")].find((n) => n.textContent === arguments[0]);
node.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
"""


def example() -> str:
    """A page about the bundled table, with samples of its rows."""
    data = datasets.load("sachs")
    model = ALIAS(random_state=0).fit(data.X, names=data.names)
    samples = bootstrap(model, data.X, 100, names=data.names, random_state=0)
    return page(replace(of_model(model, data.X, samples), title="sachs"))


def main() -> None:
    """Make all pictures."""
    if (lack := missing()) is not None:
        raise SystemExit(lack)
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(example(), encoding="utf-8")
        for name, (width, height, dark, column) in PICTURES.items():
            with browser(width, height, dark=dark) as driver:
                driver.get(file.as_uri())
                if column is not None:
                    driver.execute_script(CHOOSE, column)
                # what fades has faded
                driver.execute_async_script("setTimeout(arguments[0], 400)")
                picture = base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {})["data"])
            if len(picture) > LARGEST:
                raise SystemExit(f"{name} has {len(picture) / 1e3:.0f} kB, more than {LARGEST / 1e3:.0f}")
            (IMAGES / name).write_bytes(picture)
            print(f"{name}: {len(picture) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
