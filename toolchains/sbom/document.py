# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""An SBOM: materials as a CycloneDX document, the same bytes for the same materials."""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Iterable

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from toolchains.sbom.contents import Contents
from toolchains.sbom.materials import Material

_PRODUCT = "aiter-attn"
# As a file of a wheel (PEP 770) and of a release.
NAME = f"{_PRODUCT}.cdx.json"
VERSION = SchemaVersion.V1_6

_EPOCH = datetime.datetime(1980, 1, 1, tzinfo=datetime.timezone.utc)


def purl(material: Material) -> PackageURL:
    """The package URL, by which other programs know a material."""
    namespace = "debian" if material.source == "debian" else None
    name = material.name
    if material.source == "npm" and "/" in name:
        namespace, name = name.split("/", 1)
    kind = {"debian": "deb", "machine": "generic"}.get(material.source, material.source)
    return PackageURL(kind, namespace, name, material.version)


def _component(material: Material, contents: Contents, is_in_wheel: bool) -> Component:
    scope = ComponentScope.REQUIRED if is_in_wheel else ComponentScope.EXCLUDED
    return Component(
        name=material.name,
        type=ComponentType.LIBRARY,
        # Several files of one version are told apart by their digests.
        bom_ref=f"{purl(material)}#{material.sha256[:16]}",
        version=material.version,
        scope=scope,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=material.sha256)],
        licenses=[LicenseFactory().make_from_string(contents.licence(material))],
        purl=purl(material),
    )


def write(
    version: str,
    materials: Iterable[Material],
    contents: Contents,
    time: datetime.datetime | None = None,
    product: str = _PRODUCT,
) -> str:
    """The SBOM of a distribution of this project's at `version`, as JSON.

    Parts of the wheel have the scope "required"; tools have "excluded". Of another product than the
    wheel of the library all materials are parts. `time` is that of what was built, not of the
    building; without it the document has none.
    """
    subject = Component(
        name=product,
        type=ComponentType.LIBRARY,
        bom_ref=product,
        version=version,
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
        purl=PackageURL("pypi", None, product, version),
    )
    components = [
        _component(material, contents, product != _PRODUCT or contents.is_in_wheel(material))
        for material in sorted(set(materials))
    ]
    bom = Bom(
        components=components,
        metadata=BomMetaData(component=subject, timestamp=time or _EPOCH),
        serial_number=uuid.UUID(int=0),
    )
    inside = [c for c in components if c.scope == ComponentScope.REQUIRED]
    bom.register_dependency(subject, inside)
    text = make_outputter(bom, OutputFormat.JSON, VERSION).output_as_string()
    document = json.loads(text)
    if time is None:
        del document["metadata"]["timestamp"]
    # A number of its own for each content, by which other documents can name this one.
    del document["serialNumber"]
    body = json.dumps(document, sort_keys=True)
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, body).urn
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
