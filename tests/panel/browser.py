"""The system's Chromium under a test's hands, or a plain word about why there is none."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

REQUIRED = "RUBEZH_TESTS_NEED_CHROMIUM"
_ARGUMENTS = (
    "--no-sandbox",  # tests run as root, too
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    "--disable-dev-shm-usage",
)


def chromium_path() -> str:
    """Return where the system has its Chromium; skip the test where it has none, fail it where it must."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if found is None:
        _cannot_run("the system has no Chromium (Debian: apt-get install chromium)")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run one, with a microphone that beeps and leave to use it."""
    path = chromium_path()
    with _playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def _playwright() -> Iterator[Playwright]:
    # trio_asyncio would have new loops run inside Trio, and Playwright has a thread of its own without any.
    before, asyncio.new_event_loop = asyncio.new_event_loop, asyncio.SelectorEventLoop
    try:
        manager = sync_playwright()
        playwright = manager.__enter__()
    finally:
        asyncio.new_event_loop = before
    try:
        yield playwright
    finally:
        manager.__exit__(None, None, None)


def _cannot_run(reason: str) -> NoReturn:
    if os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, and the panel's tests cannot run here: {reason}")
    pytest.skip(reason)
