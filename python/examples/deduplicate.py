"""Joins a collection with itself to find near-duplicates and deletes all but one of each group.

python deduplicate.py
"""

import os

from sagitta import Sagitta

POINTS = [[0, 0], [0, 0.001], [0.001, 0], [5, 5], [9, 9], [9, 9.001]]

with Sagitta(os.environ.get("SAGITTA_URL", "http://127.0.0.1:8484")) as client:
    client.collections.create(
        id="python-duplicates", dimension=2, metric="euclidean", if_not_exists=True
    )
    collection = client.collection("python-duplicates")
    collection.upsert([{"id": f"p{at}", "values": point} for at, point in enumerate(POINTS)])

    # A score of 0.99 is a distance of 0.01. Every pair is reported twice, once from each side.
    pairs = 0
    kept_id: dict[str, str] = {}
    for row in collection.join(score_threshold=0.99):
        for match in row["matches"]:
            pairs += 1
            kept_id[match["id"]] = min(kept_id.get(match["id"], match["id"]), row["id"])
    duplicates = [id for id, kept in kept_id.items() if kept < id]

    deleted = collection.delete_many(ids=duplicates)["deleted_count"]
    print("pairs:", pairs, "deleted:", deleted, "left:", collection.count())
