# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Events of whole processes: their end, their children, their signals, their interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path)}


def run(code: str, timeout: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    """A deadlock is a failure: subprocess.TimeoutExpired."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=ENVIRONMENT | environment,
    )


# Something that takes long, and lets go of the GIL, after the interpreter has begun to end.
SLOW_END = """
import sys, threading, time, types
import aiter_attn, numpy

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)

sys.modules["slow"] = types.ModuleType("slow")
sys.modules["slow"].keep = Slow()
q = numpy.zeros((1, 128, 1, 8), numpy.float32)
ready = threading.Semaphore(0)

def call():
    aiter_attn.flash_attn_func(q, q, q)

def fail():
    try:
        aiter_attn.mha_fwd(q, q, q, out=q)
    except ValueError:
        pass

def forever(target):
    target()
    ready.release()
    while True:
        target()

for target in {targets}:
    threading.Thread(target=forever, args=(target,), daemon=True).start()
for _ in range(4):
    ready.acquire()
"""


@pytest.mark.parametrize(
    "targets", ["(call,) * 4", "(call, fail) * 2"], ids=["calls", "calls and errors"]
)
def test_threads_that_call_when_the_process_ends(targets: str) -> None:
    code = SLOW_END.format(targets=targets)
    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(run, [code] * 20):
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


IN_SUBINTERPRETER = """
import sys
try:
    import _xxsubinterpreters as interpreters  # 3.11, 3.12
except ImportError:
    import _interpreters as interpreters
{before}
code = '''
try:
    import aiter_attn
except ImportError as error:
    print(type(error).__name__, error, flush=True)
'''
for config in {configs}:
    made = interpreters.create(*config)
    if hasattr(interpreters, "exec"):
        interpreters.exec(made, code)
    else:
        interpreters.run_string(made, code)
    interpreters.destroy(made)
import aiter_attn
print(aiter_attn.__version__)
"""


@pytest.mark.parametrize("before", ["", "import aiter_attn"], ids=["first there", "first here"])
def test_a_subinterpreter_is_told_that_it_cannot_import(before: str) -> None:
    configs = "[('isolated',), ('legacy',)]" if sys.version_info >= (3, 13) else "[(), ()]"
    done = run(IN_SUBINTERPRETER.format(before=before, configs=configs))
    assert done.returncode == 0, done.stderr
    first, second, version = done.stdout.splitlines()
    for line in (first, second):
        assert line.startswith("ImportError aiter_attn: this is a subinterpreter, ")
        assert "allowed: a process of its own" in line
    assert version[0].isdigit()


# Threads compute and look for the GPU's runtime, which takes locks; so do the children.
FORKS = """
import os, signal, threading, time
import aiter_attn, numpy

q = numpy.random.default_rng(0).standard_normal((2, 64, 2, 64)).astype(numpy.float32)
want = aiter_attn.flash_attn_func(q, q, q)
shapes = ((1, 9, 2, 64),) * 3

def compute():
    return numpy.array_equal(aiter_attn.flash_attn_func(q, q, q), want)

def ask():
    try:
        aiter_attn.explain(*shapes, dtype="float16")
    except aiter_attn.DriverError:
        return True

# In turns: ThreadSanitizer keeps megabytes of addresses for each dlopen that fails, as `ask` does
# twice, and nothing forks any more where they are more than the machine has memory.
def forever(target, turns):
    while True:
        turns.acquire()
        target()

computing, asking = threading.Semaphore(0), threading.Semaphore(0)
for target, turns in ((compute, computing), (ask, asking), (ask, asking), (ask, asking)):
    threading.Thread(target=forever, args=(target, turns), daemon=True).start()
failed = 0
for i in range(40):
    computing.release(2)
    asking.release(16)
    time.sleep(0.002 * (i % 5))
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if compute() and ask() else 1)
    failed += os.waitpid(child, 0)[1] != 0
    if failed:
        break
