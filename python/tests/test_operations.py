"""Every operation of openapi.json has a method that sends the right request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from inspect import signature, unwrap
from typing import Any

import httpx
import pytest
from servers import REPOSITORY

from sagitta import AsyncSagitta, Sagitta, SagittaError
from sagitta.collection import CollectionFlows, ListOptions, SharedFlows
from sagitta.flow import _Descriptor
from sagitta.service import AuditListOptions
from sagitta.streams import ColumnExportOptions, ColumnOptions, QueryOptions

VECTOR = {"id": "v", "values": [1.0]}
CALLS: dict[str, Callable[[Sagitta], Any]] = {
    "createCollection": lambda c: c.collections.create(id="a", dimension=1),
    "listCollections": lambda c: c.collections.list(),
    "getCollection": lambda c: c.collections.get("a"),
    "updateCollection": lambda c: c.collections.update("a", description="d"),
    "deleteCollection": lambda c: c.collections.delete("a"),
    "listSegments": lambda c: c.collections.segments("a"),
    "cloneCollection": lambda c: c.collections.clone("a", id="b"),
    "renameCollection": lambda c: c.collections.rename("a", "b"),
    "moveCollection": lambda c: c.collections.move("a", from_node="n1", to_node="n2"),
    "writeVectors": lambda c: c.collection("a").upsert([VECTOR]),
    "listVectorsByBody": lambda c: c.collection("a").list(),
    "putVector": lambda c: c.default_collection.put(VECTOR),
    "putVectorInCollection": lambda c: c.collection("a").put(VECTOR),
    "patchVector": lambda c: c.collection("a").patch("v", metadata={}),
    "deleteVector": lambda c: c.collection("a").delete("v", if_sequence=1),
    "getVector": lambda c: c.collection("a").get("v"),
    "deleteVectors": lambda c: c.collection("a").delete_many(ids=["v"]),
    "updateVectors": lambda c: c.collection("a").update_many(all=True, patch={}),
    "listVectorsByBodyAnywhere": lambda c: c.default_collection.list(),
    "fetchVectors": lambda c: c.collection("a").fetch(["v"]),
    "countVectors": lambda c: c.collection("a").count(),
    "queryCollection": lambda c: c.collection("a").query(id="v"),
    "query": lambda c: c.default_collection.query(id="v"),
    "queryCollectionBatch": lambda c: c.collection("a").query_batch([]),
    "measureRecall": lambda c: c.collection("a").recall([[1.0]], [["v"]]),
    "aggregateCollection": lambda c: c.collection("a").aggregate(),
    "getCollectionSchema": lambda c: c.collection("a").schema(),
    "exportVectors": lambda c: list(c.collection("a").export_all()),
    "joinCollections": lambda c: list(c.collection("a").join(top_k=1)),
    "projectVectors": lambda c: list(c.collection("a").projection_stream(format="ndjson")),
    "listAliases": lambda c: c.aliases.list(),
    "changeAliases": lambda c: c.aliases.change({"x": None}),
    "getAlias": lambda c: c.aliases.get("x"),
    "putAlias": lambda c: c.aliases.set("x", "a"),
    "deleteAlias": lambda c: c.aliases.delete("x"),
    "createKey": lambda c: c.keys.create(owner="o", scopes=["admin"]),
    "listKeys": lambda c: c.keys.list(),
    "getKey": lambda c: c.keys.get("k"),
    "revokeKey": lambda c: c.keys.revoke("k"),
    "rotateKey": lambda c: c.keys.rotate("k"),
    "getPrincipal": lambda c: c.principal(),
    "listAuditEvents": lambda c: c.audit.list(),
    "createBackup": lambda c: c.backups.create(),
    "listBackups": lambda c: c.backups.list(),
    "getService": lambda c: c.service.info(),
    "getLimits": lambda c: c.limits(),
    "getLiveness": lambda c: c.service.live(),
    "getReadiness": lambda c: c.service.ready(),
    "getCollectionDigest": lambda c: c.collections.digest("a"),
    "verifyClusterFiles": lambda c: c.service.verify_files(),
    "getCluster": lambda c: c.service.cluster(),
    "getTraffic": lambda c: c.service.traffic(minutes=5),
    "drainNode": lambda c: c.service.drain("n1"),
    "undrainNode": lambda c: c.service.undrain("n1"),
    "getMetrics": lambda c: c.service.metrics(),
    "getOpenApi": lambda c: c.service.openapi(),
}
# The client lists vectors by POST, because a filter in a body may have any length.
NOT_SENT = {"listVectorsInCollection", "listVectors"}
DOCUMENT = json.loads((REPOSITORY / "openapi.json").read_text())
OPERATIONS = {
    operation["operationId"]: (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if "operationId" in operation
}
AT_ROOT = {"/", "/livez", "/readyz", "/metrics", "/openapi.json"}


def test_every_operation_has_a_method() -> None:
    assert CALLS.keys() | NOT_SENT == OPERATIONS.keys()


@pytest.mark.parametrize("operation", CALLS)
def test_a_method_sends_its_operation(operation: str) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        lists: dict[str, Any] = {"vectors": [], "matches": [], "results": [], "count": 0}
        is_json = request.headers["accept"] == "application/json"
        return httpx.Response(200, json=lists) if is_json else httpx.Response(200, content=b"")

    transport = httpx.MockTransport(answer)
    with httpx.Client(transport=transport) as http_client:
        CALLS[operation](Sagitta("http://server", http_client=http_client))
    method, path = OPERATIONS[operation]
    prefix = "" if path in AT_ROOT else "/v1"
    pattern = prefix + re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
    assert [one.method for one in sent] == [method]
    assert re.fullmatch(pattern, sent[0].url.path), sent[0].url


@pytest.mark.parametrize(
    ("operation", "names"),
    [
        ("writeVectors", {*ColumnOptions.__annotations__}),
        ("queryCollectionBatch", {*QueryOptions.__annotations__}),
        ("exportVectors", {*ColumnExportOptions.__annotations__, "format"}),
        ("listVectorsInCollection", {*ListOptions.__annotations__}),
        ("listAuditEvents", {*AuditListOptions.__annotations__}),
        ("getCollectionSchema", {*signature(unwrap(CollectionFlows.schema)).parameters}),
        ("getVector", {*signature(unwrap(CollectionFlows.get)).parameters} - {"id"}),
    ],
)
def test_a_method_takes_all_parameters(operation: str, names: set[str]) -> None:
    method, path = OPERATIONS[operation]
    described = DOCUMENT["paths"][path][method.lower()]["parameters"]
    expected = {one["name"] for one in described if one["in"] == "query"}
    assert names - {"self", "idempotency_key"} == expected


def test_both_clients_have_the_same_methods() -> None:
    async_client = AsyncSagitta("http://server")
    with Sagitta("http://server") as client:
        for group in ("collections", "aliases", "keys", "backups", "audit", "service"):
            assert _methods(getattr(client, group)) == _methods(getattr(async_client, group))
        assert _methods(client.collection("a")) == _methods(async_client.collection("a"))


def test_methods_keep_their_documentation_and_signature() -> None:
    with Sagitta("http://server") as client:
        method = client.collection("a").fetch
    assert "order of the ids" in method.__doc__
    assert next(iter(signature(method).parameters)) == "ids"
    undocumented = [
        f"{flows.__name__}.{name}"
        for flows in (CollectionFlows, SharedFlows)
        for name, member in vars(flows).items()
        if isinstance(member, _Descriptor) and not member.__doc__
    ]
    assert undocumented == []


@pytest.mark.parametrize("id", ["", ".", ".."])
def test_an_id_that_urls_would_resolve_is_rejected(id: str) -> None:
    with Sagitta("http://server") as client, pytest.raises(SagittaError, match="part of a URL"):
        client.collections.get(id)


def _methods(group: object) -> set[str]:
    return {name for name in dir(group) if not name.startswith("_")}
