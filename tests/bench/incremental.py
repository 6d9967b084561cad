# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of a wheel whose kernels a cache has, and of small changes to it.

    ./bazelw run --config=cache //tests/bench:incremental -- --variants=standard --archs=gfx950

In a new checkout, with its own HOME and output root, the wheel is built from the disk cache of this
user, which a server on this machine serves over HTTP to be read: fill it by a build of that wheel
with `--config=cache`. Then come, each on top of those before it: nothing; a word in the source of
an instance; a word in a header (`--header`); and the set with kernels more (`--more`).

A row has processor seconds of Bazel's server with all that it ran, seconds that passed, actions
that ran and answers of the cache, and groups and code objects, of either. The first row fetches the
repositories, and loads and analyses the build.
"""

from __future__ import annotations

import collections
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tests.e2e.clone import Clone, shared_disk_cache
from toolchains.bazel import events
from toolchains.remote.fill import serve_disk_cache

_WHEEL = "//python:attn_wheel"

_VARIANTS = flags.DEFINE_string("variants", "core", "the variant set")
_ARCHS = flags.DEFINE_string("archs", "gfx942", "separated by commas")
_INSTANCE = flags.DEFINE_string(
    "instance", "fmha_bwd_dot_do_o_d64_fp16_b64_batch_o2_ps", "whose source gets a word more"
)
_HEADER = flags.DEFINE_string(
    "header",
    "ck_tile/ops/fmha/pipeline/block_fmha_bwd_dot_do_o.hpp",
    "of Composable Kernel, that gets a word more",
)
_MORE = flags.DEFINE_string(
    "more",
    'direction = "fwd"\ndtype = "fp16"\nhead_size_qk = 64\nmode = "batch"\nmask = false\n'
    'bias = "none"\nlse = false\ndropout = false\nlogits_soft_cap = false\n'
    "skip_min_seqlen_q = false\npad_seqlen_q = true\npad_seqlen_k = true\n"
    "transposed_loads = false\n",
    "the [[variants]] that the set gets, as TOML",
)


def touch(checkout: Clone, pattern: str) -> None:
    """Appends a comment to a source among the repositories. Ends the bench if it is not there."""
    base = Path(checkout.bazel("info", "output_base").stdout.split()[-1])
    found = sorted(base.glob(f"external/{pattern}"))
    if len(found) != 1:
        sys.exit(f"{pattern}: {len(found)} such files in {base}/external; name one of its files")
    (source,) = found
    source.chmod(0o644)
    # A word that no cache has seen.
    source.write_text(f"{source.read_text('utf-8')}// {time.time_ns()}\n", "utf-8")


class Bench:
    """Builds in a checkout, one after the other, with a cache that is read."""

    def __init__(self, checkout: Clone, url: str) -> None:
        self.checkout = checkout
        self._flags = (
            "--config=remote-cache",
            f"--remote_cache={url}",
            f"--//kernels:archs={_ARCHS.value}",
        )
        self._before = 0.0
        heads = "ran", "cached", "groups", "objects"
        print(f"{'':<28}{'CPU s':>8}{'s':>8}" + "".join(f"{h:>9}" for h in heads), flush=True)

    def row(self, title: str, variants: str) -> None:
        """Builds the wheel and prints a row."""
        # Bazel's log of actions would list the files that each reads: minutes, of a large set.
        file = self.checkout.root.parent / "events.json"
        start = time.monotonic()
        self.checkout.bazel(
            "build",
            *self._flags,
            f"--//kernels:variants={variants}",
            f"--build_event_json_file={file}",
            "--build_event_publish_all_actions",
            _WHEEL,
        )
        passed = time.monotonic() - start
        processors = self.checkout.cpu_seconds()
        told = events.read(str(file))
        compiles = collections.Counter(compile.mnemonic for compile in told.compiles.values())
        counts = (
            sum(told.runners.get(name, 0) for name in ("linux-sandbox", "local", "worker")),
            told.runners.get("remote cache hit", 0),
            compiles[events.GROUP],
            compiles["HipCodeObject"],
        )
        print(
            f"{title:<28}{processors - self._before:>8.1f}{passed:>8.1f}"
            + "".join(f"{count:>9,}" for count in counts),
            flush=True,
        )
        self._before = processors


def measure(checkout: Clone, url: str) -> None:
    variants = _VARIANTS.value
    file = checkout.root / f"kernels/variants/{variants}.toml"
    if not file.is_file():
        sys.exit(f"--variants={variants}: no file of kernels/variants; name one of these sets")
    bench = Bench(checkout, url)
    bench.row("from the cache", variants)
    bench.row("again", variants)
    touch(checkout, f"_main*ck_fmha/*/*/{_INSTANCE.value}.cpp")
    bench.row("an instance changed", variants)
    touch(checkout, f"_main*composable_kernel/include/{_HEADER.value}")
    bench.row("a header changed", variants)
    # A set of one's own, as the others lie there.
    own = file.with_name("incremental.toml")
    own.write_text(f"{file.read_text('utf-8')}\n[[variants]]\n{_MORE.value}", "utf-8")
    bench.row("a set with more", own.stem)


def main(arguments: Sequence[str]) -> None:
    if len(arguments) > 1:
        sys.exit(f"{arguments[1]}: unexpected argument; allowed: options, see --help")
    disk_cache = shared_disk_cache()
    if not disk_cache.is_dir():
        sys.exit(f"{disk_cache} is not there: build {_WHEEL} with --config=cache first")
    with (
        tempfile.TemporaryDirectory(prefix="incremental-") as base,
        serve_disk_cache(disk_cache) as url,
    ):
        checkout = Clone(Path(base), "checkout")
        try:
            measure(checkout, url)
        finally:
            checkout.close()


if __name__ == "__main__":
    app.run(main)
