#!/usr/bin/env python3
"""Makes docs/images/dash.png: the live page near the end of the recorded run of examples/network, one of the colluders chosen.

    scripts/dash_picture.py [REEF]      (build/release/reef unless given; needs Chromium, its driver and python3-selenium)
"""
import base64
import os
import sys
import time

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(root, "tests/net"))
sys.dont_write_bytecode = True
from dash_browser import Page  # noqa: E402: needs the path above

WIDTH = 1400
MOMENT = 960  # thousandths of the run
CHOSEN = 9


def main():
    reef = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "build/release/reef")
    with Page(reef, os.path.join(root, "examples/network/colluders.jsonl")) as page:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}]})
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
        page.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        page.open()
        page.wait("m.ended", "the record is not played to its end")
        page.js("const at = document.getElementById('at'); at.value = arguments[0]; at.dispatchEvent(new Event('input'));", MOMENT)
        page.wait("document.querySelector(`[data-agent='${arguments[0]}'] button`)", "no list", CHOSEN)
        page.js("document.querySelector(`[data-agent='${arguments[0]}'] button`).click()", CHOSEN)
        page.wait("!document.getElementById('detail').hidden", "no card")
        time.sleep(2)  # until everything has its final size
        height = page.js("return Math.ceil(document.getElementById('detail').getBoundingClientRect().bottom + scrollY) + 13")
        # A window of that height: a picture of more than the window would change its size, and might be taken before the graph is drawn anew.
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False})
        time.sleep(2)
        shot = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}})
    with open(os.path.join(root, "docs/images/dash.png"), "wb") as file:
        file.write(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
