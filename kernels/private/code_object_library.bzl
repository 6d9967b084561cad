# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""code_object_library: a code object as a cc_library."""

load("@rules_cc//cc:defs.bzl", "cc_library")

def code_object_library(name, code_object, instance, arch, **kwargs):
    """A cc_library that puts one code object into every program that depends on it.

    kernels/code_object/linked_code_objects.h, which comes with it, finds it there. The
    code object is as it is compiled, not compressed. There is no symbol: any of these libraries
    can be linked together.

    Args:
      name: of the target.
      code_object: label of the code_object.
      instance: the instance's name.
      arch: one of kernels/archs.
      **kwargs: of cc_library: tags, visibility, ...
    """
    cc_library(
        name = name,
        srcs = [Label("//kernels/code_object:linked.S")],
        additional_compiler_inputs = [code_object],
        copts = [
            "-DARCH='\"%s\"'" % arch,
            "-DCODE_OBJECT='\"$(execpath %s)\"'" % code_object,
            "-DINSTANCE='\"%s\"'" % instance,
        ],
        # An archive of one object needs no file for its arguments, which were an action more.
        features = ["-archive_param_file"],
        linkstatic = True,
        deps = [Label("//kernels/code_object:linked_code_objects")],
        alwayslink = True,
        **kwargs
    )
