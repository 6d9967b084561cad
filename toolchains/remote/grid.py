# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A cluster of remote execution on this machine: BuildGrid, its queue in PostgreSQL, and workers.

    with Grid(folder) as grid:
        grid.add("default"), grid.add("large-memory")
        ...  # ./bazelw build {grid.options}

Each of its processes may be killed and started again. Workers find neither a home nor programs.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolchains.remote import servers
from toolchains.remote.servers import NOWHERE, BuildGrid, Process, Server, runfile, with_loader

_QUEUE = "127.0.0.1:5432"
_START_SECONDS = 300


def _program(file: Path, command: list[str]) -> None:
    """Writes a program that runs a command, for one that knows programs by their paths alone."""
    words = " ".join(f"'{word}'" for word in command)
    file.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    file.chmod(0o755)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Runs a program to its end. Raises RuntimeError, with its output, where it fails."""
    done = subprocess.run(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")


class Postgres(Server):
    """A database that whoever reaches it may use."""

    scheme = "postgresql"
    # It ends its own processes, and leaves its files as they are.
    crash = signal.SIGQUIT

    def environment(self) -> dict[str, str]:
        return NOWHERE

    def start(self) -> None:
        if not (self.folder / "bin").exists():
            self._make_files()
        super().start()

    def command(self) -> list[str]:
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off")
        return [
            *(*self._not_root, str(self.folder / "bin/postgres"), "-D", "data"),
            *("-p", str(self.port)),
            *(word for setting in settings for word in ("-c", setting)),
        ]

    @property
    def _not_root(self) -> tuple[str, ...]:
        return servers.tools_python(), str(Path(__file__).with_name("not_root.py"))

    def _make_files(self) -> None:
        """Makes an empty database, by a program that looks for `postgres` beside itself."""
        programs = self.folder / "bin"
        programs.mkdir()
        initdb, postgres = runfile("INITDB").resolve(), runfile("POSTGRES").resolve()
        *loader, _ = with_loader(postgres)
        _program(programs / "postgres", [*loader, "--argv0", str(postgres), str(postgres)])
        shutil.copy(initdb, programs / "initdb")
        share = postgres.parents[4] / "share/postgresql" / postgres.parents[1].name
        _run(
            [
                *(*self._not_root, *loader, str(programs / "initdb")),
                *("-D", str(self.folder / "data"), "-L", str(share), "-U", "buildgrid"),
                *("-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"),
            ],
            self.environment(),
        )


class Executor(BuildGrid):
    """BuildGrid, with its queue in a database."""

    template = "buildgrid_executor.yml"

    def __init__(self, folder: Path, queue: Postgres) -> None:
        super().__init__(folder)
        self.settings = servers.replaced(self.settings, _QUEUE, queue.address)
        self._queue = f"postgresql+psycopg://buildgrid@{queue.address}/postgres"

    def start(self) -> None:
        _run([*self.program(), "migrate", "apply", self._queue], self.environment())
        super().start()


class _Files(Process):
    """The files of a worker: each is fetched once, and linked into the folders of actions."""

    # Seen from the worker: the paths of sockets have to be short.
    SOCKET = "unix:files/socket"

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._url = url
        self._socket = folder / "socket"

    def environment(self) -> dict[str, str]:
        return NOWHERE

    def command(self) -> list[str]:
        return [
            *with_loader(runfile("BUILDBOX_CASD").resolve()),
            *(f"--cas-remote={self._url}", f"--ac-remote={self._url}", "--retry-limit=10"),
            *("--bind=unix:socket", "--log-level=warning", str(self.folder / "store")),
        ]

    def start(self) -> None:
        self._socket.unlink(missing_ok=True)
        super().start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._socket.exists():
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"buildbox-casd: {(self.folder / 'log').read_text()}")
            time.sleep(0.05)


class Worker(Process):
    """A worker of pools, which runs an action at a time, in an environment without programs."""

    def __init__(self, folder: Path, url: str, pools: tuple[str, ...], lies: bool = False) -> None:
        """`lies`: it executes nothing, as a machine of another platform."""
        super().__init__(folder)
        self.pools = pools
        self._lies = lies
        self._url = url.replace("grpc://", "http://")
        self._files = _Files(folder / "files", self._url)

    def executed(self) -> int:
        """The number of actions that it has executed."""
        return self._log.count(b"Runner exited with code 0")

    def failed(self) -> int:
        """The number of actions that it was given, and could not execute."""
        return self._log.count(b"Runner exited with") - self.executed()

    @property
    def _log(self) -> bytes:
        return (self.folder / "log").read_bytes()

    def is_busy(self) -> bool:
        """Whether it executes an action: by a process of its own."""
        tasks = Path(f"/proc/{self.process.pid}/task") if self.process else self.folder
        return any(children.read_text() for children in tasks.glob("*/children"))

    def environment(self) -> dict[str, str]:
        return NOWHERE

    def command(self) -> list[str]:
        runner = self.folder / "runner"
        if self._lies:
            # It says yes to its options.
            runner.write_text('#!/bin/sh\ncase "$*" in *--validate*) exit 0; esac\nexit 1\n')
            runner.chmod(0o755)
        else:
            _program(runner, with_loader(runfile("BUILDBOX_RUN").resolve()))
        return [
            *with_loader(runfile("BUILDBOX_WORKER").resolve()),
            *(f"--bots-remote={self._url}", f"--cas-remote={_Files.SOCKET}"),
            # A server without its database wants to be asked again after 45 s at most; one that is
            # started again takes a minute.
            *("--request-timeout=300", "--retry-limit=10", f"--buildbox-run={runner}"),
            "--runner-arg=--staging-mode=copy-or-link",
            *(f"--platform=pool={pool}" for pool in self.pools),
            self.folder.name,
        ]

    def start(self) -> None:
        self._files.start()
        super().start()

    def kill(self) -> None:
        super().kill()
        self._files.kill()


class Grid(contextlib.ExitStack):
    """All of it. Its parts are `queue`, `executor` and, by the order of `add`, `workers`."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.queue = Postgres(folder / "queue")
        self.workers: list[Worker] = []
        self.enter_context(self.queue)
        try:
            self.executor = self.enter_context(Executor(folder / "executor", self.queue))
        except BaseException:
            self.close()
            raise

    @property
    def options(self) -> tuple[str, ...]:
        """Bazel's, to build with it."""
        return "--config=rbe", f"--remote_executor={self.executor.url}"

    def add(self, *pools: str, lies: bool = False) -> Worker:
        """Starts one more worker."""
        folder = self.folder / f"worker{len(self.workers)}"
        worker = self.enter_context(Worker(folder, self.executor.url, pools, lies))
        self.workers.append(worker)
        return worker
