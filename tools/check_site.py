#!/usr/bin/env python3
"""Open the documentation site in a browser without a window.   usage: check_site.py FOLDER [SCREENSHOTS]

Pages of every kind must render, the search must find what a reader types, and the browser's console must stay without errors.
Needs Chromium (Debian: apt-get install chromium); without it nothing is checked, and a line says so. With SCREENSHOTS, a
folder, every page is drawn there.

The browser is spoken to in its own protocol (JSON over two pipes, --remote-debugging-pipe): no driver and no package is needed.
"""

import base64
import fcntl
import functools
import http.server
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PAGES = (
    "index",
    "docs/from-pytorch",
    "docs/tutorials/c",
    "docs/performance",
    "docs/decisions",
    "api/nn",
    "api/neural",
    "api/optim",
    "api/index",
)
SEARCHES = {
    "conv2d": "conv2d",
    "AdamW": "adamw",
    "safetensors": "checkpoints",
}  # what is typed: part of a link that must be found
PATIENCE = 60  # seconds until a page is given up, on a busy machine
FOUND = "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"


class Browser:
    """One page of a browser: open(url), value(javascript), errors."""

    def __init__(self, program):
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]  # out of the way of 3 and 4
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = (
            "--headless",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        )
        self.process = subprocess.Popen(
            [program, *options, "--window-size=1280,900", f"--user-data-dir={self.folder.name}"],
            close_fds=False,
            preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (to_read, to_write, *ends):
            os.close(end)
        self.rest, self.count, self.session, self.errors = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)
        self.folder.cleanup()

    def message(self):
        """The next message; what the console says is kept."""
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            if not select.select([self.read], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.read, 1 << 20)
            if not part:
                raise OSError("the browser has ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        method, about = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(
                str(about["exceptionDetails"].get("exception", {}).get("description") or about["exceptionDetails"]["text"])
            )
        elif method == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in about["args"]))
        return message

    def ask(self, method, **params):
        self.count += 1
        question = {"id": self.count, "method": method, "params": params} | (
            {"sessionId": self.session} if self.session else {}
        )
        os.write(self.write, json.dumps(question).encode() + b"\0")
        while (answer := self.message()).get("id") != question["id"]:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, url):
        self.ask("Page.navigate", url="about:blank")  # the same page once more is loaded once more
        self.ask("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url.split('?')[0])}) && document.readyState == 'complete'")

    def value(self, script):
        said = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return said["result"].get("value")

    def wait(self, script, patience=PATIENCE):
        """The value of the script as soon as it is true; None if that does not happen."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if value := self.value(script):
                return value
            time.sleep(0.05)
        return None

    def draw(self, path):
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def problems(program, folder, pages=PAGES, searches=SEARCHES, pictures=None, patience=PATIENCE):
    """What is wrong with the site: one line each."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/"
    with server, Browser(program) as browser:

        def look(name, url, *wanted):
            browser.errors.clear()
            browser.open(root + url)
            yield from (f"{name}: {what}" for what, script in wanted if not browser.wait(script, patience))
            if pictures:
                browser.draw(pictures / f"{name.replace('/', '-').replace(' ', '-')}.png")
            yield from (f"{name}: console: {error}" for error in browser.errors)

        article = "document.querySelector('article')"
        text = f"{article}?.innerText.length > 200 && {article}.querySelector('h1')?.offsetHeight > 0"
        for page in pages:
            yield from look(page, f"{page}.html", ("no heading, or no text below it", text))
        for word, link in searches.items():
            found = f"{FOUND}.some(a => a.toLowerCase().includes({json.dumps(link)}))"
            yield from look(f"search {word}", f"index.html?q={word}", (f"nothing that contains {link!r} is found", found))
        server.shutdown()


def find_browser():
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def main(folder, pictures=None):
    program = find_browser()
    if not program:
        print("site: not opened in a browser, because Chromium is not installed (apt-get install chromium)")
        return 0
    if pictures:
        pathlib.Path(pictures).mkdir(parents=True, exist_ok=True)
    found = list(problems(program, folder, pictures=pathlib.Path(pictures) if pictures else None))
    print("\n".join(found) or f"site: {len(PAGES)} pages and {len(SEARCHES)} searches are fine in a browser")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
