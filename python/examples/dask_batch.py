"""A batch job with Dask: embeds texts, stores them, and writes their neighbours as Parquet.

    python dask_batch.py texts.parquet neighbours

`texts.parquet` has the columns `id` and `text`. Partitions are processed in parallel. A repeated
task writes the same ids again, which changes nothing.
"""

import os
import sys
import zlib

import dask.dataframe
import numpy
import pandas

from sagitta import Sagitta

DIMENSION = 64
PARTITION_COUNT = 4
NEIGHBOUR_COUNT = 3
URL = os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484")
COLLECTION = "dask-example"


def embed(texts: list[str]) -> numpy.ndarray:
    """[texts, DIMENSION] float32: counts of hashed character triples, in place of a model."""
    values = numpy.zeros((len(texts), DIMENSION), numpy.float32)
    for row, text in enumerate(texts):
        for at in range(max(1, len(text) - 2)):
            values[row, zlib.crc32(text[at : at + 3].encode()) % DIMENSION] += 1
    return values


def write(part: pandas.DataFrame) -> pandas.DataFrame:
    values = embed(part["text"].tolist())
    columns = {"id": part["id"].tolist(), "values": values, "text": part["text"].tolist()}
    with Sagitta(URL) as client:
        written = client.collection(COLLECTION).write_batches(columns)
    return pandas.DataFrame({"written": [written["upserted_count"]]})


def search(part: pandas.DataFrame) -> pandas.DataFrame:
    ids = part["id"].tolist()
    # A stored vector is not its own neighbour.
    with Sagitta(URL) as client:
        matches = client.collection(COLLECTION).query_batches({"id": ids}, top_k=NEIGHBOUR_COUNT)
        found = matches.to_arrow().to_pandas()
    return pandas.DataFrame(
        {
            "id": [ids[index] for index in found["query_index"]],
            "neighbour": found["id"],
            "score": found["score"],
        }
    )


def main(source: str, target: str) -> None:
    with Sagitta(URL) as client:
        client.collections.create(id=COLLECTION, dimension=DIMENSION, if_not_exists=True)
    texts = dask.dataframe.read_parquet(source).repartition(npartitions=PARTITION_COUNT)
    # All vectors are written before the first search: a neighbour may be in any partition.
    written = texts.map_partitions(write, meta={"written": "int64"}).compute()["written"].sum()
    columns = {"id": "string", "neighbour": "string", "score": "float64"}
    texts.map_partitions(search, meta=columns).to_parquet(target)
    print("written:", written)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
