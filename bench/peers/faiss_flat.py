"""Exhaustive float32 search in FAISS: IndexFlatIP, or IndexFlatL2 for euclidean.

Reads the request file named on the command line and prints one line of JSON, as defined in peer.ts.
Timed as in timing.ts: the rate of the median round, percentiles over all calls.
"""

import json
import math
import sys
import time

import faiss
import numpy


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    faiss.omp_set_num_threads(request["threadCount"])
    rows = read_vectors(request, "rows.f32")
    queries = read_vectors(request, "queries.f32")
    answers = []
    for metric in {case["metric"] for case in request["cases"]}:
        flat = faiss.IndexFlatL2 if metric == "euclidean" else faiss.IndexFlatIP
        index = flat(request["dimension"])
        index.add(rows)
        for case in request["cases"]:
            if case["metric"] == metric:
                answers.append(measure(request, case, index, queries))
    print(json.dumps({"version": f"faiss-cpu {faiss.__version__}", "answers": answers}))


def read_vectors(request: dict, name: str) -> numpy.ndarray:
    vectors = numpy.fromfile(f"{request['folder']}/{name}", dtype=numpy.float32)
    return vectors.reshape(-1, request["dimension"])


def measure(request: dict, case: dict, index: faiss.Index, queries: numpy.ndarray) -> dict:
    batch_count = case["batchCount"]
    k = request["k"]
    starts = range(0, max(1, len(queries) // batch_count) * batch_count, batch_count)
    batches = [queries[start : start + batch_count] for start in starts]
    index.search(batches[0], k)

    calls_per_round = math.ceil(request["roundQueriesMin"] / batch_count)
    call_ms = []
    round_rates = []
    cpu_before = time.process_time()
    started_at = time.perf_counter()
    now = started_at
    while len(round_rates) < request["roundsMin"] or now - started_at < request["secondsMin"]:
        round_started_at = now
        for _ in range(calls_per_round):
            call_started_at = now
            index.search(batches[len(call_ms) % len(batches)], k)
            now = time.perf_counter()
            call_ms.append((now - call_started_at) * 1000)
        round_rates.append(calls_per_round * batch_count / (now - round_started_at))
    threads_busy = (time.process_time() - cpu_before) / (now - started_at)

    found = []
    for batch in batches:
        if len(found) >= request["roundQueriesMin"]:
            break
        found.extend(index.search(batch, k)[1].tolist())
    timing = {
        "p50Ms": quantile(call_ms, 0.5),
        "p99Ms": quantile(call_ms, 0.99),
        "queriesPerSecond": quantile(round_rates, 0.5),
        "callCount": len(call_ms),
        "threadsBusy": threads_busy,
    }
    note = f"{type(index).__name__}, {request['threadCount']} threads"
    return {"name": case["name"], "timing": timing, "note": note, "rows": found}


def quantile(values: list, share: float) -> float:
    """The quantile at `share` (0 to 1) of the values."""
    return sorted(values)[min(len(values) - 1, math.floor(len(values) * share))]


main()
