# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The targets of the generated repositories. Each macro declares a whole package."""

load("@archs//:archs.bzl", "ARCHS")
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@variant_sets//:known.bzl", "DIRECTIONS")
load(
    "//kernels:defs.bzl",
    "chosen_archs",
    "code_object",
    "code_object_group",
    "code_object_library",
    "compile_group",
)
load("//kernels/ck_fmha:defs.bzl", "ck_host_library")
load("//kernels/ck_fmha/groups:proofs.bzl", "proof_of")
load("//kernels/ck_fmha/options:chosen.bzl", "check_instances")
load("//kernels/ck_fmha/private:machine_options.bzl", "machine_options")
load("//kernels/ck_fmha/private:no_instances.bzl", "no_instances")

_PUBLIC = ["//visibility:public"]

# TARGETS of ckgen/directions.py, but the first: upstream's names of archs.
_FURTHER_TARGETS = ["gfx12"]

# buildifier: disable=unnamed-macro
def instances_package(pipelines, left_out, groups, sections):
    """A package of the pool:

        INSTANCE.ARCH           the code object, compiled by itself
        INSTANCE.grouped.ARCH   the code object, compiled with its group
        ... .library            the same as a cc_library

    Args:
      pipelines: pipeline -> instance -> its workgroup, {"waves": N} or {"work_items": N}.
      left_out: instance -> archs that there is none for.
      groups: instance -> its compile group, "PACKAGE:NAME" in @ck_fmha//groups.
      sections: pipeline -> its section of headers.toml.
    """
    check_instances(
        native.package_name(),
        {instance: None for instances in pipelines.values() for instance in instances},
    )
    sources = {}
    for pipeline, blocks in pipelines.items():
        for instance, block in blocks.items():
            for arch in ARCHS:
                if arch in left_out.get(instance, []):
                    continue
                recipe = _recipe(sections[pipeline])
                _instance(instance, block, pipeline, arch, recipe, instance)
                if instance in groups:
                    sources[_source(instance, arch)] = True
                    group = "@ck_fmha//groups/%s.%s" % (groups[instance], arch)
                    grouped = instance + ".grouped"
                    _instance(instance, block, pipeline, arch, recipe, grouped, group)
    native.exports_files(sources.keys(), visibility = ["@ck_fmha//groups:__subpackages__"])

def _recipe(section):
    return "@ck_fmha//:recipe." + section

def _source(instance, arch):
    """The file of an instance, which asserts the size of its workgroups of waves."""
    wave_size = ARCHS[arch]["wave_size"]
    return ("" if wave_size == 64 else "wave%d/" % wave_size) + instance + ".cpp"

def _instance(instance, block, pipeline, arch, recipe, name, group = None):
    """The targets of an instance for an arch, named NAME.ARCH."""
    options = machine_options(native.package_name(), pipeline, instance, arch)
    code_object(
        name = "%s.%s" % (name, arch),
        src = _source(instance, arch),
        arch = arch,
        block_size = block.get("work_items") or block["waves"] * ARCHS[arch]["wave_size"],
        chosen_for = options.chosen_for,
        copts = options.copts,
        group = group and select({
            Label("//kernels/ck_fmha:shortcuts.all"): group,
            "//conditions:default": None,
        }),
        instance = instance,
        proven = select({
            Label("//kernels/ck_fmha:shortcuts.all"): proof_of(
                native.package_name(),
                instance,
                arch,
            ),
            "//conditions:default": [],
        }),
        recipe = recipe,
        tags = ["manual"],
        visibility = _PUBLIC,
    )
    code_object_library(
        name = "%s.%s.library" % (name, arch),
        arch = arch,
        code_object = ":%s.%s" % (name, arch),
        instance = instance,
        tags = ["manual"],
        visibility = _PUBLIC,
    )

# buildifier: disable=unnamed-macro
def groups_package(groups, left_out, sections):
    """A package of the pool's compile groups: GROUP.ARCH.

    Args:
      groups: group -> its members, "package:instance".
      left_out: group -> archs that there is none for.
      sections: group -> its section of headers.toml.
    """
    for group, members in groups.items():
        for arch in ARCHS:
            if arch in left_out.get(group, []):
                continue
            compile_group(
                name = "%s.%s" % (group, arch),
                srcs = [
                    "@ck_fmha//%s:%s" % (package, _source(instance, arch))
                    for package, instance in [member.split(":") for member in members]
                ],
                arch = arch,
                recipe = _recipe(sections[group]),
                tags = ["manual"],
                visibility = _PUBLIC,
            )

def _direction_of(label):
    """The direction of an instance, by its label @ck_fmha//DIRECTION/SHAPE:INSTANCE."""
    return label.partition("//")[2].partition("/")[0]

