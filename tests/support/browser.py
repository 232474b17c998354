"""A real browser, driven over a pipe: pages as people see them, at a width, in light or dark.

Chromium speaks its DevTools protocol through two file descriptors, JSON messages that end with a zero byte, so that
this needs no library and no port.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    *("--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--disable-sync"),
    *("--disable-component-update", "--disable-default-apps", "--disable-extensions", "--mute-audio"),
)
_PATIENCE_SECONDS = 120


class BrowserError(RuntimeError):
    """The browser answered with an error, or not at all."""


def find_browser() -> str | None:
    """Return the path of a Chromium on PATH."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Tab:
    """One page at one width; what it said and asked for is kept."""

    browser: "Browser"
    session: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    loaded: bool = False

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command to this page and return its result."""
        return self.browser.send(method, self.session, **parameters)

    def hear(self, method: str, parameters: dict[str, Any]) -> None:
        """Keep an event of this page."""
        if method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([argument.get("value") for argument in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def run(self, script: str) -> Any:
        """Run a script, an expression, in the page and return its value."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        code = {"Tab": 9, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13}[key]
        for kind in ("rawKeyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, *, whole: bool = False) -> bytes:
        """Return the page as PNG: what fits the window, or all of it."""
        return base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=whole)["data"])


class Browser:
    """A running Chromium; get one from :func:`running_browser`."""

    def __init__(self, process: subprocess.Popen[bytes], requests: int, answers: int) -> None:
        self._process, self._requests, self._answers = process, requests, answers
        self._number = 0
        self._unread = b""
        self._tabs: dict[str, Tab] = {}

    @contextlib.contextmanager
    def open(self, page: Path, *, width: int, height: int = 900, dark: bool = False) -> Iterator[Tab]:
        """Show a file in a window of a size, and close it in the end."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self._tabs[session] = Tab(self, session)
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                tab.send(f"{domain}.enable")
            tab.send(
                "Emulation.setDeviceMetricsOverride",
                width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
            )  # fmt: skip
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            tab.send("Emulation.setEmulatedMedia", features=[scheme])
            tab.loaded = False
            tab.send("Page.navigate", url=page.as_uri())
            self._wait(lambda: tab.loaded)
            yield tab
        finally:
            del self._tabs[session]
            self.send("Target.closeTarget", targetId=target)

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; events that come meanwhile go to their pages."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._requests, json.dumps(message).encode() + b"\0")
        answers: list[dict[str, Any]] = []
        self._wait(lambda: bool(answers), number, answers)
        if "error" in answers[0]:
            raise BrowserError(f"{method}: {answers[0]['error']}")
        result: dict[str, Any] = answers[0]["result"]
        return result

    def _wait(self, done: Any, number: int = -1, answers: list[dict[str, Any]] | None = None) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            if not select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise BrowserError(f"no answer within {_PATIENCE_SECONDS} s")
            piece = os.read(self._answers, 1 << 20)
            if not piece:
                raise BrowserError(f"the browser ended with {self._process.poll()}")
            *messages, self._unread = (self._unread + piece).split(b"\0")
            for text in messages:
                message = json.loads(text)
                if message.get("id") == number and answers is not None:
                    answers.append(message)
                elif tab := self._tabs.get(message.get("sessionId", "")):
                    tab.hear(message.get("method", ""), message.get("params", {}))


@contextlib.contextmanager
def running_browser(path: str, profile: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own, and end it."""
    command_read, command_write = os.pipe()
    answer_read, answer_write = os.pipe()
    # The browser reads commands from descriptor 3 and writes answers to 4.
    script = f'exec 3<&{command_read} 4>&{answer_write}; exec "$@"'
    process = subprocess.Popen(
        ["bash", "-c", script, "browser", path, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(command_read, answer_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(command_read)
    os.close(answer_write)
    try:
        yield Browser(process, command_write, answer_read)
    finally:
        os.close(command_write)
        os.close(answer_read)
        process.terminate()
        process.wait()
