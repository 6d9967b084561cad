# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The Containerfile, built by a real buildah: the user's image works and has the same wheel bytes.

There is no registry here: the base image is a root that debootstrap makes of the machine's own
archive, and buildah is Debian's, in another such root. Its containers are isolated by chroot, which
needs neither a container runtime nor user namespaces. Root is needed, to mount those roots.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import clone

FILE = "docs/examples/container/Containerfile"
BUILDAH = "buildah --storage-driver vfs"
# The build's own user in the image, who owns what is mounted for it.
USER = 1000


def run(command: str, folder: Path) -> str:
    """Runs a shell command; returns what it prints."""
    done = subprocess.run(
        ["sh", "-euc", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


class Builder:
    """A root with buildah in it, and below /exchange what this test shares with it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.exchange = base / "exchange"
        self.exchange.mkdir()
        run("apt-get download -q debootstrap && dpkg-deb -x debootstrap_*.deb .", base)
        site = run("apt-get indextargets --format '$(SITE) $(CODENAME)' | sort -u", base)
        archive, suite = min(site.splitlines(), key=len).split()
        bootstrap = (
            f"DEBOOTSTRAP_DIR={base}/usr/share/debootstrap {base}/usr/sbin/debootstrap "
            f"--variant=minbase {suite}"
        )
        run(f"{bootstrap} {self.exchange}/base {archive}", base)
        run("cp -a exchange/base root && cp /etc/resolv.conf root/etc && mkdir root/exchange", base)
        self("apt-get update -q && apt-get install -qy --no-install-recommends buildah uidmap")

    def __call__(self, command: str) -> str:
        """Runs a command there, in a mount namespace that ends with it."""
        mounts = (
            "mount --bind root root; cd root; mount -t proc proc proc; mount --rbind /dev dev; "
            "mount --rbind /sys sys; mount --bind ../exchange exchange; "
            f"DEBIAN_FRONTEND=noninteractive exec chroot . sh -euc {shlex.quote(command)}"
        )
        return run(
            f"exec unshare --mount --propagation private sh -euc {shlex.quote(mounts)}", self.base
        )


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    made = Builder(tmp_path_factory.mktemp("container"))
    run("./bazelw --vendor " + shlex.quote(str(made.exchange / "vendored")), clone.workspace())
    project = clone.Clone(made.base, "context")
    project.root.rename(made.exchange / "context")
    unfinished = shutil.ignore_patterns("tmp", "gc")
    shutil.copytree(clone.shared_disk_cache(), made.exchange / "cache", ignore=unfinished)
    run(f"chown -R {USER}:{USER} exchange/cache", made.base)
    made(
        f"c=$({BUILDAH} from scratch); {BUILDAH} add -q $c /exchange/base /; "
        f"{BUILDAH} commit -q $c localhost/base; {BUILDAH} rm $c"
    )
    yield made
    # vfs keeps a copy of the root for each layer.
    made(f"{BUILDAH} rm -a; {BUILDAH} rmi -a -f")
    shutil.rmtree(made.base, ignore_errors=True)


@pytest.fixture(scope="module")
def reference() -> Path:
    """The wheel of the checkout under test."""
    return Path(os.environ["REFERENCE_WHEEL"]).resolve()


@pytest.fixture(scope="module")
def image(builder: Builder, reference: Path) -> str:
    """The user's image, with the settings of the reference."""
    with zipfile.ZipFile(reference) as wheel:
        manifest = json.loads(wheel.read("aiter_attn/manifest.json"))
    abi = reference.name.split("-")[2]
    flags = [
        f"--//kernels:variants={manifest['variant_set']}",
        f"--//kernels:archs={','.join(manifest['archs'])}",
        f"--//toolchains/python:abi={abi}",
        "--disk_cache=/cache",
    ]
    builder(
        f"{BUILDAH} bud --isolation chroot --layers=false --build-arg BASE=localhost/base "
        f"--build-arg FLAGS={shlex.quote(' '.join(flags))} "
        "--build-arg AITER_ATTN_MIRROR=/vendored -v /exchange/vendored:/vendored:ro "
        "-v /exchange/cache:/cache "
        f"--target user -t localhost/user -f /exchange/context/{FILE} /exchange/context"
    )
    return "localhost/user"


def in_image(builder: Builder, image: str, command: str) -> str:
    return builder(
        f"c=$({BUILDAH} from {image}); {BUILDAH} run --isolation chroot $c -- {command}; "
        f"{BUILDAH} rm $c >/dev/null"
    )


def test_the_image_has_the_same_wheel(builder: Builder, image: str, reference: Path) -> None:
    line = in_image(builder, image, f"sha256sum /opt/wheels/{reference.name}")
    assert line.split()[0] == clone.sha256(reference)


def test_the_image_runs_the_package_as_nobody(builder: Builder, image: str) -> None:
    assert in_image(builder, image, "id -un").strip() == "nobody"
    information = json.loads(in_image(builder, image, "python -m aiter_attn info --json"))
    assert information["not_locked"] == []
