# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""mha_libraries: AITER's and QoLA's libraries of one pin, under a namespace."""

load("@rules_cc//cc:defs.bzl", "cc_import", "cc_library")
load("//aiter:namespace.bzl", "headers_in_namespace", "in_namespace", "is_c_identifier")
load(":pins.bzl", "PINS")

_PASSES = ["fwd", "bwd"]

def libraries_problem(name, pin, namespace):
    """The reason why mha_libraries refuses its arguments.

    Args:
      name: of the target.
      pin: see mha_libraries.
      namespace: see mha_libraries.
    Returns:
      A message; "" where they are right.
    """
    if pin not in PINS:
        return ("mha_libraries(name = \"%s\"): pin is \"%s\", but must be one of %s" %
                (name, pin, ", ".join(PINS)))
    if not is_c_identifier(namespace):
        return (("mha_libraries(name = \"%s\"): namespace is \"%s\", which is not a C " +
                 "identifier; use letters, digits and underscores, e.g. te") % (name, namespace))
    return ""

def mha_libraries(name, pin, namespace, **kwargs):
    """QoLA's libraries: NAMESPACE_libmha_fwd.so and NAMESPACE_libmha_bwd.so.

    NAME.files are the two files, in a folder of the target's name. NAME is a cc_library: the
    headers of the pin, and the two files to link with.

    Args:
      name: of the target.
      pin: AITER's commit, one of pins.bzl.
      namespace: a C identifier, as of --//aiter:namespace, which it stands in for.
      **kwargs: of each target.
    """
    problem = libraries_problem(name, pin, namespace)
    if problem:
        fail(problem)
    for this in _PASSES:
        in_namespace(
            name = "%s.%s.file" % (name, this),
            file = Label("//aiter/compat:%s/qola_libmha_%s.so" % (pin, this)),
            namespace = namespace,
            out = "%s/%s_libmha_%s.so" % (name, namespace, this),
            **kwargs
        )
        cc_import(
            name = "%s.%s" % (name, this),
            shared_library = ":%s.%s.file" % (name, this),
            **kwargs
        )
    native.filegroup(
        name = name + ".files",
        srcs = [":%s.%s.file" % (name, this) for this in _PASSES],
        **kwargs
    )
    headers_in_namespace(
        name = name + ".headers",
        namespace = namespace,
        deps = [Label("//aiter/compat:qola_h_" + pin)],
        **kwargs
    )
    cc_library(
        name = name,
        deps = [":%s.headers" % name] + [":%s.%s" % (name, this) for this in _PASSES],
        **kwargs
    )
