"""Sagitta from Python with requests and pyarrow: a page to copy from, not a package.

Vectors and answers travel as Arrow, so that numbers are never text. Every function raises
SagittaError with what the service says.
"""

import io
import json
import uuid

import pyarrow as pa
import pyarrow.compute as compute
import requests

ARROW = "application/vnd.apache.arrow.stream"


class SagittaError(Exception):
    """`problem` is the service's own account: code, detail, errors, committed_count."""

    def __init__(self, problem):
        super().__init__(f"{problem.get('code')}: {problem.get('detail')}")
        self.problem = problem


class Collection:
    """One collection of a service, such as `Collection("http://127.0.0.1:8484", "articles")`."""

    def __init__(self, url, name, api_key=None):
        self.name = name
        self.service = f"{url}/v1"
        self.root = f"{self.service}/collections/{name}"
        self.session = requests.Session()
        if api_key is not None:
            self.session.headers["Authorization"] = f"Bearer {api_key}"

    def create(self, dimension, metric="cosine"):
        """Makes the collection, or finds it as it is."""
        return self._call(
            "POST",
            f"{self.service}/collections?if_not_exists=true",
            json={"id": self.name, "dimension": dimension, "metric": metric},
        ).json()

    def write(self, batches, key=None):
        """Writes record batches one after another, in constant memory here and there.

        `batches` yields pyarrow.RecordBatch of one schema: `id`, `values` (or `vector`,
        `embedding`), and any further columns as metadata. With a `key` the same batches may be
        sent again after a break, and what is durable is skipped; SagittaError says in
        `problem["committed_count"]` how many rows are.
        """
        headers = {"Content-Type": ARROW, "Idempotency-Key": key or str(uuid.uuid4())}
        body = arrow_stream(batches)
        return self._call("POST", f"{self.root}/vectors", data=body, headers=headers).json()

    def query(self, vectors, top_k=10, filter=None, metadata=False, queries_at_once=1000):
        """The nearest of every vector, as a table: query_index, rank, id, score (and metadata).

        `vectors` is a pyarrow array of lists of numbers. They go out in parts, since requests
        reads no reply before its body is sent.
        """
        tables = []
        for start in range(0, len(vectors), queries_at_once):
            part = vectors.slice(start, queries_at_once)
            batch = pa.record_batch({"vector": part})
            reply = self._call(
                "POST",
                f"{self.root}/query/batch",
                params={
                    "top_k": top_k,
                    "include_metadata": json.dumps(metadata),
                    **({} if filter is None else {"filter": json.dumps(filter)}),
                },
                data=arrow_stream([batch]),
                headers={"Content-Type": ARROW, "Accept": ARROW},
                stream=True,
            )
            table = read_arrow(reply).read_all()
            index = compute.add(table["query_index"], start)
            tables.append(table.set_column(0, "query_index", index))
        return pa.concat_tables(tables)

    def export(self, filter=None):
        """Every row of one snapshot as a reader of record batches: id, values, metadata."""
        params = {"format": "arrow"}
        if filter is not None:
            params["filter"] = json.dumps(filter)
        return read_arrow(self._call("GET", f"{self.root}/export", params=params, stream=True))

    def join(self, **request):
        """The neighbours of every row as a reader of record batches: id, rank, match_id, score.

        `top_k`, `score_threshold`, `filter`, `with_filter`, `with` (another collection), as in the
        API.
        """
        headers = {"Accept": ARROW}
        url = f"{self.root}/join"
        return read_arrow(self._call("POST", url, json=request, headers=headers, stream=True))

    def pages(self, **request):
        """The answer to a query, page by page to its end, all of one snapshot."""
        page = self._call("POST", f"{self.root}/query", json=request).json()
        yield page["matches"]
        while "next_cursor" in page:
            request = {"cursor": page["next_cursor"]}
            page = self._call("POST", f"{self.root}/query", json=request).json()
            yield page["matches"]

    def count(self, filter=None):
        body = {} if filter is None else {"filter": filter}
        return self._call("POST", f"{self.root}/count", json=body).json()["count"]

    def delete(self, ids):
        """How many of them were there."""
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        url = f"{self.root}/vectors/delete"
        return self._call("POST", url, json={"ids": ids}, headers=headers).json()["deleted_count"]

    def _call(self, method, url, **rest):
        reply = self.session.request(method, url, timeout=(10, 300), **rest)
        if reply.ok:
            return reply
        try:
            problem = reply.json()
        except ValueError:
            problem = {"code": f"status {reply.status_code}", "detail": reply.text[:200]}
        raise SagittaError(problem)


def arrow_stream(batches):
    """The bytes of an Arrow stream, a batch at a time: a body that requests sends as it comes."""
    pieces = _Pieces()
    writer = None
    for batch in batches:
        if writer is None:
            writer = pa.ipc.new_stream(pa.PythonFile(pieces, mode="w"), batch.schema)
        writer.write_batch(batch)
        yield pieces.take()
    if writer is None:
        raise ValueError("expected at least one record batch")
    writer.close()
    yield pieces.take()


def read_arrow(reply):
    """A reader over a reply that is still coming; one that is cut short raises."""
    return pa.ipc.open_stream(reply.raw)


class _Pieces(io.RawIOBase):
    """Where pyarrow writes to, until it is sent."""

    def __init__(self):
        super().__init__()
        self._pieces = []

    def writable(self):
        return True

    def write(self, data):
        self._pieces.append(bytes(data))
        return len(data)

    def take(self):
        whole = b"".join(self._pieces)
        self._pieces.clear()
        return whole
