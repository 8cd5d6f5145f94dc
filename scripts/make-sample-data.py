"""Creates the sample data in examples/data from the full data sets. The output is reproducible.

Reads wordnet-10k.arrow, wordnet-10k-queries.arrow and digits.jsonl from --source. Keeps 4 200 senses
(all animals, foods and verbs, and a fixed selection of the rest), all 200 query vectors with their
exact neighbours among those senses, and the compressed digits. Requires numpy and pyarrow.
"""

import argparse
import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

SENSE_COUNT = 4_200
NEIGHBOUR_COUNT = 20
ROWS_PER_BATCH = 2_048
DIMENSION = 256
CHOICE = "sagitta sample 1"
"""Hashed with every id to select senses. A different text selects different senses."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="directory of the full data sets")
    parser.add_argument("--target", type=Path, default=Path("examples/data"))
    options = parser.parse_args()

    senses = choose_senses(read_table(options.source / "wordnet-10k.arrow"))
    queries = read_table(options.source / "wordnet-10k-queries.arrow")
    write_table(options.target / "wordnet.arrow", senses)
    write_table(options.target / "wordnet-queries.arrow", with_neighbours(queries, senses))
    write_digits(options.source / "digits.jsonl", options.target / "digits.jsonl.gz")
    for file in sorted(options.target.iterdir()):
        print(f"{file.stat().st_size:>9} {file.name}")


def read_table(file: Path) -> pa.Table:
    with ipc.open_file(file) as reader:
        return reader.read_all()


def choose_senses(table: pa.Table) -> pa.Table:
    """Selects the senses, in the order of the source."""
    wanted = [
        category in ("noun.animal", "noun.food") or category.startswith("verb.")
        for category in table["category"].to_pylist()
    ]
    ids = table["id"].to_pylist()
    others = [row for row in range(len(ids)) if not wanted[row]]
    others.sort(key=lambda row: hashlib.sha256(f"{CHOICE} {ids[row]}".encode()).digest())
    for row in others[: SENSE_COUNT - sum(wanted)]:
        wanted[row] = True
    return table.filter(pa.array(wanted)).combine_chunks()


def with_neighbours(queries: pa.Table, senses: pa.Table) -> pa.Table:
    """Id, values and lemma of each query, with its exact neighbours under each metric."""
    rows = vectors_of(senses)
    is_verb = np.array([pos == "verb" for pos in senses["pos"].to_pylist()])
    ids = np.array(senses["id"].to_pylist())
    row_squares = sum_of_products(rows, rows)
    answers = {name: ([], []) for name in ("cosine", "dot", "euclidean_sq_neg", "cosine_verb")}
    for query in vectors_of(queries):
        product = sum_of_products(rows, query)
        square = sum_of_products(query[None, :], query)[0]
        cosine = np.clip(product / (np.sqrt(square) * np.sqrt(row_squares)), -1, 1)
        distance = np.maximum(0, (square - 2 * product) + row_squares)
        scores = {
            "cosine": cosine,
            "dot": product,
            "euclidean_sq_neg": 0 - distance,
            "cosine_verb": np.where(is_verb, cosine, -np.inf),
        }
        for name, score in scores.items():
            # Ids are ASCII, so their text order is their byte order.
            best = np.lexsort((ids, -score))[:NEIGHBOUR_COUNT]
            answers[name][0].append(ids[best].tolist())
            answers[name][1].append(score[best].tolist())
    table = queries.select(["id", "values", "lemma"])
    for name, (best_ids, best_scores) in answers.items():
        table = table.append_column(f"{name}_ids", pa.array(best_ids, pa.list_(pa.string())))
        table = table.append_column(f"{name}_scores", pa.array(best_scores, pa.list_(pa.float64())))
    return table.combine_chunks()


def vectors_of(table: pa.Table) -> np.ndarray:
    """Row-major [rows, DIMENSION] float32."""
    flat = table["values"].combine_chunks().flatten().to_numpy()
    return flat.reshape(-1, DIMENSION)


def sum_of_products(rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Dot products in float64, summed in the server's order: 8 lanes by index modulo 8, then
    folded in halves. Equal vectors get equal scores, so ties are exact."""
    products = rows.astype(np.float64) * query.astype(np.float64)
    lanes = np.zeros((len(rows), 8))
    for start in range(0, DIMENSION, 8):
        lanes += products[:, start : start + 8]
    quarters = lanes[:, 0:4] + lanes[:, 4:8]
    halves = quarters[:, 0:2] + quarters[:, 2:4]
    return halves[:, 0] + halves[:, 1]


def write_table(file: Path, table: pa.Table) -> None:
    with ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=ROWS_PER_BATCH)


def write_digits(source: Path, target: Path) -> None:
    lines = source.read_bytes()
    for line in lines.splitlines():
        json.loads(line)
    with open(target, "wb") as file:
        # A name or timestamp in the header would make the output irreproducible.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, mtime=0, fileobj=file) as zipped:
            zipped.write(lines)


if __name__ == "__main__":
    main()
