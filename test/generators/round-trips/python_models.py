"""A round trip with Python's own HTTP client and quicktype's dataclasses for the schemas."""

import json
import sys
from typing import Any, List, Optional
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from models import (
    CollectionCreate,
    CollectionDeleted,
    ErrorCode,
    Match,
    Metric,
    Problem,
    Query,
    QueryReply,
    VectorBatchWrite,
    VectorClass,
    VectorFetch,
    VectorList,
    VectorsFetched,
    VectorsWritten,
)

SERVICE = sys.argv[1]
PATH = "/collections/python-models"
FILTER = {"$or": [{"year": {"$gte": 2022}}, {"year": 2020}]}
FOUND = ["article-2020", "article-2022", "article-2023"]


def call(method: str, path: str, body: Any = None) -> Any:
    request = Request(SERVICE + path, method=method)
    if body is not None:
        request.data = json.dumps(body.to_dict()).encode()
        request.add_header("content-type", "application/json")
    with urlopen(request) as reply:
        return json.load(reply)


def expect(found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"expected {expected!r}, found {found!r}")


call("POST", "/collections", CollectionCreate(id="python-models", dimension=3, metric=Metric.DOT))

vectors = [
    VectorClass(id=f"article-{2020 + i}", values=[4.0 - i, float(i), 0.5], metadata={"year": 2020 + i})
    for i in range(4)
]
written = VectorsWritten.from_dict(call("POST", f"{PATH}/vectors", VectorBatchWrite(vectors=vectors)))
expect(written.inserted_count, 4)

matches: List[Match] = []
query: Optional[Query] = Query(vector=[1.0, 0.0, 0.0], filter=FILTER, limit=2, include_metadata=True)
while query is not None:
    page = QueryReply.from_dict(call("POST", f"{PATH}/query", query))
    matches += page.matches
    query = None if page.next_cursor is None else Query(cursor=page.next_cursor)
expect([match.id for match in matches], FOUND)
expect(matches[0].metadata, {"year": 2020})

fetched = VectorsFetched.from_dict(
    call("POST", f"{PATH}/vectors/fetch", VectorFetch(ids=["article-2021", "none"]))
)
expect(fetched.vectors[0].values, [3.0, 1.0, 0.5])
expect(fetched.not_found, ["none"])

listed = VectorList.from_dict(call("GET", f"{PATH}/vectors?filter={quote(json.dumps(FILTER))}"))
expect([vector.id for vector in listed.vectors], FOUND)

try:
    call("GET", "/collections/none")
    raise SystemExit("expected an error, found a collection")
except HTTPError as error:
    expect(Problem.from_dict(json.load(error)).code, ErrorCode.COLLECTION_NOT_FOUND)

expect(CollectionDeleted.from_dict(call("DELETE", PATH)).vector_count, 4)
