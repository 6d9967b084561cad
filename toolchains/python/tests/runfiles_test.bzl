# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Runfiles of a test: each file is a link in its tree and one more in its sandbox."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

# Python's library and numpy have a thousand files each; pyelftools, whose files are single inputs
# of actions, has a hundred.
_MOST = 150

def _runfiles_test_impl(ctx):
    env = analysistest.begin(ctx)
    counts = {}
    for file in analysistest.target_under_test(env)[DefaultInfo].default_runfiles.files.to_list():
        repository = file.owner.workspace_name
        counts[repository] = counts.get(repository, 0) + 1
    for part in ["python_3_", "pypi_numpy", "pypi_pytest"]:
        found = [repository for repository in counts if part in repository]
        asserts.equals(env, 1, len(found), "repositories named *%s*: %s" % (part, found))
    for repository, count in counts.items():
        said = "%s gives the runfiles %d entries, more than %d: let a folder be one of them"
        asserts.true(env, count <= _MOST, said % (repository, count, _MOST))
    return analysistest.end(env)

runfiles_test = analysistest.make(_runfiles_test_impl)
