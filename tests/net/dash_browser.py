"""Opens the live page in headless Chromium:  dash_browser.py REEF CASE, where CASE is a function check_CASE below.

Lines are put on the standard input of `reef dash --replay -`, as a network would send them, or written to a file that is played back."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

import dash_lines as lines

PATIENCE = 60  # seconds that something may take at most; nothing is asserted about how fast it is
MARKUP = "<img src=x onerror=\"window.hurt=1\"><script>window.hurt=1</script>"


def check(condition, what):
    if not condition:
        sys.exit("dash_browser: " + what)


def open_browser():
    options = Options()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--window-size=1400,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class Page:
    """The command, its page in a browser, and a way to put lines in."""

    def __init__(self, reef, replay="-", command=None):
        self.process = subprocess.Popen([reef, *(command or ["dash", "--replay", replay])], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = self.process.stdout.readline()
        if "http" not in self.said:
            self.said += self.process.stdout.readline()
        self.url = re.search(r"http://127\.0\.0\.1:\d+/", self.said).group(0)
        self.driver = open_browser()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()
        self.process.terminate()
        check(self.process.wait(PATIENCE) == 0, f"reef dash ended with {self.process.returncode}")

    def put(self, *texts):
        self.process.stdin.write("".join(text + "\n" for text in texts))
        self.process.stdin.flush()

    def open(self):
        self.driver.get(self.url)

    def js(self, text, *arguments):
        return self.driver.execute_script("const m = window.reefDash?.model; " + text, *arguments)

    def wait(self, text, what, *arguments):
        end = time.monotonic() + PATIENCE
        while not self.js(f"return !!({text})", *arguments):
            check(time.monotonic() < end, f"{what}: {self.js('return m && [m.lines, m.bad, m.n, m.time, document.body.innerText.slice(0, 300)]')}")
            time.sleep(0.1)

    def shown(self, agent):
        """Median trust, as the list has it, and colour of its node in the graph."""
        return self.js("const row = document.querySelector(`[data-agent='${arguments[0]}']`); return [row.dataset.trust, reefDash.graph.cy.getElementById(`n${arguments[0]}`).data('colour')]", agent)

    def silent(self, but=()):
        """Nothing was complained about, and nothing was asked of anybody else."""
        errors = [e for e in self.driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING") and not any(b in e["message"] for b in but)]
        check(not errors, f"the console has {errors}")
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                check(url.startswith((self.url, "data:")), f"the page asked for {url}")


# ---- cases ----

def check_example(reef):
    """The recorded run of the documentation: the malicious agents, and they alone, end without trust."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/network")
    with Page(reef, os.path.join(folder, "colluders.jsonl")) as page:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
        page.open()
        page.wait("m.ended && document.querySelectorAll('#agent-rows tr').length === 12", "it is not played to its end")
        told = page.js("return m.agent.distrusted.map((bad, k) => (bad ? k : -1)).filter((k) => k >= 0)")
        marked = page.js("return [...m.run.malicious].sort((x, y) => x - y)")
        check(told == marked and len(marked) == 3, f"not trusted: {told}, malicious: {marked}")
        check(page.js("return m.bad") == 0 and page.js("return m.history.round.length") > 5, "lines are missing")
        page.silent()


