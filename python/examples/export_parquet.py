"""Exports a collection to a pyarrow table, and to a Parquet file batch by batch.

python export_parquet.py even.parquet
"""

import json
import os
import sys

import pyarrow.parquet

from sagitta import Sagitta

path = sys.argv[1] if len(sys.argv) > 1 else "even.parquet"

with Sagitta(os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484")) as client:
    collection = client.collection("python-example")

    # A small part fits into memory as a table.
    table = collection.export_batches(filter={"number": {"$lt": 3}}).to_arrow()
    print("table:", table.num_rows, "rows,", table.schema.field("values").type)
    print("metadata:", json.loads(table["metadata"][0].as_py()))

    # A whole collection may not fit in memory, so it is written batch by batch.
    with (
        collection.export_batches(filter={"parity": "even"}) as stream,
        pyarrow.parquet.ParquetWriter(path, stream.schema) as writer,
    ):
        for batch in stream:
            writer.write_batch(batch)
    print("file:", pyarrow.parquet.read_metadata(path).num_rows, "rows")
