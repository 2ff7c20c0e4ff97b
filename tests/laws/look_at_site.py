"""Opens pages of a built site in Chromium, narrow and wide, and prints what is wrong with them, a line each.

`python tests/laws/look_at_site.py FOLDER CHROMIUM [PICTURES]`; needs Playwright.
"""

import functools
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PAGES = (
    "index", "guide", "tutorials/index", "tutorials/first_posterior", "tutorials/ode_from_csv", "coming_from",
    "gallery/index", "gallery/r2sgld_fig5_flower", "gallery/csgld_fig1", "reference/toolkit", "targets",
)  # fmt: skip
WIDTHS = (400, 1400)
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
BROKEN = "[...document.images].filter(image => image.naturalWidth === 0).map(image => image.src)"
LOAD = "[...document.images].forEach(image => { image.loading = 'eager'; })"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_):
        pass


def look_at(folder, chromium, pictures=None):
    """What is wrong: console errors, images that do not load, pages that are wider than the window."""
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address, wrong = f"http://127.0.0.1:{server.server_address[1]}", []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            said = []
            page.on(
                "console", lambda message, said=said: said.append(message.text) if message.type == "error" else None
            )
            page.on("pageerror", lambda error, said=said: said.append(str(error)))
            for name in PAGES:
                said.clear()
                page.goto(f"{address}/{name}.html", wait_until="load")
                page.evaluate(LOAD)
                page.wait_for_load_state("networkidle")
                found = [f"says {text}" for text in said] + [f"has no {source}" for source in page.evaluate(BROKEN)]
                wider = page.evaluate(WIDER)
                found += [f"is {wider} pixels too wide"] if wider > 0 else []
                wrong += [f"{name} at {width}: {text}" for text in found]
                if pictures is not None:
                    page.screenshot(path=str(Path(pictures) / f"{name.replace('/', '_')}_{width}.png"))
            page.close()
        browser.close()
    server.shutdown()
    return wrong


if __name__ == "__main__":
    print(*look_at(*sys.argv[1:]), sep="\n")
