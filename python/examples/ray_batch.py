"""A batch job with Ray Data: embeds texts, stores them, and writes their neighbours as Parquet.

    python ray_batch.py texts.parquet neighbours

`texts.parquet` has the columns `id` and `text`. Blocks are processed in parallel, each in constant
memory. A task that Ray repeats writes the same ids again, which changes nothing.
"""

import os
import sys
import zlib

import numpy
import pyarrow
import ray

from sagitta import Sagitta

DIMENSION = 64
ROWS_PER_BATCH = 1_000
NEIGHBOUR_COUNT = 3
URL = os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484")
COLLECTION = "ray-example"


def embed(texts: list[str]) -> numpy.ndarray:
    """[texts, DIMENSION] float32: counts of hashed character triples, in place of a model."""
    values = numpy.zeros((len(texts), DIMENSION), numpy.float32)
    for row, text in enumerate(texts):
        for at in range(max(1, len(text) - 2)):
            values[row, zlib.crc32(text[at : at + 3].encode()) % DIMENSION] += 1
    return values


class Writer:
    """Created once per worker, as a model would be. Its client keeps its connections."""

    def __init__(self) -> None:
        self._collection = Sagitta(URL).collection(COLLECTION)

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        values = embed(batch["text"].to_pylist())
        columns = {"id": batch["id"].to_pylist(), "values": values, "text": batch["text"]}
        self._collection.write_batches(columns)
        return pyarrow.table({"id": batch["id"], "vector": list(values)})


class Searcher:
    def __init__(self) -> None:
        self._collection = Sagitta(URL).collection(COLLECTION)

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        # A stored vector is not its own neighbour.
        queries = {"id": batch["id"].to_pylist()}
        found = self._collection.query_batches(queries, top_k=NEIGHBOUR_COUNT).to_arrow()
        return pyarrow.table(
            {
                "id": batch["id"].take(found["query_index"]),
                "neighbour": found["id"],
                "score": found["score"],
            }
        )


def main(source: str, target: str) -> None:
    ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    with Sagitta(URL) as client:
        client.collections.create(id=COLLECTION, dimension=DIMENSION, if_not_exists=True)
    options = {"batch_size": ROWS_PER_BATCH, "batch_format": "pyarrow", "concurrency": 1}
    # All vectors are written before the first search: a neighbour may be in any block.
    written = ray.data.read_parquet(source).map_batches(Writer, **options).materialize()
    neighbours = written.select_columns(["id"]).map_batches(Searcher, **options)
    neighbours.write_parquet(target)
    with Sagitta(URL) as client:
        print("written:", client.collection(COLLECTION).count())


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