print(failed, flush=True)
os._exit(0)
"""


def test_children_of_a_process_whose_threads_call() -> None:
    done = run(FORKS, timeout=300)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


# A call of many seconds, a signal after half of one, and what is raised when.
SIGNALLED = """
import os, signal, threading, time
import aiter_attn, numpy

class Stopped(Exception):
    pass

def handler(number, frame):
    raise Stopped

{before}
q = numpy.zeros((1, 4096, 16, 128), numpy.float32)
sent = []

def send():
    sent.append(time.monotonic())
    os.kill(os.getpid(), {signal})

threading.Timer(0.5, send).start()
try:
    {call}
except (KeyboardInterrupt, Stopped, RuntimeError) as error:
    took = time.monotonic() - sent[0]
    print(type(error).__name__, "in time" if took < 3 else took, str(error)[:40])
small = numpy.zeros((1, 2, 1, 8), numpy.float32)
assert aiter_attn.flash_attn_func(small, small, small).shape == small.shape
"""
FORWARD = "aiter_attn.flash_attn_func(q, q, q)"
BACKWARD = """k = q[:, :1]
    out, lse = aiter_attn.mha_fwd(q, k, k)
    aiter_attn.mha_bwd(q, q, q, q, out, lse)"""
CALL_IN_HANDLER = """
def handler(number, frame):
    aiter_attn.flash_attn_func(*[numpy.zeros((1, 2, 1, 8), numpy.float32)] * 3)
signal.signal(signal.SIGUSR1, handler)
"""


@pytest.mark.parametrize("call", [FORWARD, BACKWARD], ids=["forward", "backward"])
@pytest.mark.parametrize(
    ("before", "signal", "raised"),
    [
        ("", "signal.SIGINT", "KeyboardInterrupt in time \n"),
        ("signal.signal(signal.SIGUSR1, handler)", "signal.SIGUSR1", "Stopped in time \n"),
        (
            CALL_IN_HANDLER,
            "signal.SIGUSR1",
            "RuntimeError in time aiter_attn: called by a signal handler t\n",
        ),
    ],
    ids=["Ctrl-C", "a handler that raises", "a handler that calls"],
)
def test_a_long_call_ends_when_a_handler_raises(
    call: str, before: str, signal: str, raised: str
) -> None:
    done = run(SIGNALLED.format(before=before, signal=signal, call=call))
    assert (done.returncode, done.stdout) == (0, raised), done.stderr


def test_a_handler_that_returns_lets_the_call_go_on() -> None:
    code = """
import signal
import aiter_attn, numpy
heard = []
signal.signal(signal.SIGALRM, lambda number, frame: heard.append(number))
q = numpy.random.default_rng(0).standard_normal((1, 512, 4, 64)).astype(numpy.float32)
want = aiter_attn.flash_attn_func(q, q, q)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
for _ in range(3):
    assert numpy.array_equal(aiter_attn.flash_attn_func(q, q, q), want)
signal.setitimer(signal.ITIMER_REAL, 0)
assert heard
"""
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")


FOREIGN = os.path.abspath(os.environ["FOREIGN_LIBRARY"])
# The runtime of a sanitizer comes before all that it instruments.
SANITIZERS = os.environ.get("LD_PRELOAD", "").split()

# A call, and what the extension module asks its library at import.
OWN_LIBRARY = """
import aiter_attn, numpy
from aiter_attn import _C

q = numpy.ones((1, 4, 1, 8), numpy.float32)
assert (aiter_attn.flash_attn_func(q, q, q) == q).all()
assert aiter_attn.__version__ == _C.version()
aiter_attn.kernels()
"""


@pytest.mark.parametrize(
    ("before", "environment"),
    [
        ("", {"LD_PRELOAD": ":".join([*SANITIZERS, FOREIGN])}),
        (f"import ctypes; ctypes.CDLL({FOREIGN!r}, ctypes.RTLD_GLOBAL)", {}),
    ],
    ids=["preloaded", "loaded first for all"],
)
def test_another_library_of_the_same_names_takes_no_call(
    before: str, environment: dict[str, str]
) -> None:
    done = run(before + OWN_LIBRARY, **environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