def _nothing_there(variant_set, instances, left_out, arch, direction = None):
    """The message about a target without an instance. Its arguments are as below."""
    of = [name for name, label in instances.items() if direction in (None, _direction_of(label))]
    message = "Variant set %s has no instance%s for %s" % (
        variant_set,
        " of " + direction if direction else "",
        arch,
    )
    if of:
        reasons = {left_out[name][arch]: True for name in of}
        text = ", as all %d are left out: %s (kernels/archs/%s.json). It has some for: %s."
        return message + text % (
            len(of),
            "; ".join(sorted(reasons)),
            arch,
            ", ".join([a for a in ARCHS if [n for n in of if a not in left_out.get(n, {})]]) or
            "none",
        )
    known = {_direction_of(label): True for label in instances.values()}
    return message + ". Its directions: %s." % ", ".join(sorted(known))

def _for_chosen_archs(targets):
    """The further host code of each target that the build has an arch of."""
    deps = []
    for target in targets:
        deps += select({
            Label("//kernels:%s.selected" % arch): [":launch." + target]
            for arch in ARCHS
            if arch.startswith(target)
        } | {"//conditions:default": []})
    return deps

# buildifier: disable=unnamed-macro
def variant_set_package(variant_set, instances, left_out, launch_sources, testonly = False):
    """The package of a variant set:

        ARCH                    its code objects for one arch
        ARCH.library            the same as a cc_library
        ARCH.DIRECTION          those of one direction
        ARCH.DIRECTION.library  the same as a cc_library
        code_objects            for the chosen archs
        every_arch              for all archs that the set has kernels for
        launch                  the host code that makes their kernel arguments, of chosen archs
        launch.TARGET           the part of it that archs need which are not of the first target
        launch.every_arch       all of it
        rows.json               their rows of the launch table

    Args:
      variant_set: its name, for messages.
      instances: instance -> its label.
      left_out: instance -> archs that there is none for, and why.
      launch_sources: upstream's name of archs, as gfx12 -> the host sources that they need beyond
        those of the first name.
      testonly: of the targets.
    """
    served = []
    for arch in ARCHS:
        objects = {direction: [] for direction in DIRECTIONS}
        for instance, label in instances.items():
            if arch not in left_out.get(instance, {}):
                objects[_direction_of(label)].append("%s.%s" % (label, arch))
        groups = {"%s.%s" % (arch, direction): labels for direction, labels in objects.items()}
        groups[arch] = [":%s.%s" % (arch, d) for d, labels in objects.items() if labels]
        if groups[arch]:
            served.append(":" + arch)
        for name, labels in groups.items():
            common = {
                "tags": ["manual"],
                "testonly": testonly,
                "visibility": _PUBLIC,
            }
            if labels:
                code_object_group(
                    name = name,
                    # Those of a direction are inside.
                    check_proofs = name == arch,
                    deps = labels,
                    **common
                )
                cc_library(
                    name = name + ".library",
                    deps = [label + ".library" for label in labels],
                    **common
                )
                continue
            direction = name.partition(".")[2] or None
            for missing in (name, name + ".library"):
                no_instances(
                    name = missing,
                    message = _nothing_there(variant_set, instances, left_out, arch, direction),
                    **common
                )
    code_object_group(
        name = "code_objects",
        testonly = testonly,
        deps = chosen_archs([":%s"]),
        tags = ["manual"],
        visibility = _PUBLIC,
    )
    code_object_group(
        name = "every_arch",
        testonly = testonly,
        deps = served,
        tags = ["manual"],
        visibility = _PUBLIC,
    )
    first, others = launch_sources.keys()[0], launch_sources.keys()[1:]
    if others != _FURTHER_TARGETS:
        fail("ckgen/directions.py has the further targets %s, packages.bzl %s: write the same" %
             (others, _FURTHER_TARGETS))
    for target in others:
        ck_host_library(
            name = "launch." + target,
            testonly = testonly,
            srcs = launch_sources[target],
            tags = ["manual"],
            visibility = _PUBLIC,
        )
    ck_host_library(
        name = "launch",
        testonly = testonly,
        srcs = launch_sources[first],
        tags = ["manual"],
        visibility = _PUBLIC,
        deps = _for_chosen_archs(others),
    )
    cc_library(
        name = "launch.every_arch",
        testonly = testonly,
        tags = ["manual"],
        visibility = _PUBLIC,
        deps = [":launch"] + [":launch." + target for target in others],
    )
    native.exports_files(["rows.json"], visibility = _PUBLIC)

# buildifier: disable=unnamed-macro
def variant_set_aliases(repository):
    """The same targets by the set's name.

    Args:
      repository: of the variant set.
    """
    names = ["code_objects", "every_arch", "launch", "launch.every_arch", "rows.json"]
    names += ["launch." + target for target in _FURTHER_TARGETS]
    for arch in ARCHS:
        for name in [arch] + ["%s.%s" % (arch, direction) for direction in DIRECTIONS]:
            names += [name, name + ".library"]
    for name in names:
        native.alias(
            name = name,
            actual = "%s:%s" % (repository, name),
            tags = ["manual"],
            visibility = _PUBLIC,
        )
