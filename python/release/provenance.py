# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The provenance statement: in-toto Statement v1 with SLSA Provenance v1, unsigned.

It has no time and no id of the run: the same commit, settings and builder give the same bytes.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from python.release.artefacts import File
from python.release.checkout import Commit
from python.release.errors import ReleaseError
from toolchains.sbom.document import purl
from toolchains.sbom.materials import Material

NAME = "provenance.intoto.json"
# docs/releasing.md says what the parameters of this type mean.
BUILD_TYPE = "urn:aiter-attn:release:1"
LOCAL_BUILDER = "urn:aiter-attn:builder:local"


def check_uri(flag: str, uri: str) -> None:
    """Raises ReleaseError unless uri may stand in a public document."""
    parts = urllib.parse.urlsplit(uri)
    if not parts.scheme:
        raise ReleaseError(f"--{flag}={uri}: want a URI, like https://ci.example/attn")
    if "@" in parts.netloc:
        raise ReleaseError(
            f"--{flag}: the URI of {parts.hostname} holds credentials, and would be published; "
            "leave them out"
        )


def _subject(file: File) -> str:
    # The slim wheel and the other have one name.
    return f"slim/{file.name}" if file.kind == "slim_wheel" else file.name


def write(
    files: Iterable[File],
    commit: Commit,
    settings: Mapping[str, Any],
    materials: Iterable[Material],
    builder: str,
    source: str | None,
) -> str:
    """The statement over `files`, as JSON.

    builder  URI of who builds, which whoever trusts the statement has to know
    source   URI of the repository, or None where that is not public
    """
    repository = {"name": "source", "digest": {"gitCommit": commit.sha}}
    if source:
        repository["uri"] = source
    parameters: dict[str, Any] = {"settings": dict(settings), "source": repository}
    if commit.modified:
        parameters["modified"] = list(commit.modified)
    dependencies = [
        {"name": m.name, "uri": str(purl(m)), "digest": {"sha256": m.sha256}}
        for m in sorted(set(materials))
    ]
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": _subject(f), "digest": {"sha256": f.sha256}}
            for f in sorted(files, key=_subject)
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": parameters,
                "resolvedDependencies": [repository, *dependencies],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }
    return json.dumps(statement, indent=1, sort_keys=True) + "\n"
