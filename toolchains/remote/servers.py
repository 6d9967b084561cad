# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Real servers on the loopback interface: caches, nginx (HTTP) and BuildGrid (gRPC), nginx with
WebDAV, for releases, and justbuild, which executes actions.

They are programs of locked packages and run in a folder of their own, which holds their data:

    with Nginx(folder) as server:
        ...  # ./bazelw build --remote_cache={server.url}

Tests find the programs through the environment that `remote_test` of defs.bzl gives them.
"""

from __future__ import annotations

import abc
import base64
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Self

_START_SECONDS = 300
_END_SECONDS = 60
_ADDRESSES = {
    "buildgrid.yml": "127.0.0.1:8980",
    "buildgrid_executor.yml": "127.0.0.1:8980",
    "nginx.conf": "127.0.0.1:8080",
    "webdav.conf": "127.0.0.1:8081",
}


def basic(user: str, password: str) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


# The environment of a program that is to find neither programs nor a home.
NOWHERE = {"HOME": "/nonexistent", "PATH": "/nonexistent"}


def runfile(variable: str) -> Path:
    """Returns the file that an environment variable names, below the test's runfiles."""
    return Path(os.environ["TEST_SRCDIR"], os.environ[variable]).absolute()


def with_loader(program: Path) -> list[str]:
    """A Debian program's command, by the loader and the libraries of its tree; its path is last."""
    tree = next(folder for folder in program.parents if folder.name == "usr")
    libraries = tree / "lib/x86_64-linux-gnu"
    return [
        *(str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries)),
        str(program),
    ]


def replaced(settings: str, default: str, value: str) -> str:
    """Returns settings with another value than the default, which they must have."""
    if default not in settings:
        raise AssertionError(f"the settings have no {default}")
    return settings.replace(default, value)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Process(abc.ABC):
    """A program that may be killed and started again: its folder stays."""

    crash = signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process: subprocess.Popen[bytes] | None = None

    @abc.abstractmethod
    def command(self) -> list[str]:
        """Returns the program and its arguments; it runs in `folder`."""

    def environment(self) -> dict[str, str]:
        return {}

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env=self.environment(),
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """Ends it as a crash would."""
        if self.process:
            self.process.send_signal(self.crash)
            self.process.wait()
            self.process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Server(Process):
    """A process that listens at a port, which stays when it is started again."""

    template = ""  # of a file with its settings; "": it has none
    scheme: str

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = _free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"{self.scheme}://{self.address}"
        if self.template:
            text = (Path(__file__).parent / self.template).read_text(encoding="utf-8")
            self.settings = replaced(text, _ADDRESSES[self.template], self.address)

    def start(self) -> None:
        """Starts it and waits for an answer. Raises RuntimeError with its log if there is none."""
        if self.template:
            (self.folder / self.template).write_text(self.settings, encoding="utf-8")
        super().start()
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self.process and self.process.poll() is None:
            if self._answers():
                return
            time.sleep(0.05)
        self.kill()
        raise RuntimeError(
            f"{type(self).__name__}: no answer at {self.address}\n"
            + (self.folder / "log").read_text()
        )

    def kill(self) -> None:
        """Ends it as a crash would, and waits until nothing answers.

        A program that a wrapper started ends a little later than the wrapper, which is the process
        here. If it still answered, `start` would take it for the one that it starts.
        """
        super().kill()
        deadline = time.monotonic() + _END_SECONDS
        while self._answers():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{type(self).__name__}: {self.address} answers after its end")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


