# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Repositories of pages: a library that draws plots, and a browser to look at them in tests."""

load("//toolchains/npm:npm.bzl", "npm_files")

def chart_js_repositories():
    """Declares @chart_js."""
    npm_files(
        name = "chart_js",
        files = {"dist/chart.umd.min.js": "chart.js"},
        package = "chart.js",
    )

def chromium_repositories():
    """Declares @chromium: a program, its libraries and a font, each compressed by brotli."""
    npm_files(
        name = "chromium",
        files = {
            "bin/%s.br" % part: part + ".br"
            for part in ["al2023.tar", "chromium", "fonts.tar", "swiftshader.tar"]
        },
        package = "@sparticuz/chromium",
    )