def check_swarm(reef):
    """Agents that are processes, over a real broker: live and then from the record."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trial.yaml")
        record = os.path.join(folder, "trial.jsonl")
        with open(path, "w") as file:
            file.write("name: trial\nagents: 16\ngraph: ring:k=3\nweights: metropolis\nrule: mref\nrepetitions: 1\nseed: 3\nmalicious: 3\nattack: sign_flip\n"
                       "problem: {kind: lms, dimension: 10, noise: 0.01}\nstrategy: {kind: diffusion, mu: 0.05}\nrounds: 300\n")
        with Page(reef, command=["swarm", path, "--dash", "--record", record, "-q", "--no-figures", "-o", os.path.join(folder, "results")]) as page:
            page.open()
            page.wait("m.heard === 16 && reefDash.graph.cy?.nodes().length === 16", "16 agents are not heard")
            check(page.driver.title == "Reef: trial", f"the page is called {page.driver.title}")
            page.wait("m.ended", "the run does not end")
            page.js("m.settle()")
            told = page.js("return m.agent.distrusted.map((bad, k) => (bad ? k : -1)).filter((k) => k >= 0)")
            check(told == page.js("return [...m.run.malicious]"), f"not trusted: {told}")
            check(page.js("return m.agent.metric.every((v) => v < 0)") and page.js("return m.scores.value.length > 0"), "no metric is reported")
            check(page.js("return m.agent.received.every((b) => b > 0)"), "no bytes are reported")
            page.silent()
        with Page(reef, record) as page:
            page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
            page.open()
            page.wait("m.ended && m.heard === 16", "the record does not play")


def check_epoch(reef):
    """An observer of a real network, in the folder of dash_epoch.bats: the page follows into the next epoch, and so does its record."""
    with Page(reef, command=["dash", "watch.yaml", "--key", "desk.key", "--record", "record.jsonl"]) as page:
        page.open()
        page.wait("m.heard === 8 && reefDash.graph.cy?.nodes().length === 8 && m.history.round.length > 2", "8 agents are not heard")
        check(page.js("return m.run.epoch") == 1, "it is not the first epoch")
        page.driver.find_element(By.CSS_SELECTOR, "[data-agent='2'] button").click()
        page.wait("document.getElementById('detail-title').textContent === 'a2'", "the list does not choose")
        print(f"watching round {page.js('return m.progress()[1]'):.0f}", flush=True)
        page.wait("m.run.epoch === 2 && reefDash.graph.cy.nodes().length === 9", "the page does not follow into the next epoch")
        page.wait("m.agent.combined[8] > 0 && Number.isFinite(m.agent.trust[8])", "the new agent does not take part")
        check(page.js("return m.condition(3)") == "removed" and page.js("return m.outgoing[3].length + m.incoming[3].length") == 0, "who was removed is still there")
        page.wait("document.querySelector(\"[data-agent='3'] td:last-child\").textContent === 'removed' && document.querySelectorAll('#agent-rows tr').length === 9", "the list does not tell who was removed")
        check(page.js("return reefDash.graph.cy.getElementById('n3').data('condition')") == "removed", "the graph does not show who was removed")
        check(page.js("return document.getElementById('detail-title').textContent") == "a2", "the choice of an agent was lost")
        check(page.js("return document.getElementById('tile-heard').textContent") == "8 / 8", "the tile counts who was removed")
        told = page.js("return m.log.filter((e) => ['epoch', 'added', 'removed'].includes(e.what)).map((e) => [e.what, e.agent])")
        check(sorted(told) == [["added", 8], ["epoch", -1], ["removed", 3]], f"events are {told}")
        # what was known of those who stay is still there, and a page that is opened now has it, too
        page.driver.refresh()
        page.wait("m.run?.epoch === 2 && m.agent.combined[8] > 0", "a late page does not catch up")
        told = page.js("return [m.epochs, m.history.round, m.trustOver(2), m.trustOver(8)]")
        first = sum(r <= told[0][0] for r in told[1])  # samples of the first epoch
        check(len(told[0]) == 1 and first > 2 and any((t or 0) > 0.5 for t in told[2][:first]) and not any(told[3][:first]), f"a late page lacks the first epoch: {told}")
        page.silent()
    with Page(reef, "record.jsonl") as page:  # forwards into the second epoch, and back
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
        page.open()
        page.wait("m.run?.epoch === 2 && m.agent.combined[8] > 0 && reefDash.graph.cy?.nodes().length === 9", "the record does not play into the second epoch")
        page.js("const at = document.getElementById('at'); at.value = 50; at.dispatchEvent(new Event('input'));")
        page.wait("m.run?.epoch === 1 && reefDash.graph.cy?.nodes().length === 8", "going back does not lead into the first epoch")
        page.silent()


def check_attack(reef):
    """Colours follow an attack within 2 rounds; a page opened late has everything from the beginning."""
    with Page(reef) as page:
        page.put(lines.run(16, malicious=[3, 9]))
        page.open()
        page.wait("m.n === 16 && reefDash.graph.cy?.nodes().length === 16", "16 agents are not drawn")
        check(page.js("return reefDash.graph.cy.edges().length") == 96, "96 links are expected")
        check(page.js("return reefDash.graph.cy.getElementById('n3').style('shape')") == "diamond", "a malicious agent is not marked")
        page.put(*lines.rounds(16, 0, 20))
        page.wait("m.agent.round[15] === 19 && document.getElementById('tile-round').textContent.startsWith('19')", "round 19 is not shown")
        page.wait("document.querySelector(\"[data-agent='3']\").dataset.trust === '1.1'", "trust is not shown")
        check(page.js("return document.getElementById('verdict').textContent") == "All 2 malicious agents are still trusted.", "the sentence is wrong before the attack")
        good = page.shown(3)[1]
        check(good == page.shown(4)[1], "before the attack all have one colour")
        edges = "return reefDash.graph.cy.edges().map((e) => [e.data('source'), e.data('target'), e.data('colour')])"
        before = page.js(edges)
        check(len({colour for _, _, colour in before}) == 1, "before the attack all links have one colour")
        page.put(*lines.rounds(16, 20, 22, attacked=[3, 9]))
        page.wait("document.querySelector(\"[data-agent='3']\").dataset.trust === '0'", "trust does not follow the attack within 2 rounds")
        check(page.shown(3)[1] != good and page.shown(9)[1] == page.shown(3)[1], f"the colours of attackers are {page.shown(3)}, {page.shown(9)}")
        check(page.shown(4)[1] == good, "an honest agent has changed its colour")
        changed = {(a, b) for a, b, colour in page.js(edges) if colour != before[0][2]}
        check(all({"n3", "n9"} & {a, b} for a, b in changed), f"links between honest agents have changed their colour: {changed}")
        for bad in (3, 9):
            for l in lines.neighbours(bad, 16, 3):
                check(any({a, b} == {f"n{bad}", f"n{l}"} for a, b in changed), f"the link from {bad} to {l} does not show that it is not trusted")
        # learning with its spread over agents, round times, attendance
        for chart in ("curve", "times", "presence"):
            check(page.js("return document.querySelectorAll(`#chart-${arguments[0]} canvas`).length", chart) == 1, f"no chart of {chart}")
        hints = {name: page.js("return document.getElementById(arguments[0] + '-hint').textContent", name) for name in ("curve", "times", "presence")}
        check(re.search(r"Over honest agents: median \S+ dB, from \S+ dB to \S+ dB", hints["curve"]), f"no spread over agents: {hints}")
        check("took 100 ms each" in hints["times"] and re.search(r"[1-9]\S* % fresh, \S+ % old, 0 % missing", hints["presence"]), f"{hints}")
        check(page.js("return document.getElementById('tile-distrusted').textContent") == "2", "2 should not be trusted")
        told = "Both malicious agents have been found out: agent-3, agent-9. No honest agent is distrusted."
        check(page.js("return document.getElementById('verdict').textContent") == told, "the sentence above the graph is another one")
        page.driver.refresh()
        page.wait("m.agent?.round[15] === 21", "a late page does not catch up")
        check(page.js("return m.history.round.length") >= 20 and page.js("return m.history.trust[5][3]") > 1, "a late page lacks the beginning")
        page.silent()


def check_click(reef):
    """A node of the graph, the list and the keyboard open an agent's card; events are filtered."""
    with Page(reef) as page:
        page.put(lines.run(10, malicious=[2]), *lines.rounds(10, 0, 30, attacked=[2]), lines.event(3, "joined", agent=5, text="came late"))
        page.open()
        page.wait("m.agent?.round[9] === 29 && reefDash.graph.cy", "the run is not there")
        x, y = page.js("const p = reefDash.graph.cy.getElementById('n2').renderedPosition(), b = document.getElementById('graph').getBoundingClientRect(); return [b.left + p.x, b.top + p.y]")
        for kind in ("mousePressed", "mouseReleased"):
            page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})
        page.wait("document.getElementById('detail-title').textContent === 'agent-2'", "a click on a node opens nothing")
        text = page.driver.find_element(By.ID, "detail").text
        for part in ("Not trusted. Points away from the others.", "value: ", "Last seen", "Received", "malicious"):
            check(part in text, f"the card lacks {part!r}: {text}")
        check(page.js("return document.querySelectorAll('#chart-trust canvas').length") == 1, "no curve of trust")
        page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", "key": "Escape"})
        graph = page.driver.find_element(By.ID, "graph")
        graph.send_keys("\ue00c")
        page.wait("document.getElementById('detail').hidden", "Escape does not close the card")
        graph.send_keys("\ue014\ue014")
        page.wait("document.getElementById('detail-title').textContent === 'agent-1'", "arrow keys do not choose")
        page.wait("document.getElementById('chosen-text').textContent === 'agent-1: trusted.'", "who hears the page does not learn who was chosen")
        page.driver.find_element(By.CSS_SELECTOR, "[data-agent='7'] button").click()
        page.wait("document.getElementById('detail-title').textContent === 'agent-7'", "the list does not choose")
        row, other = (page.js("return document.querySelector(`[data-agent='${arguments[0]}']`).getBoundingClientRect().toJSON()", k) for k in (7, 6))
        check(row["height"] > 15 and row["width"] == other["width"], f"the chosen agent is not seen in the list: {row}")
        # a picture that somebody has zoomed stays so when cards open and close; Fit brings it back
        zoom = page.js("return reefDash.graph.cy.zoom()")
        page.driver.find_element(By.ID, "zoom-in").click()
        page.driver.find_element(By.ID, "detail-close").click()
        page.wait("document.getElementById('detail').hidden && reefDash.graph.cy.height() === document.getElementById('graph').clientHeight", "the card does not close")
        check(page.js("return reefDash.graph.cy.zoom()") > 1.2 * zoom, "closing a card has changed the zoom")
        check(page.js("return document.activeElement.closest('tr')?.dataset.agent") == "7", "the keyboard is lost when the card closes")
        page.driver.find_element(By.ID, "zoom-fit").click()
        check(page.js("return reefDash.graph.cy.zoom()") < 1.1 * zoom, "Fit does not fit")
        page.driver.find_element(By.ID, "log-find").send_keys("came late")
        page.wait("document.querySelectorAll('#log-rows tr').length === 1", "the filter of events does not work")
        page.driver.find_element(By.ID, "log-find").send_keys("\ue003" * 9)
        kind = "const kind = document.getElementById('log-kind'); kind.value = arguments[0]; kind.dispatchEvent(new Event('input'));"
        page.wait("document.querySelectorAll('#log-rows tr').length === 2", "without a filter there are other events")
        page.js(kind, "distrusted")
        page.wait("document.querySelectorAll('#log-rows tr').length === 1 && document.querySelector('#log-rows tr').dataset.what === 'distrusted'", "events are not filtered by kind")
        page.driver.find_element(By.ID, "view-matrix").click()
        page.wait("!document.getElementById('matrix').hidden", "no matrix")
        page.driver.find_element(By.ID, "matrix").send_keys("\ue014")
        page.wait("document.getElementById('detail-title').textContent === 'agent-0'", "arrow keys do not choose in the matrix")
        page.silent()


