# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests of the pure Starlark functions."""

load("@bazel_skylib//lib:unittest.bzl", "asserts", "unittest")
load("//toolchains/debian/private:mirrors.bzl", "parse_indextargets")
load("//toolchains/debian/private:sha256.bzl", "sha256_hex")

def _sha256_impl(ctx):
    env = unittest.begin(ctx)
    for text, expected in {
        "": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "abc": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        # One block exactly, one byte less than needs a second one, and several.
        "a" * 55: "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318",
        "a" * 56: "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a",
        "a" * 1000: "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3",
    }.items():
        asserts.equals(env, expected, sha256_hex(text))
    return unittest.end(env)

sha256_test = unittest.make(_sha256_impl)

def _indextargets_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(
        env,
        ["http://one.example/debian", "http://two.example/debian"],
        parse_indextargets("""\
http://one.example/debian/ bookworm main
http://one.example/debian/ bookworm contrib
http://one.example/debian/ bookworm-updates main
http://security.example/debian-security/ bookworm-security main
https://vendor.example/apt/ cloud-sdk-bookworm main
http://two.example/debian forky main
garbage
"""),
    )
    asserts.equals(env, [], parse_indextargets(""))
    return unittest.end(env)

indextargets_test = unittest.make(_indextargets_impl)

def starlark_test_suite(name):
    unittest.suite(name, sha256_test, indextargets_test)
