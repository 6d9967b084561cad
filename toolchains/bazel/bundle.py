# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Makes a relocated Bazel out of unpacked Debian packages.

Every ELF file gets the bundle's own loader and a run path into the bundle, so that nothing of
the host's C library is used, and nothing (as LD_LIBRARY_PATH would) leaks into Bazel's actions.
Paths in the bundle are those of its final place: it is made beside it, then renamed.
"""

from __future__ import annotations

import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence

from toolchains.bazel import registry, truststore
from toolchains.bazel.layout import INSTALL_BASE, LIB, RC
from toolchains.bazel.messages import Progress
from toolchains.locks.errors import LocksError

_UNUSED = (
    "usr/lib/debug",
    f"{LIB}/gconv",
    "usr/share/bash-completion",
    "usr/share/bug",
    "usr/share/doc",
    "usr/share/doc-base",
    "usr/share/gdb",
    "usr/share/lintian",
    "usr/share/man",
    "usr/share/maven-repo",
)
# The files that patchelf itself runs on; it must not edit the files that it is executed from.
_PATCHELF_LIBRARIES = (
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libstdc++.so.6",
)
# The loader and the C library find nothing by a run path.
_UNPATCHED = re.compile(r"(ld-linux|libc\.so)")


def run_path(final: str) -> str:
    """Returns the run path of every ELF file of a bundle whose final place is `final`."""
    return f"$ORIGIN:$ORIGIN/..:$ORIGIN/../lib:{final}/{LIB}"


def class_path(listed: str, extra_jars: Iterable[str], final: str, present: set[str]) -> str:
    """Returns the server's class path file.

    `listed` is Debian's (absolute paths of an installed system), `present` the jars that the
    bundle has, as such paths. The release label's folder comes first.
    """
    jars = [line.strip() for line in listed.splitlines() if line.strip()]
    jars += [f"/usr/share/java/{name}.jar" for name in extra_jars]
    lines = [f"{final}/{INSTALL_BASE}/label"]
    lines += [final + jar for jar in dict.fromkeys(jars) if jar in present]
    return "\n".join(lines) + "\n"


def rc_text(final: str, java_home: str, has_trust_store: bool) -> str:
    """Returns the rc file that makes the client use the bundle.

    It holds start-up options and where modules come from, nothing that enters an action.
    """
    startup = [
        f"--install_base={final}/{INSTALL_BASE}",
        "--trust_install_base",
        f"--server_javabase={final}/{java_home}",
        # Builds are short and mostly wait for compilers: the second compiler tier costs more
        # than it gives.
        "--host_jvm_args=-XX:TieredStopAtLevel=1",
    ]
    if has_trust_store:
        startup += [
            f"--host_jvm_args=-Djavax.net.ssl.trustStore={final}/{truststore.FILE}",
            "--host_jvm_args=-Djavax.net.ssl.trustStoreType=JKS",
            f"--host_jvm_args=-Djavax.net.ssl.trustStorePassword={truststore.PASSWORD}",
        ]
    common = [
        f"--registry=file://{final}/registry",
        # Debian's build writes an empty lock file, which the next run refuses.
        "--lockfile_mode=off",
        # The registry has one version of each module, which may be newer than the one asked for.
        "--check_direct_dependencies=off",
    ]
    return "".join([f"startup {o}\n" for o in startup] + [f"common {o}\n" for o in common])


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as f:
        return f.read()


def _all_files(root: str) -> Iterable[str]:
    for base, folders, names in os.walk(root):
        yield from (os.path.join(base, n) for n in names)
        # A link to a folder counts as a file here.
        links = (os.path.join(base, n) for n in folders)
        yield from (path for path in links if os.path.islink(path))


def _is_elf(path: str) -> bool:
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def _run(command: Sequence[str]) -> None:
    got = subprocess.run(command, capture_output=True, text=True)
    if got.returncode != 0:
        raise LocksError(f"{' '.join(command[:6])} ...: failed: {got.stderr.strip()[-500:]}")


def _in_parallel(commands: Sequence[Sequence[str]], progress: Progress, doing: str) -> None:
    """Runs commands, as many at a time as there are processors. The first failure ends all."""
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    try:
        jobs = [pool.submit(_run, command) for command in commands]
        for number, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            job.result()
            progress.show(f"{doing}: {number} of {len(jobs)}")
    finally:
        pool.shutdown(cancel_futures=True)


def _unpack(archives: Sequence[str], root: str, progress: Progress) -> None:
    _in_parallel([["dpkg-deb", "-x", a, root] for a in archives], progress, "unpacking")
    for folder in _UNUSED:
        shutil.rmtree(f"{root}/{folder}", ignore_errors=True)


def _retarget_links(root: str, final: str) -> None:
    for path in list(_all_files(root)):
        if os.path.islink(path) and os.readlink(path).startswith("/"):
            target = final + os.readlink(path)
            os.unlink(path)
            os.symlink(target, path)


def _patch_elf_files(root: str, final: str, progress: Progress) -> None:
    tools = f"{root}/.patchelf"
    os.makedirs(tools)
    for name in _PATCHELF_LIBRARIES:
        shutil.copy(f"{root}/{LIB}/{name}", f"{tools}/{name}")
    os.rename(f"{root}/usr/bin/patchelf", f"{tools}/patchelf")
    patchelf = [f"{tools}/{_PATCHELF_LIBRARIES[0]}", "--library-path", tools, f"{tools}/patchelf"]
    commands = []
    for path in _all_files(root):
        name = os.path.basename(path)
        if os.path.islink(path) or path.startswith(tools + "/") or not _is_elf(path):
            continue
        if _UNPATCHED.match(name):
            continue
        options = ["--force-rpath", "--set-rpath", run_path(final)]
        if ".so" not in name:
            options += ["--set-interpreter", f"{final}/{LIB}/{_PATCHELF_LIBRARIES[0]}"]
        commands.append([*patchelf, *options, path])
    _in_parallel(commands, progress, "relocating programs and libraries")
    shutil.rmtree(tools)


def _java_home(root: str) -> str:
    found = glob.glob(f"{root}/usr/lib/jvm/java-*-openjdk-amd64")
    homes = [os.path.relpath(h, root) for h in found if not os.path.islink(h)]
    if len(homes) != 1:
        raise LocksError(
            f"the locked packages hold {len(homes)} Java runtimes ({', '.join(homes) or 'none'}), "
            "one is needed: correct group.bazel of toolchains/debian/packages.toml"
        )
    return homes[0]


def _configure(root: str, final: str, offline: registry.Offline) -> None:
    base = f"{root}/{INSTALL_BASE}"
    listed = f"{base}/bazel_classpath_debian_depends.txt"
    present = {f"/usr/share/java/{n}" for n in os.listdir(f"{root}/usr/share/java")}
    _write(listed, class_path(_read(listed), offline.extra_jars, final, present))
    # Debian leaves the release label out of the jar: native.bazel_version would be empty.
    label = _read(f"{base}/build-label.txt").strip()
    _write(
        f"{base}/label/build-data.properties",
        f"build.label={label}\nbuild.timestamp.as.int=0\nbuild.timestamp=Debian package\n",
    )
    # The client sets java.library.path to the install base; zstd is looked up there.
    os.symlink(f"{final}/{LIB}/libzstd-jni.so", f"{base}/libzstd-jni.so")

    def read_module(path: str) -> str:
        file = f"{base}/{path}/MODULE.bazel"
        if not os.path.exists(file):
            raise LocksError(
                f"the locked packages hold no {INSTALL_BASE}/{path}/MODULE.bazel: "
                "correct toolchains/bazel/offline.toml"
            )
        return _read(file)

    module_path = f"{final}/{INSTALL_BASE}"
    for path, text in registry.files(offline, module_path, read_module).items():
        _write(f"{root}/{path}", text)


def build(
    archives: Sequence[str], root: str, final: str, offline: registry.Offline, progress: Progress
) -> None:
    """Fills the empty folder `root` with a bundle that works once it is renamed to `final`."""
    _unpack(archives, root, progress)
    _retarget_links(root, final)
    _patch_elf_files(root, final, progress)
    _configure(root, final, offline)
    _write(f"{root}/{RC}", rc_text(final, _java_home(root), truststore.refresh(root)))
    progress.clear()
