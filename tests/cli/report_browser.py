"""Opens a report in headless Chromium and checks that it works:  report_browser.py /path/to/report.html [axe.min.js]

With axe-core only what that finds is checked: whether the page can be used with a keyboard and a screen reader.
"""
import json
import os
import sys
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select


def open_browser():
    options = Options()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def check(condition, what):
    if not condition:
        sys.exit("report_browser: " + what)


def visible_rows(driver, table):
    return [row for row in driver.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr") if row.is_displayed()]


def column(driver, table, name):
    heads = [h.text for h in driver.find_elements(By.CSS_SELECTOR, f"#{table} thead th")]
    at = heads.index(name)
    return [row.find_elements(By.TAG_NAME, "td")[at].get_attribute("data-value") for row in visible_rows(driver, table)]


def check_sorting(driver):
    head = next(h for h in driver.find_elements(By.CSS_SELECTOR, "#summary thead th button") if h.text == "msd_db")
    for direction in (1, -1):
        head.click()
        numbers = [direction * float(text) for text in column(driver, "summary", "msd_db")]
        check(numbers == sorted(numbers), f"msd_db is not sorted: {numbers}")
    check(len(numbers) == 18, "the summary should have 18 rows")


def check_filters(driver):
    everything = len(visible_rows(driver, "trust"))
    Select(driver.find_element(By.CSS_SELECTOR, "select[data-filter='rule']")).select_by_value("ref")
    check(set(column(driver, "summary", "rule")) == {"ref"}, "the filter by rule lets others through")
    check(set(column(driver, "trust", "rule")) == {"ref"}, "the filter by rule forgets the second table")
    check(0 < len(visible_rows(driver, "trust")) < everything, "the filter hides nothing")
    Select(driver.find_element(By.CSS_SELECTOR, "select[data-filter='attack']")).select_by_value("sign_flip")
    check(len(visible_rows(driver, "summary")) == 3, "rule and attack together should leave 3 rows")
    check("3 of 18 rows" in driver.find_element(By.CSS_SELECTOR, "[data-count-of='summary']").text, "the count is wrong")
    for name in ("rule", "attack"):
        Select(driver.find_element(By.CSS_SELECTOR, f"select[data-filter='{name}']")).select_by_value("")
    check(len(visible_rows(driver, "summary")) == 18, "the filters cannot be lifted")


def headline(driver):
    """{rule: {setting: shown text}} of the headline table, and the rules that are marked as best."""
    heads = [h.text for h in driver.find_elements(By.CSS_SELECTOR, "#headline thead th")]
    lines = {}
    best = {}
    for row in driver.find_elements(By.CSS_SELECTOR, "#headline tbody tr"):
        name = row.find_element(By.TAG_NAME, "th").text
        cells = row.find_elements(By.TAG_NAME, "td")
        lines[name] = {head: float(cell.get_attribute("data-value")) for head, cell in zip(heads[1:], cells)}
        best[name] = [head for head, cell in zip(heads[1:], cells) if "best" in cell.get_attribute("class").split()]
        check(all(" \u00b1 " in cell.text and cell.get_attribute("title") for cell in cells), "no standard error or no hover text")
    return lines, best


def check_headline(driver):
    lines, best = headline(driver)
    check(list(lines) == ["mean", "median", "ref"] and all(len(line) == 6 for line in lines.values()), f"the headline has {lines}")
    for setting in lines["mean"]:
        winner = min(lines, key=lambda rule: lines[rule][setting])
        check(setting in best[winner] and sum(setting in b for b in best.values()) == 1, f"the best under {setting} is not marked")
    button = driver.find_elements(By.CSS_SELECTOR, "#headline thead button")[2]
    for direction in (1, -1):
        button.click()
        column_texts = driver.find_elements(By.CSS_SELECTOR, "#headline tbody tr td:nth-of-type(2)")
        numbers = [direction * float(cell.get_attribute("data-value")) for cell in column_texts]
        check(numbers == sorted(numbers), f"the headline is not sorted: {numbers}")


def check_figure_filter(driver):
    """Lines of other rules, with their bands, leave the figures."""
    names = lambda: [t.get_attribute("textContent").strip() for t in driver.find_elements(By.CSS_SELECTOR, "#figure-final g[id^='gnuplot_plot_']:not(.hidden) text")]
    groups = lambda figure: driver.find_elements(By.CSS_SELECTOR, f"#figure-{figure} g[id^='gnuplot_plot_']:not(.hidden)")
    everything = len(groups("final")), len(groups("curves"))
    Select(driver.find_element(By.CSS_SELECTOR, "select[data-filter='rule']")).select_by_value("ref")
    check(any(name.startswith("ref") for name in names()), f"the chosen rule has left the figure: {names()}")
    check(not any(name.startswith(("mean", "median")) for name in names()), f"the filter leaves {names()} in the figure")
    check(len(groups("final")) < everything[0] and len(groups("curves")) < everything[1], "the filter does not act on figures")
    check(list(headline(driver)[0]) == ["ref"], "the filter does not act on the headline")
    Select(driver.find_element(By.CSS_SELECTOR, "select[data-filter='rule']")).select_by_value("")
    check((len(groups("final")), len(groups("curves"))) == everything, "lines do not come back")


def check_keyboard(driver):
    """What scrolls can be reached by the Tab key, headers say what they head, figures have a description."""
    lost = driver.execute_script("return Array.from(document.querySelectorAll('.scroll, .picture')).filter(e => e.tabIndex < 0 || "
                                 "!(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))).length")
    check(lost == 0, f"{lost} regions cannot be reached or have no name")
    check(driver.execute_script("return Array.from(document.querySelectorAll('th')).every(h => h.scope)"), "a header has no scope")
    for link in driver.find_elements(By.CSS_SELECTOR, ".links a, .count a"):
        path = link.get_attribute("href").removeprefix("file://")
        check(os.path.exists(urllib.parse.unquote(path)), f"a link leads nowhere: {path}")


def background(driver):
    return driver.execute_script("return getComputedStyle(document.body).backgroundColor")


def check_themes(driver):
    colours = {}
    for scheme in ("light", "dark"):
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                               {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        colours[scheme] = background(driver)
    check(colours["light"] != colours["dark"], "light and dark look the same")
    driver.find_element(By.CSS_SELECTOR, "button.theme").click()
    check(background(driver) == colours["light"], "the button does not change dark to light")


def check_phone(driver):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True})
    width = driver.execute_script("return document.documentElement.scrollWidth")
    check(width <= 360, f"the page is {width} wide on a phone of 360")


