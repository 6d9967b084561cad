# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sphinx's configuration: the Markdown files of the tree as pages, the API from docstrings."""

import os
import re

from sphinx.application import Sphinx

project = "aiter-attn"
author = "The aiter-attn Authors"
copyright = "2026 The aiter-attn Authors"
version = release = os.environ["SITE_VERSION"]

extensions = ["myst_parser", "autoapi.extension", "sphinx.ext.napoleon"]
exclude_patterns: list[str] = ["package"]

# The anchors that documents link to are those of the usual hosts.
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence", "attrs_inline"]

# The source alone is read: neither a GPU nor a built extension is needed.
autoapi_dirs = ["package/aiter_attn"]
autoapi_root = "api"
autoapi_options = ["members", "imported-members", "show-module-summary"]
autoapi_python_class_content = "class"
autoapi_add_toctree_entry = False
autoapi_keep_files = False

# Array, in place of its module's path before it.
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"aiter-attn {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None

# Docstrings are plain text, in which code is indented behind an empty line, and names of arguments
# go on in the next line.
_CODE = re.compile(r"^(\S.*\n\n)(?=    \S)", re.MULTILINE)
_NAMES = re.compile(r"^( *(?:\w+, )*\w+,)\n +((?:\w+, )*\w+: )", re.MULTILINE)


def _as_restructured_text(
    _app: object, _what: str, _name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Mends the lines of a docstring in place, ahead of napoleon."""
    text = "\n".join(lines).replace("|", r"\|")
    text = _CODE.sub(r"\1::\n\n", text)
    while _NAMES.search(text):
        text = _NAMES.sub(r"\1 \2", text)
    lines[:] = text.split("\n")


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _as_restructured_text, priority=100)