class Nginx(Server):
    """Everybody reads; the writer of `WRITER` (Basic credentials) writes."""

    template = "nginx.conf"
    scheme = "http"
    WRITER = ("ci", "a-password-of-tests")

    @property
    def writers_url(self) -> str:
        """The URL with the writer's credentials."""
        user, password = (urllib.parse.quote(part, safe="") for part in self.WRITER)
        return f"{self.scheme}://{user}:{password}@{self.address}"

    @property
    def data(self) -> Path:
        """The folder that is served; a cache's entries are ac/HASH and cas/HASH."""
        return self.folder / "data"

    def command(self) -> list[str]:
        for folder in ("data", "tmp"):
            (self.folder / folder).mkdir(exist_ok=True)
        name, password = self.WRITER
        (self.folder / "writers").write_text(f"{name}:{{PLAIN}}{password}\n", encoding="utf-8")
        return [
            *with_loader(runfile("NGINX")),
            *("-p", str(self.folder), "-c", self.template, "-e", "error.log"),
            # One process in the foreground, which keeps its user: to be killed as a whole.
            *("-g", "daemon off; master_process off;" + ("" if os.geteuid() else " user root;")),
        ]


class WebDav(Nginx):
    """The same of a folder for releases, `/attn/`."""

    template = "webdav.conf"

    def command(self) -> list[str]:
        (self.data / "attn").mkdir(parents=True, exist_ok=True)
        return super().command()


class BuildGrid(Server):
    """All who reach it read and write. Results of actions do not outlive the process."""

    template = "buildgrid.yml"
    scheme = "grpc"

    def program(self) -> list[str]:
        return [tools_python(), "-c", "from buildgrid.server.app import cli; cli()"]

    def command(self) -> list[str]:
        return [*self.program(), "server", "start", self.template]

    def environment(self) -> dict[str, str]:
        return tools_environment()


class Justbuild(Server):
    """Executes actions on this machine, one process for all: execution, results and files.

    It finds no program and no home: an action has what is in its tree, and its environment.
    """

    scheme = "grpc"

    def __init__(self, folder: Path, wrapper: Sequence[str] = ()) -> None:
        """`wrapper` is a command that the server's is appended to."""
        super().__init__(folder)
        self.wrapper = wrapper

    @property
    def options(self) -> tuple[str, ...]:
        """Bazel's, to build with it."""
        return self.options_at(self.address)

    def options_at(self, address: str) -> tuple[str, ...]:
        """The same by way of a proxy."""
        return (
            "--config=rbe",
            f"--remote_executor={self.scheme}://{address}",
            "--remote_instance_name=remote-execution",
        )

    @property
    def _root(self) -> Path:
        return self.folder / "root"

    def begun(self) -> int:
        """The number of actions that it was asked to execute."""
        return (self.folder / "log").read_bytes().count(b"Execute ")

    def forget(self) -> None:
        """Loses all results and files, as a new machine has none."""
        shutil.rmtree(self._root)

    def forget_results(self) -> None:
        """Loses the results of actions, and keeps all files."""
        (results,) = self._root.glob("protocol-dependent/generation-0/compatible-sha256/ac")
        shutil.rmtree(results)

    def command(self) -> list[str]:
        return [
            *self.wrapper,
            *with_loader(runfile("JUSTBUILD").resolve()),
            *("execute", "--compatible", "--port", str(self.port)),
            *("--local-build-root", str(self._root)),
            # By default it starts commands by `env`, which it does not find: they end with 1 and
            # say nothing.
            *("--local-launcher", "[]"),
        ]

    def environment(self) -> dict[str, str]:
        return NOWHERE


class UnusableExecutor(Server):
    """It executes nothing, for a reason of unusable_executor.py."""

    scheme = "grpc"

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(folder)
        self._reason = reason

    def command(self) -> list[str]:
        program = Path(__file__).with_name("unusable_executor.py")
        return [tools_python(), str(program), self.address, self._reason]

    def environment(self) -> dict[str, str]:
        return tools_environment()


def tools_environment() -> dict[str, str]:
    """The environment of Python programs that import what @pypi_tools holds."""
    return {"PYTHONPATH": str(runfile("TOOLS_SITE_PACKAGES").parent), "PATH": os.defpath}


def tools_python() -> str:
    return str(runfile("TOOLS_PYTHON"))
