# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests of the pure Starlark functions."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//toolchains/pypi/private:index.bzl", "find_file", "resolve_url")

_PAGE_URL = "https://index.example/simple/some-name/"

def _resolve_impl(ctx):
    env = unittest.begin(ctx)
    for reference, expected in {
        "../../p/x.whl": "https://index.example/p/x.whl",
        "../../../../x.whl": "https://index.example/x.whl",
        "./x.whl": "https://index.example/simple/some-name/x.whl",
        "/p/x.whl#md5=0": "https://index.example/p/x.whl",
        "//files.example/x.whl": "https://files.example/x.whl",
        "https://files.example/x.whl#sha256=0": "https://files.example/x.whl",
        "x.whl?redirect=https://a.example/": (
            "https://index.example/simple/some-name/x.whl?redirect=https://a.example/"
        ),
    }.items():
        asserts.equals(env, expected, resolve_url(_PAGE_URL, reference))
    asserts.equals(
        env,
        "file:///srv/f/x.whl",
        resolve_url("file:///srv/simple/a/index.html", "../../f/x.whl"),
    )
    return unittest.end(env)

resolve_test = unittest.make(_resolve_impl)

def _find_impl(ctx):
    env = unittest.begin(ctx)
    page = """<a href="https://files.example/a-1.tar.gz#sha256=00" data-x="&gt;=3">a</a>
<a data-y='1' href='../../a-1%2Bcpu.whl?x=1&amp;y=2'>a</a><a name="none">b</a>"""
    for filename, expected in {
        "a-1+cpu.whl": "https://index.example/a-1%2Bcpu.whl?x=1&y=2",
        "a-1.tar.gz": "https://files.example/a-1.tar.gz",
        "a-2.tar.gz": None,
        "1.tar.gz": None,
    }.items():
        asserts.equals(env, expected, find_file(page, _PAGE_URL, filename))
    page = """{"files": [{"filename": "a-1.tar.gz", "url": "../../f/a-1.tar.gz"}]}"""
    asserts.equals(
        env,
        "https://index.example/f/a-1.tar.gz",
        find_file(page, _PAGE_URL, "a-1.tar.gz"),
    )
    asserts.equals(env, None, find_file(page, _PAGE_URL, "a-2.tar.gz"))
    asserts.equals(env, None, find_file("", _PAGE_URL, "a-2.tar.gz"))
    return unittest.end(env)

find_test = unittest.make(_find_impl)

def starlark_test_suite(name):
    unittest.suite(name, resolve_test, find_test)
