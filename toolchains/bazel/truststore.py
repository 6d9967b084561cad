# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A Java trust store with the machine's certificate authorities.

With it Bazel trusts the servers of remote caches that other programs on this machine trust. The
Java runtime's own keytool is no way to it: it takes one certificate a run, and a run takes half a
second, for more than a hundred certificates.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import struct

from toolchains.locks.whole import whole

CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
PASSWORD = "changeit"
# Its path in a bundle.
FILE = "cacerts.jks"

_MAGIC, _VERSION, _TRUSTED_CERTIFICATE = 0xFEEDFEED, 2, 2
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.S)


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def from_pem(pem: str) -> bytes:
    """Returns a JKS key store that holds every certificate of a PEM bundle as trusted.

    The trailing digest is the format's own integrity check (SHA-1 over the password, a fixed
    phrase and the contents), not a protection.
    """
    certificates = [base64.b64decode(body) for body in _PEM.findall(pem)]
    body = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", _TRUSTED_CERTIFICATE) + _utf(f"ca{number}")
        body += struct.pack(">Q", 0) + _utf("X.509")
        body += struct.pack(">I", len(certificate)) + certificate
    secret = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(secret + body).digest()


def refresh(root: str) -> bool:
    """Writes the bundle's trust store if the machine's certificates are newer than it.

    Returns whether there is one. Atomic: a server that starts meanwhile sees the old or the new.
    """
    store = f"{root}/{FILE}"
    try:
        stamp = os.stat(CA_BUNDLE).st_mtime_ns
    except FileNotFoundError:
        return os.path.exists(store)
    if not os.path.exists(store) or os.stat(store).st_mtime_ns != stamp:
        with whole(pathlib.Path(store)) as scratch:
            scratch.write_bytes(from_pem(pathlib.Path(CA_BUNDLE).read_text(encoding="utf-8")))
            os.utime(scratch, ns=(stamp, stamp))
    return True
