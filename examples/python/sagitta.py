"""Sagitta from Python with requests and pyarrow: code to copy, not a package.

Vectors and results are transferred as Arrow, so numbers are never converted to text. Every function
raises SagittaError for an error reply of the server.
"""

import io
import json
import uuid

import pyarrow as pa
import pyarrow.compute as compute
import requests

ARROW = "application/vnd.apache.arrow.stream"


class SagittaError(Exception):
    """`problem` is the server's problem document: code, detail, errors, committed_count."""

    def __init__(self, problem):
        super().__init__(f"{problem.get('code')}: {problem.get('detail')}")
        self.problem = problem


class Collection:
    """One collection of a server, such as `Collection("http://127.0.0.1:8484", "articles")`."""

    def __init__(self, url, name, api_key=None):
        self.name = name
        self.service = f"{url}/v1"
        self.root = f"{self.service}/collections/{name}"
        self.session = requests.Session()
        if api_key is not None:
            self.session.headers["Authorization"] = f"Bearer {api_key}"

    def create(self, dimension, metric="cosine"):
        """Creates the collection if it does not exist, and returns its record."""
        return self._call(
            "POST",
            f"{self.service}/collections?if_not_exists=true",
            json={"id": self.name, "dimension": dimension, "metric": metric},
        ).json()

    def write(self, batches, key=None):
        """Writes record batches as a stream, with constant memory on client and server.

        `batches` yields pyarrow.RecordBatch objects of one schema: `id`, `values` (or `vector`,
        `embedding`), and further columns as metadata. With a `key`, the same batches can be sent
        again after an interruption; the server skips durable rows. On SagittaError,
        `problem["committed_count"]` is the number of durable rows.
        """
        headers = {"Content-Type": ARROW, "Idempotency-Key": key or str(uuid.uuid4())}
        body = arrow_stream(batches)
        return self._call("POST", f"{self.root}/vectors", data=body, headers=headers).json()

    def query(self, vectors, top_k=10, filter=None, metadata=False, queries_at_once=1000):
        """The matches of every vector as a table: query_index, rank, id, score (and metadata).

        `vectors` is a pyarrow array of lists of numbers. They are sent in parts, because requests
        does not read the reply before it has sent the body.
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
        """A reader of record batches over one snapshot: id, values, metadata."""
        params = {"format": "arrow"}
        if filter is not None:
            params["filter"] = json.dumps(filter)
        return read_arrow(self._call("GET", f"{self.root}/export", params=params, stream=True))

    def join(self, **request):
        """A reader of record batches with the matches of every vector: id, rank, match_id, score.

        `request` is as in the API: `top_k`, `score_threshold`, `filter`, `with_filter`, `with`
        (another collection).
        """
        headers = {"Accept": ARROW}
        url = f"{self.root}/join"
        return read_arrow(self._call("POST", url, json=request, headers=headers, stream=True))

    def pages(self, **request):
        """All pages of a query, from one snapshot."""
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
        """Deletes vectors and returns how many of them existed."""
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
    """Yields the bytes of an Arrow stream batch by batch, for a streamed request body."""
    chunks = _ChunkBuffer()
    writer = None
    for batch in batches:
        if writer is None:
            writer = pa.ipc.new_stream(pa.PythonFile(chunks, mode="w"), batch.schema)
        writer.write_batch(batch)
        yield chunks.take()
    if writer is None:
        raise ValueError("expected at least one record batch")
    writer.close()
    yield chunks.take()


def read_arrow(reply):
    """A reader over a streamed reply; raises if the reply is truncated."""
    return pa.ipc.open_stream(reply.raw)


class _ChunkBuffer(io.RawIOBase):
    """Buffers what pyarrow writes until it is sent."""

    def __init__(self):
        super().__init__()
        self._chunks = []

    def writable(self):
        return True

    def write(self, data):
        self._chunks.append(bytes(data))
        return len(data)

    def take(self):
        whole = b"".join(self._chunks)
        self._chunks.clear()
        return whole
