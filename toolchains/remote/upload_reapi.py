# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sends files and results of actions to a server of the remote execution API.

    upload_reapi.py HOST:PORT < LINES

A line is `cas HASH SIZE FILE`, or `ac HASH SIZE FILE` with an action's hash and size and the file
of its serialised ActionResult.
fill.py runs it, on the Python that has gRPC.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import (
    remote_execution_pb2,
    remote_execution_pb2_grpc,
)
from buildgrid._protos.google.bytestream import bytestream_pb2, bytestream_pb2_grpc

_CHUNK = 1 << 20


def _requests(digest: str, data: bytes) -> Iterator[bytestream_pb2.WriteRequest]:
    name = f"uploads/{uuid.uuid4()}/blobs/{digest}/{len(data)}"
    for start in range(0, max(len(data), 1), _CHUNK):
        yield bytestream_pb2.WriteRequest(
            resource_name=name,
            write_offset=start,
            data=data[start : start + _CHUNK],
            finish_write=start + _CHUNK >= len(data),
        )


def main(address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        files = bytestream_pb2_grpc.ByteStreamStub(channel)
        results = remote_execution_pb2_grpc.ActionCacheStub(channel)
        for line in sys.stdin:
            kind, digest, size, path = line.rstrip("\n").split(" ", 3)
            data = Path(path).read_bytes()
            if kind == "cas":
                files.Write(_requests(digest, data))
                continue
            results.UpdateActionResult(
                remote_execution_pb2.UpdateActionResultRequest(
                    action_digest=remote_execution_pb2.Digest(hash=digest, size_bytes=int(size)),
                    action_result=remote_execution_pb2.ActionResult.FromString(data),
                )
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