def check_unknown(reef):
    """Nobody is marked as malicious where nobody knows who is, and nothing is claimed before somebody was heard."""
    with Page(reef) as page:
        line = json.loads(lines.run(10))
        del line["malicious"]
        page.put(json.dumps(line, separators=(",", ":")))
        page.open()
        page.wait("document.getElementById('verdict').textContent.startsWith('Waiting for the first reports')", "the empty page does not say so")
        check(page.js("return [...document.querySelectorAll('.chart:not(.blank)')].length") == 0, "empty charts show axes")
        page.put(*lines.rounds(10, 0, 5))
        page.wait("document.getElementById('verdict').textContent === 'All agents are trusted by their neighbours.'", "the sentence is wrong when all are trusted")
        page.put(*lines.rounds(10, 5, 8, attacked=[2]))
        page.wait("document.getElementById('verdict').textContent === 'Not trusted by their neighbours: agent-2.'", "the sentence does not name who is not trusted")
        check(page.js("return reefDash.graph.cy.nodes('[?malicious]').length") == 0 and not page.js("return document.body.innerText.includes('malicious')"), "somebody is called malicious")
        page.wait("m.condition(0) === 'silent' && document.getElementById('verdict').textContent.endsWith('Nobody has been heard lately: is the broker running?')", "nobody notices that nothing comes any more")
        page.put(*lines.rounds(10, 8, 9, attacked=[2]))
        page.wait("m.condition(0) !== 'silent' && !document.getElementById('verdict').textContent.includes('lately')", "agents that are heard again stay silent")
        page.process.terminate()
        page.wait("document.getElementById('state').textContent === 'connection lost' && document.getElementById('verdict').textContent.includes('does not answer')", "a page without its server does not say so")