def check_silence(driver):
    errors = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    check(not errors, f"the console has {errors}")
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            check(url.startswith(("file:", "data:")), f"the page asked for {url}")


def check_axe(driver, script):
    """axe-core finds nothing, light and dark, on a screen and on a phone."""
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 420)):
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                               {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600})
        driver.get("file://" + sys.argv[1])
        # Through the debugger, which the page's policy does not bind.
        driver.execute_cdp_cmd("Runtime.evaluate", {"expression": script + "; 0"})
        found = driver.execute_async_script("axe.run().then((r) => arguments[0](r.violations.map((v) => "
                                            "[v.id, v.help, v.nodes.slice(0, 5).map((n) => n.html.slice(0, 120))])))")
        check(not found, f"axe-core, {scheme}, {width}: {json.dumps(found, indent=1)}")


def main():
    driver = open_browser()
    try:
        driver.get("file://" + sys.argv[1])
        if len(sys.argv) > 2:
            with open(sys.argv[2]) as file:
                check_axe(driver, file.read())
            return
        check(len(driver.find_elements(By.CSS_SELECTOR, "figure svg")) == 5, "5 figures are expected")
        check_headline(driver)
        check_sorting(driver)
        check_figure_filter(driver)
        check_keyboard(driver)
        check_filters(driver)
        check_themes(driver)
        check_phone(driver)
        check_silence(driver)
    finally:
        driver.quit()


main()
