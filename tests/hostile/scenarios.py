# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Programs that use the package as its authors did not think of: python -m tests.hostile.scenarios

Each is a function here, run in a process of its own (processes_test.py). It prints its results; an
exception, a signal or a word on standard error is a failure.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy

from tests.hostile import oracle

if len(sys.argv) < 2 or sys.argv[1] not in ("import_with_few_files", "subinterpreter"):
    import aiter_attn


def arrays(seqlen: int = 160, heads: int = 4, head_size: int = 64) -> tuple[Any, Any, Any]:
    """q, k, v: enough work for several threads of the CPU reference."""
    numbers = numpy.random.default_rng(5)
    shape = (1, seqlen, heads, head_size)
    q, k, v = (numbers.standard_normal(shape).astype(numpy.float32) for _ in range(3))
    return q, k, v


def require_right(out: Any, q: Any, k: Any, v: Any) -> None:
    for head in range(q.shape[2]):
        of = (q[0, :, head], k[0, :, head], v[0, :, head])
        want, _ = oracle.forward(*of, q.shape[3] ** -0.5, oracle.Mask())
        oracle.require_equal("out", out[0, :, head], want, "float32")


def call_and_check() -> None:
    q, k, v = arrays()
    require_right(aiter_attn.flash_attn_func(q, k, v), q, k, v)


def calling_threads(count: int) -> None:
    """Daemon threads that call until the process ends; returns once each has called."""
    called = [threading.Event() for _ in range(count)]
    q, k, v = arrays()

    def run(event: threading.Event) -> None:
        out = numpy.empty_like(q)
        while True:
            aiter_attn.mha_fwd(q, k, v, out=out)
            event.set()

    for event in called:
        threading.Thread(target=run, args=(event,), daemon=True).start()
    for event in called:
        event.wait()


def daemon_threads_at_exit() -> None:
    calling_threads(4)


def _ask() -> None:
    """Work that takes locks of the library's own: code objects are looked up and unpacked."""
    for kernel in aiter_attn.kernels():
        data = aiter_attn._C.code_object(kernel["key"])
        assert data[:4] == b"\x7fELF"
    with contextlib.suppress(aiter_attn.DriverError):
        aiter_attn._C.driver_info(aiter_attn._C.DEVICE_ROCM)


def fork_while_threads_call() -> None:
    calling_threads(1)

    def ask() -> None:
        while True:
            _ask()

    for _ in range(3):
        threading.Thread(target=ask, daemon=True).start()
    children = 100
    failed = 0
    for _ in range(children):
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a lock that was held at the fork is held for good
            try:
                call_and_check()
                _ask()
            except BaseException as error:
                os.write(2, f"{error!r}\n".encode())
                os._exit(1)
            os._exit(0)
        failed += os.waitpid(child, 0)[1] != 0
    print(f"{failed} of {children} failed")
    sys.stdout.flush()
    os._exit(0)


def pool_of_spawn() -> None:
    _pool("spawn")


def pool_of_forkserver() -> None:
    _pool("forkserver")


def _pool(method: str) -> None:
    call_and_check()
    with multiprocessing.get_context(method).Pool(2) as pool:
        pool.starmap(call_and_check, [()] * 4)
    print("right")


def subinterpreter(first: str) -> None:
    """first: main, so that the module is there already, or other."""
    try:
        import _interpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:
        import _xxsubinterpreters as interpreters
    if first == "main":
        import aiter_attn  # noqa: F401
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "try:\n"
        "    import aiter_attn\n"
        "    print('works:', len(aiter_attn.kernels()))\n"
        "except ImportError as error:\n"
        "    print('ImportError:', error)\n"
        "sys.stdout.flush()\n"
    )
    other = interpreters.create()
    wrong = interpreters.run_string(other, code)
    assert not wrong, wrong
    interpreters.destroy(other)


def interrupted(by: str) -> None:
    """Tells by what the call ended, and how long after the signal: in seconds of all processors,
    which do not pass while other processes have them."""

    class AlarmedError(Exception):
        pass

    def raises(number: int, frame: FrameType | None) -> None:
        raise AlarmedError

    sent = 0.0

    def send() -> None:
        nonlocal sent
        sent = time.process_time()
        os.kill(os.getpid(), signal.SIGINT if by == "SIGINT" else signal.SIGALRM)

    q, k, v = arrays(seqlen=1 << 14, heads=8)  # minutes of work
    out = numpy.empty_like(q)
    lse = numpy.empty((1, 8, 1 << 14), numpy.float32)
    signal.signal(signal.SIGALRM, raises)
    threading.Timer(0.5, send).start()
    try:
        aiter_attn.mha_fwd(q, k, v, out=out, lse=lse)
    except (KeyboardInterrupt, AlarmedError) as error:
        after = (time.process_time() - sent) / (os.cpu_count() or 1)
        print(f"{type(error).__name__} after {after:.3f} s")
    call_and_check()


def handler_that_returns() -> None:
    """A signal whose handler raises nothing does not end a call."""
    handled = 0

    def count(number: int, frame: FrameType | None) -> None:
        nonlocal handled
        handled += 1

    signal.signal(signal.SIGALRM, count)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    for _ in range(20):
        call_and_check()
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("right, with signals handled" if handled else "no signal came")


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def little_memory(extra: str) -> None:
    """extra: MiB more than the process has."""
    call_and_check()
    q, k, _ = arrays(seqlen=2, heads=1, head_size=128)
    shared = numpy.broadcast_to(k[:, :1], (1, 1 << 20, 1, 128))  # a gigabyte, were it copied
    out, lse = numpy.empty_like(q), numpy.empty((1, 1, 2), numpy.float32)
    limit = _address_space() + int(float(extra) * 2**20)
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        aiter_attn.mha_fwd(q, shared, shared, out=out, lse=lse)
        found = "done"
    except MemoryError as error:
        found = type(error).__name__
    resource.setrlimit(resource.RLIMIT_AS, before)
    print(found)
    call_and_check()


def small_stacks() -> None:
    threading.stack_size(64 << 10)
    q, k, v = arrays()
    lse_shape = (1, q.shape[2], q.shape[1])
    results: list[Any] = []

    def run() -> None:
        out, lse = aiter_attn.mha_fwd(q, k, v, causal=False)
        aiter_attn.mha_bwd(out, q, k, v, out, lse)
        results.append((out, lse))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for out, lse in results:
        require_right(out, q, k, v)
        assert lse.shape == lse_shape
    print(f"{len(results)} right")


def import_with_few_files(most: str) -> None:
    """most: files that may be open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(most), int(most)))
    try:
        import aiter_attn  # noqa: F401

        print("works")
    except (ImportError, OSError) as error:
        print(f"{type(error).__name__}: {error}")


def closed_standard_files(where: str, closed: str) -> None:
    """closed: digits of file descriptors. The findings go to the file `where`."""
    for descriptor in closed:
        os.close(int(descriptor))
    call_and_check()
    try:
        aiter_attn.mha_fwd(*[numpy.zeros((1, 1, 1, 1), numpy.int8)] * 3)
    except TypeError as error:
        with open(where, "w") as file:
            file.write(str(error))


def main(arguments: list[str]) -> None:
    scenario: Callable[..., None] = globals()[arguments[0]]
    scenario(*arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
