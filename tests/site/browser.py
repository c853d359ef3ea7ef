"""The built site in headless Chromium, from the disk:  browser.py SITE-FOLDER [SCREENSHOT-FOLDER]

The front page, the search, one page of each kind, and all of them as wide as a phone; nothing may be fetched from anywhere.
"""
import json
import sys
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PAGES = {  # page: something that only it has
    "index.html": "h1",
    "tutorials/first-ten-minutes.html": ".highlight",
    "howto/choose-a-rule.html": ".highlight",
    "rules/mref.html": "math",
    "attacks.html": "table",
    "experiments.html": ".highlight",
    "reference/yaml.html": "#rule-mref",
    "reference/python.html": "[id='reef.aggregate']",
    "reference/c.html": "a[href='../c-api/index.html']",
    "man/reef-run.html": "#synopsis",
    "threat-model.html": "table",
    "glossary.html": "table a",
    "source/examples/colluders.c.html": ".highlight",
}


def open_browser():
    options = Options()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def check(condition, what):
    if not condition:
        sys.exit("site: " + what)


def set_width(driver, width, height):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})


def shoot(driver, folder, name):
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        driver.save_screenshot(str(folder / f"{name}.png"))


def check_images(driver, page):
    broken = driver.execute_script("return [...document.images].filter(i => i.complete && i.naturalWidth === 0).map(i => i.src)")
    check(not broken, f"{page} has broken pictures: {broken}")


def check_names(driver, page):
    broken = driver.execute_script("return [...document.querySelectorAll('td:first-child code')]"
                                   ".filter(c => c.getClientRects().length > 1).map(c => c.textContent)")
    check(not broken, f"{page} breaks names in tables over two lines: {broken[:5]}")


def check_pages(driver, site, folder):
    for width, height, label in ((1280, 900, "wide"), (360, 740, "phone")):
        set_width(driver, width, height)
        for page, part in PAGES.items():
            driver.get((site / page).as_uri())
            check(driver.find_elements(By.CSS_SELECTOR, part), f"{page} has no {part}")
            check(driver.find_elements(By.CSS_SELECTOR, "a[href*='glossary.html']"), f"{page} has no navigation")
            found = driver.execute_script("return document.documentElement.scrollWidth")
            check(found <= width, f"{page} is {found} wide on a screen of {width}")
            check_images(driver, page)
            check_names(driver, page)
            shoot(driver, folder, f"{label}-{page.replace('/', '-').removesuffix('.html')}")


def check_search(driver, site, folder):
    set_width(driver, 1280, 900)
    for words, wanted in (("breakdown point", "rules/"), ("colluders", "mref"), ("down-weighted", "why-down-weighted")):
        driver.get((site / "index.html").as_uri())
        field = driver.find_element(By.CSS_SELECTOR, "input.md-search__input")
        field.click()
        field.send_keys(words)
        WebDriverWait(driver, 30).until(lambda d: d.find_elements(By.CSS_SELECTOR, ".md-search-result__link"))
        time.sleep(0.2)  # for the picture only: results fade in
        links = [link.get_attribute("href") for link in driver.find_elements(By.CSS_SELECTOR, ".md-search-result__link")]
        check(any(wanted in link for link in links), f"searching for '{words}' finds {links[:5]}")
        check(not any("/source/" in link for link in links), "the search finds files of the source tree")
        shoot(driver, folder, f"search-{words.replace(' ', '-')}")


def check_doxygen(driver, site):
    driver.get((site / "c-api" / "index.html").as_uri())
    check("Reef" in driver.title, "the C interface has no front page")


def check_silence(driver):
    errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    check(not errors, f"the console has {errors[:3]}")
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            check(url.startswith(("file:", "data:", "blob:")), f"a page asked for {url}")


def main():
    site = Path(sys.argv[1]).resolve()
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    driver = open_browser()
    try:
        check_pages(driver, site, folder)
        check_search(driver, site, folder)
        check_doxygen(driver, site)
        check_silence(driver)
    finally:
        driver.quit()
    print(f"site: {len(PAGES)} pages, wide and narrow, search and silence are in order")


main()
