#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the status pages of two servers and of a trainer in headless Chromium.

  tests/deploy/status_page_test.py [--bin DIR] [--shots DIR]

As root it installs Chromium, from Debian, if it is missing. --shots keeps
screenshots in DIR, to be looked at."""
import argparse
import base64
import contextlib
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))
import deploy  # noqa: E402  (its folder comes first)
from free_port import free_port  # noqa: E402

LIMIT = 120.0  # seconds
HOSTILE = ("</script><script>document.title='owned'</script>"
           "<img src=x onerror=\"document.title='owned'\"> " + "long" * 40)

# Returns [text, contrast] of all texts with less contrast than WCAG's level AA
# asks for.
LOW_CONTRAST = """
const parse = (color) => color.match(/[\\d.]+/g).map(Number);
const part = (value) => (value /= 255) <= 0.03928
  ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) =>
  0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
function backOf(element) {
  for (; element; element = element.parentElement) {
    const color = parse(getComputedStyle(element).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
  return [255, 255, 255];
}
const bad = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || element.closest("script, noscript") ||
      element.getClientRects().length === 0) continue;
  const style = getComputedStyle(element);
  const color = parse(element.closest("svg") ? style.fill : style.color);
  const pair = [light(color), light(backOf(element))];
  const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
  if (contrast < 4.5) bad.push([texts.currentNode.data, contrast]);
}
return bad;
"""


def wait_for(what, condition):
    return deploy.await_true(what, condition, LIMIT)


def end(process):
    process.kill()
    process.wait()


class Browser:
    """Chromium, by the WebDriver protocol."""

    def __init__(self, folder):
        port = free_port()
        self.driver = subprocess.Popen(
            ["/usr/bin/chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=str(folder)))
        self.base = f"http://127.0.0.1:{port}"
        wait_for("chromedriver", self.is_ready)
        options = {"binary": "/usr/bin/chromium", "args": [
            "--headless=new", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--hide-scrollbars",
            f"--user-data-dir={folder / 'profile'}"]}
        session = self.call("/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.base += f"/session/{session['sessionId']}"

    def is_ready(self):
        try:
            return self.call("/status")["ready"]
        except urllib.error.URLError:
            return False

    def call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method,
                                         headers={"Content-Type":
                                                  "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=LIMIT) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(error.read().decode()) from None

    def quit(self):
        with contextlib.suppress(AssertionError, OSError):
            self.call("", method="DELETE")
        end(self.driver)

    def devtools(self, command, **parameters):
        return self.call("/goog/cdp/execute",
                         {"cmd": command, "params": parameters})

    def open(self, url):
        self.call("/url", {"url": url})

    def run(self, script):
        return self.call("/execute/sync", {"script": script, "args": []})

    def text(self, selector):
        return self.run("return [...document.querySelectorAll("
                        f"{json.dumps(selector)})].map((e) => e.innerText)")

    def log(self, kind):
        return self.call("/se/log", {"type": kind})

    def show_as(self, width, height, scheme):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width,
                      height=height, deviceScaleFactor=1, mobile=width < 600)
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}])

    def shot(self):
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return document.documentElement.clientWidth")
        picture = self.devtools(
            "Page.captureScreenshot", captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        return base64.b64decode(picture["data"])


class HostileServer(http.server.BaseHTTPRequestHandler):
    """Serves the page of a server, with HOSTILE in the place of its texts."""
    port = None

    def do_GET(self):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{self.path}") as response:
            body, headers = response.read(), response.headers
        if self.path == "/status.json":
            body = json.dumps(self.poison(json.loads(body))).encode()
        self.send_response(200)
        for name in "Content-Type", "Content-Security-Policy":
            self.send_header(name, headers[name])
        self.end_headers()
        self.wfile.write(body)

    def poison(self, value, key=""):
        if key == "damaged_partitions":
            return {"0": HOSTILE}
        if isinstance(value, dict):
            return {name: self.poison(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.poison(one, key) for one in value]
        if isinstance(value, str) and key != "kind":
            return HOSTILE
        return value

    def log_message(self, *_):
        pass


class StatusPageTest(unittest.TestCase):
    bin = shots = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="millrace-page-")
        cls.addClassCleanup(directory.cleanup)
        cls.folder = pathlib.Path(directory.name)
        for command in (
                ["import", "ogb", ROOT / "tests/data/cora", "--out",
                 cls.folder / "cora", "--undirected", "--coalesce"],
                ["partition", cls.folder / "cora", "--parts", "2", "--out",
                 cls.folder / "cora-2"]):
            subprocess.run([cls.bin / "millrace", *command], check=True,
                           stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        cls.browser = Browser(cls.folder)
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.ports = [free_port(), free_port()]
        self.pages = [free_port(), free_port()]
        self.servers = [self.start_server(part) for part in range(2)]
        self.browser.open("about:blank")
        self.browser.log("browser")
        self.browser.log("performance")

    def start(self, *command):
        process = subprocess.Popen([str(word) for word in command],
                                   stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(end, process)
        return process

    def start_server(self, part):
        peers = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return self.start(
            self.bin / "millrace-server", "--store", self.folder / "cora-2",
            "--partition", part, "--listen", f"127.0.0.1:{self.ports[part]}",
            "--peers", peers, "--metrics", f"127.0.0.1:{self.pages[part]}")

    def start_trainer(self):
        """Returns the port of its pages."""
        port = free_port()
        self.start(
            self.bin / "millrace-train", "--servers",
            ",".join(f"127.0.0.1:{port}" for port in self.ports), "--fanouts",
            "5,5", "--batch-size", 32, "--hidden", 64, "--threads", 1,
            "--epochs", 1000000, "--checkpoint", self.folder / f"run-{port}",
            "--metrics", f"127.0.0.1:{port}", "--cache-ratio", 0.3)
        return port

    def wait_for_states(self, *states):
        wait_for(f"the states {states}", lambda: tuple(
            self.browser.text("table .state")) == states)

    def wait_for_alert(self, text):
        wait_for(f"the alert {text!r}", lambda: any(
            text in alert for alert in self.browser.text("#alerts")))

    def keep_shot(self, name):
        if self.shots is not None:
            self.shots.mkdir(parents=True, exist_ok=True)
            (self.shots / f"{name}.png").write_bytes(self.browser.shot())

    def open_page(self, port):
        wait_for("the page", lambda: self.answers(port))
        self.browser.open(f"http://127.0.0.1:{port}/")

    def answers(self, port):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/").close()
            return True
        except urllib.error.URLError:
            return False

    def check_looks(self, name):
        """Looks at the page in all ways, and checks that everything can be
        read."""
        backs = set()
        for width, height, scheme in ((1280, 900, "light"), (1280, 900, "dark"),
                                      (900, 900, "light"), (360, 780, "light"),
                                      (360, 780, "dark")):
            self.browser.show_as(width, height, scheme)
            shown = f"{name}-{width}-{scheme}"
            wait_for("a new size", lambda: self.browser.run(
                "return innerWidth") == width)
            time.sleep(0.3)
            self.keep_shot(shown)
            self.assertLessEqual(self.browser.run(
                "return document.documentElement.scrollWidth"), width, shown)
            self.assertEqual(self.browser.run(LOW_CONTRAST), [], shown)
            backs.add(self.browser.run(
                "return getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(backs), 2)
        self.browser.show_as(1280, 900, "light")

    def check_accessible(self):
        self.assertEqual(self.browser.run("""
            return [...document.querySelectorAll("[role=img], table.wide")]
              .filter((e) => !e.getAttribute("aria-label")).length"""), 0)
        self.assertEqual(self.browser.run("""
            return [...document.querySelectorAll("thead th, tbody th")]
              .filter((e) => !e.getAttribute("scope")).length"""), 0)
        self.assertEqual(self.browser.run(
            "return document.documentElement.lang"), "en")

    def check_quiet(self, *ports, failed=False):
        """Checks that the console is empty, but for failed requests, and that
        only these ports were asked."""
        lines = [line["message"] for line in self.browser.log("browser")]
        if failed:
            lines = [line for line in lines if "net::ERR_" not in line]
        self.assertEqual(lines, [])
        hosts = tuple(f"http://127.0.0.1:{port}/" for port in ports)
        asked = []
        for line in self.browser.log("performance"):
            event = json.loads(line["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                asked.append(event["params"]["request"]["url"])
        self.assertTrue(asked)
        # A new tab is Chromium's own page.
        own = ("data:image/svg", "chrome:")
        for url in asked:
            self.assertTrue(url.startswith(hosts + own), url)

    def test_fleet(self):
        self.open_page(self.pages[0])
        self.wait_for_states("ready", "ready")
        self.assertEqual([item.split() for item in
                          self.browser.text("ul.parts li")],
                         [["0", "1", "of", "1", "ready"],
                          ["1", "1", "of", "1", "ready"]])
        rows = self.browser.text("table.wide tbody th")
        self.assertEqual(rows, [f"127.0.0.1:{self.ports[0]} this server",
                                f"127.0.0.1:{self.ports[1]}"])
        self.assertEqual(self.browser.text("#alerts"), [""])
        self.assertIn("cora-2", self.browser.text("dl.facts")[0])
        self.start_trainer()
        wait_for("the load", lambda: self.browser.run("""
            return document.querySelectorAll("svg .line").length""") == 2)
        self.check_looks("fleet")
        self.check_accessible()
        self.check_quiet(self.pages[0])

    def test_lost_servers(self):
        self.open_page(self.pages[0])
        self.wait_for_states("ready", "ready")
        end(self.servers[1])
        self.wait_for_states("ready", "unreachable")
        self.wait_for_alert("Partition 1 has no ready server.")
        self.assertIn("missing", self.browser.text("ul.parts li.bad")[0])
        self.assertTrue(self.browser.run("return document.title")
                        .startswith("\u2715"))
        self.check_looks("lost")
        self.check_quiet(self.pages[0])
        end(self.servers[0])
        self.wait_for_alert("No answer since")
        self.check_looks("silent")
        self.check_quiet(self.pages[0], failed=True)
        # It goes on as soon as there is an answer.
        self.servers = [self.start_server(part) for part in range(2)]
        self.wait_for_states("ready", "ready")
        wait_for("no alert", lambda: self.browser.text("#alerts") == [""])

    def test_trainer(self):
        port = self.start_trainer()
        self.open_page(port)
        wait_for("curves", lambda: self.browser.run("""
            return document.querySelectorAll("svg .line").length""") == 3)
        wait_for("a checkpoint", lambda: "old" in "".join(
            self.browser.text("ul.tiles")))
        self.wait_for_states("ready", "ready")
        self.assertEqual(len(self.browser.text("ul.shares li")), 6)
        self.assertIn("Computing", self.browser.run("""
            return document.querySelector(".bar").getAttribute("aria-label")"""))
        self.assertIn("sage", self.browser.text("dl.facts")[0])
        self.check_looks("trainer")
        self.check_accessible()
        end(self.servers[0])
        self.wait_for_states("unreachable", "ready")
        self.wait_for_alert("1 of 2 servers cannot be used")
        self.check_quiet(port)

    def test_hostile_texts_stay_texts(self):
        for page in self.pages[0], self.start_trainer():
            wait_for("the page", lambda: self.answers(page))
            handler = type("Handler", (HostileServer,), {"port": page})
            with http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                 handler) as server:
                threading.Thread(target=server.serve_forever,
                                 daemon=True).start()
                self.browser.open(f"http://127.0.0.1:{server.server_port}/")
                wait_for("the texts", lambda: HOSTILE[:20] in
                         self.browser.run("return document.body.innerText"))
                if page == self.pages[0]:  # trainers know of no damage
                    self.assertIn(f"partition 0 is damaged: {HOSTILE[:20]}",
                                  "".join(self.browser.text("tr.note td")))
                self.check_looks("hostile")
                self.assertEqual(self.browser.run(
                    "return document.querySelectorAll('img').length"), 0)
                self.assertEqual(self.browser.run(
                    "return document.scripts.length"), 1)
                self.assertNotEqual(self.browser.run("return document.title"),
                                    "owned")
                self.check_quiet(server.server_port)
                # The page asks the server until then.
                self.browser.open("about:blank")
                server.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=deploy.find_programs())
    parser.add_argument("--shots", type=pathlib.Path)
    flags, rest = parser.parse_known_args()
    deploy.install("chromium", "chromium-driver", "fonts-dejavu-core",
                   *deploy.LIBRARIES)
    deploy.use_pretended_cuda(flags.bin)
    StatusPageTest.bin, StatusPageTest.shots = flags.bin, flags.shots
    unittest.main(argv=[__file__, "-v", *rest])
