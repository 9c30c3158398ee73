#!/usr/bin/env python3
"""Opens our pages in a real browser and compares what they show with what the model adds up.

    browser_test.py WRITE_HTML_FILES

WRITE_HTML_FILES is the program that writes the pages. Exit code 77 (skipped) without Chromium
(Debian: apt-get install chromium).
"""

import html.parser
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

SKIPPED = 77
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def require(condition, *what):
    if not condition:
        print("FAILED:", *what)
        sys.exit(1)


class Page(html.parser.HTMLParser):
    """The elements of a page: (tag, attributes, text directly or below)."""

    VOID = {"meta", "input", "br", "img", "link", "hr"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for element in self.open:
            element[2].append(data)

    def all(self, tag, **wanted):
        return [e for e in self.elements if e[0] == tag and
                all(e[1].get(k.replace("_", "-")) == v for k, v in wanted.items())]

    def text(self, tag, **wanted):
        found = self.all(tag, **wanted)
        require(len(found) == 1, "one", tag, wanted, "expected, not", len(found))
        return "".join(found[0][2])

    def rows(self):
        return {a["data-name"]: a for tag, a, _ in self.elements
                if tag == "tr" and "data-total" in a}


class Browser:
    def __init__(self, chromium, folder):
        self.chromium = chromium
        self.folder = folder
        self.count = 0

    def open(self, name, **state):
        self.count += 1
        address = "file://%s/%s.html#%s" % (self.folder, name, urllib.parse.urlencode(state))
        done = subprocess.run(
            [self.chromium, *FLAGS, "--user-data-dir=%s/user%d" % (self.folder, self.count),
             "--timeout=30000", "--dump-dom", address],
            capture_output=True, text=True, timeout=120, check=False)
        require(done.returncode == 0, "chromium:", done.stderr[-2000:])
        page = Page(done.stdout)
        root = page.all("html")[0]
        require(root[1].get("data-ready") == "true", name, state, "did not start:",
                done.stderr[-2000:])
        return page


def total_of(groups):
    return sum(total for _, total in groups.values())


def check_totals(browser, name, expected):
    for kind, views in expected.items():
        for view, groups in views.items():
            page = browser.open(name, kind=kind, view=view)
            rows = page.rows()
            require(len(rows) == len(groups), kind, view, sorted(rows), sorted(groups))
            for group, (self_value, total) in groups.items():
                require(float(rows[group]["data-total"]) == total, kind, view, group, rows[group])
                if view == "functions":
                    require(float(rows[group]["data-self"]) == self_value, kind, group, rows[group])
            root = page.all("li", aria_level="1")[0][1]
            require(float(root["data-total"]) == total_of(views["endpoints"]), kind, root)


def check_filters(browser, expected):
    cpu = expected["cpu"]
    page = browser.open("shop", kind="cpu", endpoint="GET /cart", view="threads")
    root = page.all("li", aria_level="1")[0][1]
    cart = cpu["endpoints"]["GET /cart"][1]
    require(float(root["data-total"]) == cart, root, cart)
    require(sum(float(row["data-total"]) for row in page.rows().values()) == cart, page.rows())

    page = browser.open("shop", kind="cpu", q="match")
    found = page.all("span", id="matched")[0]
    require(float(found[1]["data-total"]) == cpu["functions"]["Match"][1], found)
    require("%" in "".join(found[2]), found)

    page = browser.open("shop", kind="cpu")
    items = {a["data-name"]: a for tag, a, _ in page.elements if a.get("role") == "treeitem"}
    serve = items["Serve"]
    require(float(serve["data-total"]) == cpu["functions"]["Serve"][1], serve)
    page = browser.open("shop", kind="cpu", zoom=serve["data-node"])
    crumbs = ["".join(e[2]) for e in page.elements if e[0] == "button" and not e[1].get("id")]
    require("Serve" in crumbs and "main" in crumbs, crumbs)
    require(page.all("li", aria_level="1")[0][1]["data-name"] == "Serve", "not zoomed")

    # A link that someone made up must not break the page.
    page = browser.open("shop", kind="nonsense", zoom="99999999", view="x", endpoint="<b>")
    require(len(page.rows()) == len(cpu["endpoints"]), page.rows())


def check_facts(browser):
    page = browser.open("shop")
    require("2023-11-14 22:13:20" in page.text("p", id="facts"), page.text("p", id="facts"))
    require("sampler.ring_full" in page.text("div", id="counters"), "counters")
    require("4711" in page.text("div", id="resource"), "resource")
    require("asked for" in page.text("div", id="samplers"), "samplers")
    require("http" not in "".join(v or "" for _, a, _ in page.elements for v in a.values()
                                  if a.get("http-equiv") is None and "data-name" not in a), "link")


def check_hostile(browser):
    for view in ("endpoints", "threads", "functions"):
        page = browser.open("hostile", view=view, q="<script>")
        require("owned'" in page.text("title"), page.text("title"))
        require(page.text("title") != "owned", "a name was executed")
        require(len(page.all("script")) == 2, "scripts:", len(page.all("script")))
        require(not page.all("img") and not page.all("b"), "a name became an element")
        handlers = [a for _, a, _ in page.elements if any(k.startswith("on") for k in a)]
        require(not handlers, handlers)
        text = "".join("".join(e[2]) for e in page.elements if e[0] == "main")
        require("\u202e" not in text and "\x1b" not in text and "\x01" not in text, "invisible")
    names = set(browser.open("hostile", view="functions").rows())
    require("safe\\u202egnp.exe" in names and "__proto__" in names, names)


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        print("skipped: no chromium; apt-get install chromium")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        with open(os.path.join(folder, "shop.json"), encoding="utf-8") as file:
            expected = json.load(file)
        browser = Browser(chromium, folder)
        check_facts(browser)
        check_totals(browser, "shop", expected)
        check_filters(browser, expected)
        check_hostile(browser)
        require(not browser.open("empty").rows(), "an empty profile has rows")
        print("opened", browser.count, "pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