def check_restart(reef):
    """The page stays open while the command ends and another run begins at its port."""
    with Page(reef) as page:
        page.put(lines.run(10, malicious=[2]), *lines.rounds(10, 0, 5))
        page.open()
        page.wait("m.agent?.round[9] === 4 && reefDash.graph.cy?.nodes().length === 10", "the first run is not shown")
        page.driver.find_element(By.CSS_SELECTOR, "[data-agent='7'] button").click()
        port = page.url.split(":")[2].strip("/")
        page.process.terminate()
        page.process.wait(PATIENCE)
        page.wait("document.getElementById('state').textContent === 'connection lost'", "the end of the command is not told")
        page.process = subprocess.Popen([reef, "dash", "--replay", "-", "--port", port], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        second = json.loads(lines.run(16, malicious=[3]))
        second["name"] = "second"
        page.put(lines.dump(second), *lines.rounds(16, 0, 8, attacked=[3]))
        page.wait("m.n === 16 && m.agent.round[15] === 7 && document.title === 'Reef: second'", "the page does not connect again")
        page.wait("reefDash.graph.cy.nodes().length === 16 && document.querySelectorAll('#agent-rows tr').length === 16", "the graph is still the one of the run before")
        page.wait("document.getElementById('verdict').textContent.startsWith('The malicious agent has been found out: agent-3')", "the sentence is still the one of the run before")
        check(page.js("return document.getElementById('detail').hidden"), "an agent of the run before is still chosen")
        page.silent(but=["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING"])


def check_replay(reef):
    """A file is played back by its times, and one can go back."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.jsonl")
        with open(path, "w") as file:
            file.write("\n".join([lines.run(10, malicious=[2]), *lines.rounds(10, 0, 20), lines.event(1e300, "odd"), *lines.rounds(10, 20, 60, attacked=[2]), "no line of a run"]))
        process = subprocess.run([reef, "dash", "--replay", os.path.join(folder, "none")], capture_output=True, text=True)
        check(process.returncode == 5 and "No such file" in process.stderr, f"a missing file: {process}")
        with Page(reef, path) as page:
            check("1 of 603 lines are not lines of a recorded run" in page.said, f"it says {page.said}")
            page.open()
            page.wait("m.time > 0.5 && document.getElementById('state').textContent === 'replay'", "it does not play")
            slide = "const at = document.getElementById('at'); at.value = arguments[0]; at.dispatchEvent(new Event('input')); document.getElementById('play').textContent === 'Pause' && document.getElementById('play').click();"
            page.js(slide, 1000)
            page.wait("reefDash.model.agent.round[9] === 59 && document.querySelector(\"[data-agent='2']\").dataset.trust === '0' && m.time < 6", "the end is not reached")
            page.js(slide, 200)
            check(page.js("return document.getElementById('clock').textContent.split(' / ')[1]") == "5.9 s", "a line of no time has changed how long the run is")
            page.wait("reefDash.model.time < 2 && document.querySelector(\"[data-agent='2']\").dataset.trust === '1.1'", "going back does not work")
            page.silent()


def check_names(reef):
    """Names in the graph of 200 agents are large enough to be read, also when a card has made the graph larger."""
    bad = range(0, 200, 7)
    with Page(reef) as page:
        page.put(lines.run(200, reach=4, malicious=bad), *lines.rounds(200, 0, 2, reach=4, attacked=bad))
        page.open()
        page.wait("m.agent?.round[199] === 1 && reefDash.graph.cy?.getElementById('n7').data('label') === 'agent-7'", "the graph is not there")
        for way in ("the whole graph", "with a card"):
            height = page.js("const cy = reefDash.graph.cy; return cy.zoom() * parseFloat(cy.getElementById('n7').style('font-size'))")
            check(8.5 < height < 14, f"{way}: names are {height} pixels high")
            page.driver.find_element(By.CSS_SELECTOR, "[data-agent='7'] button").click()
            page.wait("!document.getElementById('detail').hidden && reefDash.graph.cy.height() === document.getElementById('graph').clientHeight", "no card")
        page.silent()


def check_long(reef):
    """Names of 32 letters leave room for the graph, on a phone, too, and the last number at an axis is whole."""
    names = [f"hospital-of-saint-bartholomew-{k:02d}" for k in range(12)]
    with Page(reef) as page:
        page.put(lines.run(12, malicious=[4], names=names), *(line for r in range(0, 1501, 100) for line in lines.rounds(12, r, r + 1, attacked=[4])))
        for width in (1400, 390):
            page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
            page.open()
            page.wait("m.agent?.round[11] === 1500 && reefDash.graph.cy?.getElementById('n4').data('distrusted')", "the graph is not there")
            across, box, height = page.js("const cy = reefDash.graph.cy, at = (k) => cy.getElementById(`n${k}`).renderedPosition(); return [at(6).y - at(0).y, Math.min(cy.width(), cy.height()), cy.zoom() * parseFloat(cy.getElementById('n7').style('font-size'))]")
            check(across > 0.4 * box and height > 8, f"{width}: the circle is {across} of {box} pixels high, its names {height}")
            labels = page.js("return reefDash.graph.cy.nodes().map((n) => n.data('label'))")
            check(len(set(labels)) == 12 and all(len(text) <= 16 for text in labels), f"names in the graph: {labels}")
            page.wait("document.querySelector('[data-agent=\"4\"]').textContent.includes(arguments[0])", "the list does not have the whole name", names[4])
            for chart in ("curve", "times", "presence"):
                # what is drawn cannot be asked for: where the last number ends follows from its place and its width
                number, end, wide = page.driver.execute_async_script(
                    "const chart = reefDash.charts[arguments[0]], p = () => chart.plot, c = document.createElement('canvas').getContext('2d');"
                    "c.font = '11px system-ui, sans-serif'; chart.set([[0, 500, 1000, 1500], ...chart.series.map(() => [1, 2, 3, 4])]);"
                    "const tell = () => { const values = p().axes[0]._values, at = p().axes[0]._splits.at(-1);"
                    "return [values.at(-1), p().bbox.left / devicePixelRatio + p().valToPos(at, 'x') + c.measureText(values.at(-1)).width / 2, p().width]; };"
                    "Promise.resolve().then(() => arguments[1](tell()))", chart)
                check(number == "1500" and end <= wide, f"{width}: the last number at the axis of {chart}, {number}, ends at {end} of {wide} pixels")
        page.silent()


def check_thousand(reef):
    """A matrix of 1000 agents, and how long frames take while 1000 statuses a second come in."""
    with Page(reef) as page:
        page.put(lines.run(1000, reach=8, malicious=range(0, 1000, 7)), *lines.rounds(1000, 0, 3, reach=8))
        page.open()
        page.wait("m.agent?.round[999] === 2 && !document.getElementById('matrix').hidden", "the matrix of 1000 agents is not there")
        page.js("window.times = []; let last = performance.now(); const tick = (now) => { window.times.push(now - last); last = now; requestAnimationFrame(tick); }; requestAnimationFrame(tick);")
        for r in range(3, 13):
            page.put(*lines.rounds(1000, r, r + 1, reach=8, attacked=range(0, 1000, 7)))
            page.wait("m.agent.round[999] >= arguments[0]", "statuses do not arrive", r)
        times = sorted(page.js("return window.times"))
        page.wait("document.getElementById('tile-distrusted').textContent === '143'", "attackers are not told")
        check(page.js("return document.getElementById('matrix').querySelector('canvas').width > 100"), "no matrix was drawn")
        # the least trusted come first: the strip on top begins with the colour of no trust, and a click there chooses one of them
        x, y, colour = page.js("const c = document.querySelector('#matrix canvas'), b = c.getBoundingClientRect(), left = (c.width - (c.height - 12)) / 2 + 3;"
                               "return [b.left + left * b.width / c.width, b.top + 4, [...c.getContext('2d').getImageData(left, 4, 1, 1).data].slice(0, 3)]")
        check(f"rgb({', '.join(map(str, colour))})" == page.js("return getComputedStyle(document.querySelector('.bar span')).backgroundColor"), f"the strip begins with {colour}")
        for kind in ("mousePressed", "mouseReleased"):
            page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})
        page.wait("!document.getElementById('detail').hidden && m.agent.distrusted[m.run.names.indexOf(document.getElementById('detail-title').textContent)]", "a click in the matrix does not choose one of them")
        print(f"# 1000 agents, 16000 links, 10 rounds: {len(times)} frames, median {times[len(times) // 2]:.0f} ms, 95 % {times[int(0.95 * len(times))]:.0f} ms, longest {times[-1]:.0f} ms", file=sys.stderr)
        page.silent()


def memory(page):
    page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    metrics = page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {m["name"]: m["value"] for m in metrics}


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1000


def check_memory(reef):
    """1e5 events: page and server do not grow."""
    with Page(reef) as page:
        page.driver.execute_cdp_cmd("Performance.enable", {})
        page.put(lines.run(10))
        page.open()
        sizes = []
        for part in range(10):
            page.put(*(lines.event(part + i / 1e4, "refused", agent=i % 10, text=f"frame {part} {i} " + 60 * "x") for i in range(10000)), *lines.rounds(10, part, part + 1))
            page.wait("m.logCount >= arguments[0]", "events do not arrive", 10000 * (part + 1))
            now = memory(page)
            sizes.append((now["JSHeapUsedSize"] / 1e6, now["Nodes"], resident(page.process.pid)))
        print("# after 1e4 to 1e5 events, heap MB, nodes, server MB: " + " ".join(f"{h:.1f}/{n:.0f}/{r:.0f}" for h, n, r in sizes), file=sys.stderr)
        check(sizes[-1][0] < 1.5 * sizes[2][0] + 5, f"the page grows: {sizes}")
        check(sizes[-1][1] < 1.5 * sizes[2][1], f"the page's elements grow: {sizes}")
        check(sizes[-1][2] < 60, f"the server grows: {sizes}")


def check_markup(reef):
    """Names, texts and members from outside do no harm, whatever they are."""
    hostile = ['{"type":"status","time":1,"agent":0,"round":"x","peers":[[0],["a",1],null,[1,null,"y",-5,{},[]],[99,1]],"metrics":{"__proto__":1},"seconds":3,"bytes":{}}',
               '{"type":"status","time":1,"agent":1,"broken}', '{"type":"event","time":1,"what":{"a":1},"agent":"0","text":[]}', '{"type":"score","time":1,"value":"x"}',
               '{"type":"run","time":0,"agents":"x","edges":[[0,1],[5,5],null]}']
    with Page(reef) as page:
        page.put(*hostile, lines.run(6, 2, names=[MARKUP, "__proto__", "constructor", "a" * 500, "\u202eevil", ""]), *hostile[:4])
        page.put(*lines.rounds(6, 0, 5, reach=2), lines.event(1, MARKUP, agent=0, by=0, text=MARKUP), lines.status(1, 6, 6, 1, 2, [0], MARKUP))
        page.open()
        page.wait("m.n === 6 && m.agent.round[5] === 4 && document.querySelectorAll('#agent-rows tr').length === 6", "the run is not shown")
        page.driver.find_element(By.CSS_SELECTOR, "[data-agent='0'] button").click()
        page.wait("document.getElementById('detail-title').textContent === arguments[0].slice(0, 64)", "the name is not shown as text", MARKUP)
        check(page.js("return window.hurt === undefined && document.querySelectorAll('main img, main script').length === 0"), "markup became elements")
        check(page.js("return document.documentElement.scrollWidth <= window.innerWidth"), "a long name breaks the page")
        page.silent()


def check_liar(reef):
    """One agent that others trust says absurd things of itself and of others, and speaks more often: what the page tells of all hardly changes."""
    with Page(reef) as page:
        page.put(lines.run(10, reach=2), *lines.rounds(10, 0, 20, reach=2))
        for r in range(20, 40):
            word = json.loads(lines.status(2, r, 10, r * 0.1, 2))
            word.update(round=2 ** 48, alone=1e15, combined=0, bytes=[1e300, 1e300], seconds=[1e9, 1e9, 1e9], resident=1e300, metrics={"msd_db": 1e300},
                        peers=[[p, 1e30, 0, 4e9, "value", "because"] for p in lines.neighbours(2, 10, 2)])
            page.put(*(lines.status(k, r, 10, r * 0.1, 2) if k != 2 else lines.dump(word) for k in (0, 2, 1, 2, *range(2, 10))))
        page.open()
        page.wait("m.agent?.round[9] === 39 && m.agent.round[2] === 2 ** 48 && document.getElementById('tile-round').textContent", "the run is not shown")
        page.wait("document.getElementById('tile-round').textContent === '39'", "one agent moves the round of all")
        check(page.js("return document.getElementById('tile-alone').textContent") == "10 %", "one agent is more than one in the rounds alone")
        check("took 100 ms each" in page.js("return document.getElementById('times-hint').textContent"), "who speaks more often changes the pace")
        low, high = page.js("const y = reefDash.charts.curve.plot.scales.y; return [y.min, y.max]")
        check(-200 < low < -29 and 0 < high < 200, f"the learning curves are out of sight: {low} to {high}")
        check(page.js("return m.history.pace.every((v) => !(v < 0.09))"), "a round took no time at all")
        # once its neighbours do not trust it any more, what it reports does not count at all
        page.put(*lines.rounds(10, 40, 42, reach=2, attacked=[2]))
        page.wait("document.getElementById('tile-distrusted').textContent === '1'", "its neighbours still trust it")
        page.wait("document.getElementById('tile-refused').textContent === '32' && document.getElementById('tile-alone').textContent === '0 %'", "its reports still count")
        page.silent()


def ask(url, method="GET", **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers)) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def check_server(reef):
    """Other hosts and methods are refused, and every answer has its headers; 64 connections do not stop the others."""
    with Page(reef) as page:
        code, headers, body = ask(page.url)
        check(code == 200 and b"<title>" in body, "the page is not served")
        policy = headers["Content-Security-Policy"]
        check("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, f"the policy is {policy}")
        check(headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store", f"{headers}")
        port = page.url.split(":")[2].strip("/")
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{int(port) - 1}", f"127.0.0.1:{port}.evil.example", ""):
            check(ask(page.url, Host=host)[0] in (400, 403), f"host {host!r} is served")
        check(ask(page.url, Host=f"localhost:{port}")[0] == 200, "localhost is refused")
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
            check(ask(page.url, method)[0] == 405, f"{method} is answered")
        for path in ("none", "../etc/passwd", "events/", "script.js/", "%2e%2e/", "index.html"):
            check(ask(page.url + path)[0] == 404, f"{path} is there")
        licences = ask(page.url + "licences.txt")[2]
        check(b"cytoscape 3" in licences and b"uplot 1" in licences and licences.count(b"Permission is hereby granted") == 2, "the licences are not served")
        with open(f"/proc/net/tcp") as table:
            local = [row.split()[1] for row in table if row.split()[1].endswith(f":{int(port):04X}") and row.split()[3] == "0A"]
        check(local == [f"0100007F:{int(port):04X}"], f"it listens on {local}")
        # Pages that come and go leave nothing behind: more than there is room for, one after the other.
        for _ in range(150):
            answer = urllib.request.urlopen(page.url + "events")
            check(answer.readline().startswith(b"data: "), "no stream")
            answer.close()
        page.open()
        page.wait("document.title.startsWith('Reef')", "the page does not open any more")


# Linear RGB as people see it who lack one kind of cone (Machado, Oliveira and Fernandes 2009, severity 1).
BLINDNESS = {"none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
             "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
             "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
             "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900))}


def lab(colour, matrix):
    """CIE L*a*b* of an sRGB colour, as seen through a matrix."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    r, g, b = (min(1, max(0, sum(m * c for m, c in zip(row, linear)))) for row in matrix)
    x, y, z = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def check_palette(colours, scheme):
    """No trust, half and a full share are far apart for all kinds of colour vision; 10 is a clear difference."""
    for kind, matrix in BLINDNESS.items():
        none, half, full = (lab(colours[i], matrix) for i in (0, len(colours) // 2, -1))
        apart = {name: sum((p - q) ** 2 for p, q in zip(a, b)) ** 0.5 for name, a, b in (("none to full", none, full), ("none to half", none, half), ("half to full", half, full))}
        check(apart["none to full"] > 40 and min(apart.values()) > 15, f"colours of trust, {scheme}, {kind}: {apart}")


def check_sight(reef):
    """axe-core finds nothing; light and dark; a phone; reduced motion."""
    axe = os.path.join(os.environ["REEF_PAGE"], "node_modules/axe-core/axe.min.js")
    with open(axe) as file:
        script = file.read()
    with Page(reef) as page:
        page.put(lines.run(12, malicious=[4]), *lines.rounds(12, 0, 20, attacked=[4]), lines.event(1, "excluded", agent=4, by=3, text="two models for one round"))
        backgrounds = {}
        for scheme, width in (("light", 1400), ("dark", 1400), ("light", 390)):
            page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]})
            page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
            page.open()
            page.wait("m.agent?.round[11] === 19 && document.querySelectorAll('#agent-rows tr').length === 12", "the run is not shown")
            page.driver.find_element(By.CSS_SELECTOR, "[data-agent='4'] button").click()
            page.wait("!document.getElementById('detail').hidden", "no card")
            check(page.js("return document.documentElement.scrollWidth") <= width, f"the page is too wide for {width}")
            if width < 600:  # the card is out of sight there: a line below the graph leads to it
                page.js("document.getElementById('graph').scrollIntoView()")
                link = page.driver.find_element(By.ID, "chosen-link")
                check(link.is_displayed(), "no way to the card")
                check(page.js("return document.getElementById('chosen').getBoundingClientRect().height > 10"), "the line below the graph cannot be seen")
                link.click()
                page.wait("Math.abs(document.getElementById('detail').getBoundingClientRect().top) < 50 && document.activeElement.id === 'detail-title'", "the link does not lead to the card")
            backgrounds[scheme] = page.js("return getComputedStyle(document.body).backgroundColor")
            moving = page.js("return document.getAnimations().filter((a) => a.playState === 'running').length")
            check(moving == 0, f"{moving} things move though that is not wanted")
            # Through the debugger, which the page's policy does not bind.
            page.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": script + "; 0"})
            for view in ("graph", "matrix"):
                page.driver.find_element(By.ID, f"view-{view}").click()
                page.wait(f"!document.getElementById('{view}').hidden", f"no {view}")
                found = page.driver.execute_async_script("axe.run().then((r) => arguments[0](r.violations.map((v) => [v.id, v.help, v.nodes.map((n) => n.html.slice(0, 120))])))")
                check(not found, f"axe-core, {view}, {scheme}, {width}: {json.dumps(found, indent=1)}")
                check(page.js("return document.documentElement.scrollWidth") <= width, f"the {view} is too wide for {width}")
            check_palette([tuple(map(int, re.findall(r"\d+", c))) for c in page.js("return [...document.querySelectorAll('.bar span')].map((s) => getComputedStyle(s).backgroundColor)")], scheme)
        check(backgrounds["light"] != backgrounds["dark"], "light and dark look the same")
        page.driver.find_element(By.ID, "theme").click()
        page.wait("getComputedStyle(document.body).backgroundColor === arguments[0]", "the button does not make it dark", backgrounds["dark"])


if __name__ == "__main__":
    globals()["check_" + sys.argv[2]](sys.argv[1])
