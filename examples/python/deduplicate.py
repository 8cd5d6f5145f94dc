"""Finds near-duplicates by joining a collection with itself, and deletes all but one of each group.

    python deduplicate.py
"""

import os

import pyarrow as pa

from sagitta import Collection

collection = Collection(os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484"), "python-duplicates")
collection.create(dimension=2, metric="euclidean")
points = [[0, 0], [0, 0.001], [0.001, 0], [5, 5], [9, 9], [9, 9.001]]
collection.write(
    [
        pa.record_batch(
            {
                "id": [f"p{at}" for at in range(len(points))],
                "values": pa.array(points, pa.list_(pa.float32(), 2)),
            }
        )
    ]
)

# A score of 0.99 is a distance of 0.01. Every pair is reported twice, once from each side.
pairs = 0
kept_id = {}
for batch in collection.join(score_threshold=0.99):
    for left, right in zip(batch["id"].to_pylist(), batch["match_id"].to_pylist()):
        pairs += 1
        kept_id[right] = min(kept_id.get(right, right), left)
duplicates = [name for name, kept in kept_id.items() if kept < name]

print("pairs:", pairs, "deleted:", collection.delete(duplicates), "left:", collection.count())
