# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A remote executor that executes nothing, for tests: unusable_executor.py HOST:PORT REASON

REASON is `api`: it is of version 3 of the remote execution API; or it has all files, and no worker
of any pool: `pool`, it says so; `queue`, it keeps actions waiting.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent import futures

import grpc
from buildgrid._protos.build.bazel.remote.execution.v2 import (
    remote_execution_pb2,
    remote_execution_pb2_grpc,
)
from buildgrid._protos.build.bazel.semver import semver_pb2
from buildgrid._protos.google.longrunning import operations_pb2


class Capabilities(remote_execution_pb2_grpc.CapabilitiesServicer):
    def __init__(self, version: int) -> None:
        self._version = semver_pb2.SemVer(major=version)

    def GetCapabilities(
        self,
        request: remote_execution_pb2.GetCapabilitiesRequest,
        context: grpc.ServicerContext,
    ) -> remote_execution_pb2.ServerCapabilities:
        sha256 = remote_execution_pb2.DigestFunction.SHA256
        return remote_execution_pb2.ServerCapabilities(
            cache_capabilities={"digest_functions": [sha256]},
            execution_capabilities={"digest_function": sha256, "exec_enabled": True},
            low_api_version=self._version,
            high_api_version=self._version,
        )


class Files(remote_execution_pb2_grpc.ContentAddressableStorageServicer):
    def FindMissingBlobs(
        self, request: remote_execution_pb2.FindMissingBlobsRequest, context: grpc.ServicerContext
    ) -> remote_execution_pb2.FindMissingBlobsResponse:
        return remote_execution_pb2.FindMissingBlobsResponse()


class Results(remote_execution_pb2_grpc.ActionCacheServicer):
    def GetActionResult(
        self, request: remote_execution_pb2.GetActionResultRequest, context: grpc.ServicerContext
    ) -> remote_execution_pb2.ActionResult:
        context.abort(grpc.StatusCode.NOT_FOUND, "no result")


class Execution(remote_execution_pb2_grpc.ExecutionServicer):
    def __init__(self, waits: bool) -> None:
        self._waits = waits

    def Execute(
        self, request: remote_execution_pb2.ExecuteRequest, context: grpc.ServicerContext
    ) -> Iterator[operations_pb2.Operation]:
        if not self._waits:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no worker is in the pool")
        queued = remote_execution_pb2.ExecuteOperationMetadata(
            stage=remote_execution_pb2.ExecutionStage.QUEUED
        )
        operation = operations_pb2.Operation(name="waiting")
        operation.metadata.Pack(queued)
        yield operation
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait()


def main(address: str, reason: str) -> None:
    server = grpc.server(futures.ThreadPoolExecutor(16))
    pb2_grpc = remote_execution_pb2_grpc
    version = 3 if reason == "api" else 2
    pb2_grpc.add_CapabilitiesServicer_to_server(Capabilities(version), server)
    pb2_grpc.add_ContentAddressableStorageServicer_to_server(Files(), server)
    pb2_grpc.add_ActionCacheServicer_to_server(Results(), server)
    pb2_grpc.add_ExecutionServicer_to_server(Execution(reason == "queue"), server)
    server.add_insecure_port(address)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
