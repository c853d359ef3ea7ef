"""Opens a report in headless Chromium and checks that it works:  report_browser.py /path/to/report.html"""
import json
import sys

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


def main():
    driver = open_browser()
    try:
        driver.get("file://" + sys.argv[1])
        check(len(driver.find_elements(By.CSS_SELECTOR, "figure svg")) == 5, "5 figures are expected")
        check_sorting(driver)
        check_filters(driver)
        check_themes(driver)
        check_phone(driver)
        check_silence(driver)
    finally:
        driver.quit()


main()
