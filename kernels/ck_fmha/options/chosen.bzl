# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The options of code generation that instances have by themselves: lock.json, checked."""

load("@archs//:archs.bzl", "ARCHS")
load("@ck_fmha//:pipelines.bzl", "PIPELINES")
load("@kernel_lists//:option_choices.bzl", "OPTION_CHOICES")
load("@kernel_lists//:options.bzl", "OPTIONS_LOCK")

# Letter -> option, as docs/performance.md has them.
OPTIONS = OPTION_CHOICES["options"]

# The choices that are tried, each a tuple of options.
CHOICES = {
    tuple([OPTIONS[letter] for letter in letters.elems()]): letters
    for letters in OPTION_CHOICES["choices"]
}

_LOCK = "kernels/ck_fmha/options/lock.json"
_MEND = "restore the file, or delete that line and run ./bazelw run //kernels:choose_options"

def _entry(arch, member, entry):
    """The entry of the lock. Fails where it is none."""
    place = "%s: %s: %s" % (_LOCK, arch, member)
    if arch not in ARCHS:
        fail("%s: %s is no arch of kernels/archs; known: %s" % (_LOCK, arch, ", ".join(ARCHS)))
    package = member.partition(":")[0]
    if package not in PIPELINES:
        fail("%s: %s is no package of the pool; %s" % (place, package, _MEND))
    if type(entry) != "dict" or type(entry.get("options")) != "list":
        fail("%s: %s has no list of options; %s" % (place, entry, _MEND))
    key = entry.get("key", "")
    if len(key) != 64 or key.strip("0123456789abcdef"):
        fail("%s: its key is %r, not 64 hexadecimal digits; %s" % (place, key, _MEND))
    if tuple(entry["options"]) not in CHOICES:
        fail("%s: %r is no choice of options/choices.json; %s" %
             (place, " ".join(entry["options"]), _MEND))
    return entry

def _by_package():
    """Package -> (arch, instance) -> its entry."""
    index = {}
    for arch, members in OPTIONS_LOCK.items():
        if type(members) != "dict":
            fail("%s: %s has no kernels; restore the file" % (_LOCK, arch))
        for member, entry in members.items():
            package, _, instance = member.partition(":")
            index.setdefault(package, {})[arch, instance] = _entry(arch, member, entry)
    return index

_BY_PACKAGE = _by_package()

def chosen_options(package, instance, arch):
    """The entry of an instance.

    Args:
      package: of the pool.
      instance: its name.
      arch: one of kernels/archs.
    Returns:
      A dict: `options`, and `key`, that of its own compile without options, which they were chosen
      for. None where the lock has nothing of it.
    """
    return _BY_PACKAGE.get(package, {}).get((arch, instance))

def check_instances(package, instances):
    """Fails on an entry that would hold for no kernel, silently.

    Args:
      package: of the pool.
      instances: all of it.
    """
    for arch, instance in _BY_PACKAGE.get(package, {}):
        if instance not in instances:
            fail("%s: %s: %s has no instance %s; %s" % (_LOCK, arch, package, instance, _MEND))
