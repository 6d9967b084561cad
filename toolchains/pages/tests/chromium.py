# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The locked Chromium, driven over two pipes: its DevTools protocol.

CHROMIUM names the package's files, relative to the working folder. It runs on the C library of the
machine, as programs of locked wheels do.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import io
import itertools
import json
import os
import signal
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli

_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}/fonts</dir><cachedir>{folder}/font-cache</cachedir></fontconfig>
"""
_PARTS = ("al2023.tar", "fonts.tar", "swiftshader.tar")
# Chromium reads commands from the first and writes answers to the second.
_PIPES = (3, 4)
_LONGEST = 120.0


def unpack(to: Path) -> Path:
    """Unpacks the package into an empty folder. Returns the program."""
    packed = {Path(name).name: Path(name) for name in os.environ["CHROMIUM"].split()}
    program = to / "chromium"
    program.write_bytes(brotli.decompress(packed["chromium.br"].read_bytes()))
    program.chmod(0o755)
    for part in _PARTS:
        data = brotli.decompress(packed[f"{part}.br"].read_bytes())
        with tarfile.open(fileobj=io.BytesIO(data)) as members:
            members.extractall(to)  # noqa: S202  (locked by its digest)
    # The package's own names folders of the machine.
    (to / "fonts.conf").write_text(_FONTS.format(folder=to.absolute()))
    return program


class Browser:
    """A running Chromium with one page."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session = ""
        # Errors and warnings of the page, and the addresses that it asked for.
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol and returns its result. Raises AssertionError."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._take(answer)

    def wait_for(self, event: str) -> None:
        while (answer := self._receive()).get("method") != event:
            self._take(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._answers, 1 << 20)
            assert piece, "Chromium has ended"
            self._rest += piece
        answer, _, self._rest = self._rest.partition(b"\0")
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def _take(self, event: dict[str, Any]) -> None:
        method, said = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(said["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and said["type"] in (
            "error",
            "warning",
            "assert",
        ):
            self.complaints.append(json.dumps(said["args"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(said["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])

    def open(self, page: Path) -> None:
        """Opens a page and waits until it is loaded. Complaints and requests begin anew."""
        self.complaints, self.requests = [], []
        self.call("Page.navigate", url=page.absolute().as_uri())
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Returns what JavaScript gives in the page; an error there is one here."""
        got = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def prefer(self, scheme: str) -> None:
        """Makes it the browser of somebody who prefers "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def press(self, key: str) -> None:
        codes = {"Tab": (9, ""), "Enter": (13, "\r")}
        code, text = codes[key]
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
            )

    def screenshot(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextlib.contextmanager
def running(program: Path) -> Iterator[Browser]:
    """Starts a Chromium that `unpack` has made; it ends with the context, or after two minutes."""
    folder = program.parent
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    environ = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "FONTCONFIG_PATH": str(folder),
        "HOME": str(folder),
    }

    def connect() -> None:
        # First to numbers above those that they get: one must not overwrite the other.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, from_write)]
        for end, number in zip(high, _PIPES, strict=True):
            os.dup2(end, number, inheritable=True)

    process = subprocess.Popen(
        [
            program,
            "--headless",
            "--remote-debugging-pipe",
            # Its own sandbox needs namespaces, which tests do not have. It opens our pages alone.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--window-size=1280,1000",
            f"--user-data-dir={folder / 'profile'}",
        ],
        env=environ,
        stdin=subprocess.DEVNULL,
        stderr=(folder / "stderr").open("w"),
        preexec_fn=connect,
        close_fds=False,
        start_new_session=True,
    )
    os.close(to_read)
    os.close(from_write)

    def end() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    limit = threading.Timer(_LONGEST, end)
    limit.start()
    try:
        yield Browser(to_write, from_read)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{(folder / 'stderr').read_text()[-2000:]}") from error
    finally:
        limit.cancel()
        end()
        process.wait()
        os.close(to_write)
        os.close(from_read)
