"""Writes 10 000 vectors as an Arrow stream and queries them in batches and pages.

    SAGITTA_URL=http://127.0.0.1:8484 python load_and_query.py
"""

import os
import random

import pyarrow as pa
import pyarrow.compute as compute

from sagitta import Collection, SagittaError

DIMENSION = 16
ROWS_PER_BATCH = 2_500
BATCHES = 4


def vectors_of(count, generator):
    """A fixed_size_list<float32>, which the server reads without conversion."""
    numbers = pa.array((generator.gauss(0, 1) for _ in range(count * DIMENSION)), pa.float32())
    return pa.FixedSizeListArray.from_arrays(numbers, DIMENSION)


def batches():
    """Generates the batches one by one, so that only one is in memory."""
    generator = random.Random(1)
    for at in range(BATCHES):
        rows = range(at * ROWS_PER_BATCH, (at + 1) * ROWS_PER_BATCH)
        yield pa.record_batch(
            {
                "id": [f"row-{row}" for row in rows],
                "values": vectors_of(ROWS_PER_BATCH, generator),
                "number": pa.array(rows, pa.int32()),
                "parity": ["odd" if row % 2 else "even" for row in rows],
            }
        )


collection = Collection(os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484"), "python-example")
collection.create(DIMENSION)

reply = collection.write(batches())
print("written:", reply["upserted_count"], "rows in", reply["batch_count"], "commits")

# The first rows again, as queries: each is its own nearest neighbour.
queries = next(batches())["values"].slice(0, 2_000)
found = collection.query(queries, top_k=3)
best = found.filter(compute.equal(found["rank"], 1))
print("matches:", found.num_rows, "the first:", best["id"][0], "the last:", best["id"][-1])

# Filters apply before the search: every query still returns three matches.
odd = collection.query(queries.slice(0, 10), top_k=3, filter={"parity": "odd"}, metadata=True)
print("odd matches:", odd.num_rows, "all odd:", all('"odd"' in text.as_py() for text in odd["metadata"]))

# Page by page through all vectors that match a filter.
pages = list(
    collection.pages(vector=queries[0].as_py(), filter={"number": {"$lt": 25}}, limit=10)
)
print("pages:", [len(page) for page in pages], "nearest:", pages[0][0]["id"])

try:
    collection.query(pa.array([[1.0, 2.0]], pa.list_(pa.float32())))
except SagittaError as error:
    print("rejected:", error.problem["code"])
