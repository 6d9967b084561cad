# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Runs Bazel as a child that has the terminal, the signals and the exit code of this process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# siginfo's si_code of a signal that a process sent. The terminal's are the kernel's: Bazel has
# got those itself, as it is in the terminal's foreground, too.
_FROM_A_PROCESS = 0


def run(command: Sequence[str], meanwhile: Callable[[], bool], every: float) -> int:
    """Runs a program until it ends and returns its status, as that of os.waitpid.

    Args:
      command: the program's path and its arguments.
      meanwhile: is called now and then; says whether to interrupt the program.
      every: seconds from one such call to the next.

    Raises OSError where the program cannot be run.
    """
    waited_for = {*_FORWARDED, signal.SIGCHLD}
    # Where it is ignored, the kernel forgets how a child ended.
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited_for)
    try:
        process = os.posix_spawn(command[0], list(command), os.environ, setsigmask=before)
        while True:
            got = signal.sigtimedwait(waited_for, every)
            if got is None:
                if meanwhile():
                    os.kill(process, signal.SIGINT)
            elif got.si_signo == signal.SIGCHLD:
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    return status
            elif got.si_code <= _FROM_A_PROCESS:
                os.kill(process, got.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, handler)


def end_as(status: int) -> None:
    """Ends this process as the child with that status ended."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
    os.kill(os.getpid(), -code)
    os._exit(128 - code)
