# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Finds a file on the page of a simple package index (HTML, or its JSON form)."""

def _unescape(text):
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'")):
        text = text.replace(entity, character)
    return text.replace("&amp;", "&")

def _hrefs(page):
    hrefs = []
    for part in page.split("href=")[1:]:
        quote = part[:1]
        if quote in ("\"", "'"):
            hrefs.append(_unescape(part[1:].split(quote)[0]))
    return hrefs

def resolve_url(base, reference):
    """Resolves a reference against the URL of the page it stands on.

    Args:
      base: absolute URL of the page.
      reference: absolute or relative URL.

    Returns:
      An absolute URL without a fragment.
    """
    reference = reference.split("#")[0]
    if "://" in reference.split("?")[0]:
        return reference
    scheme, rest = base.split("://", 1)
    if reference.startswith("//"):
        return scheme + ":" + reference
    host, _, path = rest.partition("/")
    if reference.startswith("/"):
        segments = reference[1:].split("/")
    else:
        segments = path.split("?")[0].split("/")[:-1] + reference.split("/")
    done = []
    for segment in segments:
        if segment == "..":
            done = done[:-1]
        elif segment != ".":
            done.append(segment)
    return "%s://%s/%s" % (scheme, host, "/".join(done))

def find_file(page, page_url, filename):
    """Finds a file by name.

    Args:
      page: text of the index page.
      page_url: where it is from.
      filename: the file's exact name.

    Returns:
      The file's absolute URL, or None.
    """
    if page.lstrip().startswith("{"):
        for entry in json.decode(page).get("files", []):
            if entry.get("filename") == filename:
                return resolve_url(page_url, entry["url"])
        return None
    for href in _hrefs(page):
        url = resolve_url(page_url, href)
        name = url.split("?")[0].rpartition("/")[2]
        if name.replace("%2B", "+").replace("%2b", "+").replace("%21", "!") == filename:
            return url
    return None
