"""Writes record batches from a generator and queries them in batches, with filters and by page.

    python load_and_query.py

SAGITTA_URL is the address of the server.
"""

import os

import numpy
import pyarrow
import pyarrow.compute

from sagitta import Sagitta, SagittaError

DIMENSION = 16
BATCH_COUNT = 4
ROWS_PER_BATCH = 2_500


def vectors_of(batch: int) -> numpy.ndarray:
    """Row-major [ROWS_PER_BATCH, DIMENSION] float32. In practice, this is the output of a model."""
    generator = numpy.random.default_rng(seed=batch)
    return generator.standard_normal((ROWS_PER_BATCH, DIMENSION), numpy.float32)


def batches():
    """Yields the same batches each time, so that an interrupted stream can be sent again."""
    for batch in range(BATCH_COUNT):
        rows = range(batch * ROWS_PER_BATCH, (batch + 1) * ROWS_PER_BATCH)
        values = pyarrow.FixedSizeListArray.from_arrays(vectors_of(batch).reshape(-1), DIMENSION)
        yield pyarrow.record_batch(
            {
                "id": [f"row-{row}" for row in rows],
                "values": values,
                "number": pyarrow.array(rows, pyarrow.int32()),
                "parity": ["odd" if row % 2 else "even" for row in rows],
            }
        )


with Sagitta(os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484")) as client:
    client.collections.create(id="python-example", dimension=DIMENSION, if_not_exists=True)
    collection = client.collection("python-example")

    reply = collection.write_batches(batches)
    print("written:", reply["upserted_count"], "rows in", reply["batch_count"], "commits")

    # The first rows again, as queries: each is its own nearest neighbour.
    queries = vectors_of(0)[:2_000]
    found = collection.query_batches(queries, top_k=3).to_arrow()
    best = found.filter(pyarrow.compute.equal(found["rank"], 1))
    print("matches:", found.num_rows, "the first:", best["id"][0], "the last:", best["id"][-1])

    # Filters apply before the search: every query still returns three matches.
    odd = collection.query_batches(
        queries[:10], top_k=3, filter={"parity": "odd"}, include_metadata=True
    ).to_arrow()
    are_odd = ['"odd"' in text for text in odd["metadata"].to_pylist()]
    print("odd matches:", odd.num_rows, "all odd:", all(are_odd))

    # Reads all vectors that match a filter, page by page.
    pages = [
        page["matches"]
        for page in collection.query_pages(
            vector=queries[0], filter={"number": {"$lt": 25}}, limit=10
        )
    ]
    print("pages:", [len(page) for page in pages], "nearest:", pages[0][0]["id"])

    try:
        collection.query(vector=[1.0, 2.0])
    except SagittaError as error:
        print("rejected:", error.code)
