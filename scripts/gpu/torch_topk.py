"""Exhaustive search in torch on a GPU, `matmul` and `topk`, in bf16 and in float32 without TF32.

    torch_topk.py --data clustered|isotropic|FILE --rows N --dimension D --batches 1,16 --ks 10
                  --filters 100,10 --seconds S

Prints JSON lines that report.py reads: one for the device with its bf16 matrix rate, then one per case
and precision. Exits with 77 without torch or a device. Vectors are unit vectors generated on the device,
around centers or in all directions alike, or those of a file of float32, whose last rows are the queries, as
for cuda-bench. Times are medians: device times from CUDA events around the search, with queries and results
on the device; wall times until the device has finished. A filter is a boolean mask over the rows, the
same for all queries of a batch, that sets scores to -inf before topk. Scores that exceed the memory are
computed and selected in chunks of rows, then merged.
"""

import argparse
import json
import math
import statistics
import sys
import time
from pathlib import Path

ABSENT = 77
CENTERS = 256
SPREAD = 0.7
PEAK_SIZE = 8192
RUNS_MIN = 5
WARM_UPS = 2
# Number of queries whose results are compared between the precisions.
COMPARED = 16
# topk is faster when 32 bits suffice to index the scores.
SCORES_MAX = 2**31 - 1
# Share of the free memory for scores, since topk needs memory as well.
SCORES_SHARE = 1 / 6

try:
    import torch
except ImportError as error:
    print(f"torch cannot be imported: {error}", file=sys.stderr)
    sys.exit(ABSENT)


def main() -> None:
    options = read_options()
    if not torch.cuda.is_available():
        print(f"torch {torch.__version__} finds no CUDA device", file=sys.stderr)
        sys.exit(ABSENT)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(options.seed)
    with torch.inference_mode():
        print_line(
            torch=torch.__version__,
            cuda=str(torch.version.cuda),
            bf16_flop_per_s=measure_bf16_rate(),
        )
        run_cases(options)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="exhaustive search in torch")
    numbers = lambda kind: lambda text: [kind(item) for item in text.split(",")]  # noqa: E731
    parser.add_argument("--data", default="clustered", help="clustered, isotropic or the name of a file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, required=True, help="of a file: at most so many")
    parser.add_argument("--dimension", type=int, required=True)
    parser.add_argument("--batches", type=numbers(int), required=True)
    parser.add_argument("--ks", type=numbers(int), default=[10])
    parser.add_argument("--filters", type=numbers(float), default=[100.0])
    parser.add_argument("--seconds", type=float, default=1.0)
    return parser.parse_args()


def run_cases(options: argparse.Namespace) -> None:
    """Runs the cases in the order of the stand-alone bench: filters, then k, then batches."""
    query_count = max(*options.batches, COMPARED)
    if options.data in ("clustered", "isotropic"):
        is_clustered = options.data == "clustered"
        rows, queries = create_data(options.rows, query_count, options.dimension, is_clustered)
    else:
        rows, queries = read_data(options.data, options.rows, query_count, options.dimension)
    by_precision = {
        "bf16": (rows.bfloat16(), queries.bfloat16()),
        "float32": (rows, queries),
    }
    for percent in options.filters:
        excluded = None
        if percent < 100:
            excluded = torch.rand(len(rows), device="cuda") >= percent / 100
        for k in options.ks:
            for batch in options.batches:
                case = {
                    "data": Path(options.data).name.split(".")[0],
                    "rows": len(rows),
                    "dimension": options.dimension,
                    "queries": batch,
                    "k": k,
                    "filter_percent": percent,
                }
                run_case(case, by_precision, excluded, options.seconds)


def run_case(case: dict, by_precision: dict, excluded, seconds: float) -> None:
    k = case["k"]
    for precision, (rows, queries) in by_precision.items():
        asked = queries[: case["queries"]]
        try:
            chunk_rows = choose_chunk_rows(rows, len(asked))
            device_ms, wall_ms = measure(
                lambda: search(rows, asked, k, excluded, chunk_rows), seconds
            )
            recall = None
            if precision != "float32":
                few = {
                    name: search(
                        rows, queries[:COMPARED], k, excluded, choose_chunk_rows(rows, COMPARED)
                    )
                    for name, (rows, queries) in by_precision.items()
                }
                recall = recall_of(few[precision], few["float32"])
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            print_line(**case, precision=precision, failure="out of memory on the device")
            continue
        print_line(
            **case,
            precision=precision,
            device_ms_p50=round(device_ms, 4),
            wall_ms_p50=round(wall_ms, 4),
            chunks=math.ceil(len(rows) / chunk_rows),
            recall=recall,
        )


def search(rows, queries, k: int, excluded, chunk_rows: int):
    """The rows of the best scores, [queries, k]; `rows` [rows, dimension] and `queries` have one dtype."""
    values = []
    indices = []
    for start in range(0, len(rows), chunk_rows):
        scores = queries @ rows[start : start + chunk_rows].T
        if excluded is not None:
            scores.masked_fill_(excluded[start : start + chunk_rows], -math.inf)
        best = torch.topk(scores, min(k, scores.shape[1]), dim=1)
        del scores
        values.append(best.values)
        indices.append(best.indices + start if start > 0 else best.indices)
    if len(values) == 1:
        return indices[0]
    merged = torch.topk(torch.cat(values, dim=1), k, dim=1)
    return torch.cat(indices, dim=1).gather(1, merged.indices)


def choose_chunk_rows(rows, query_count: int) -> int:
    """Rows per chunk: few chunks of equal size, a multiple of 64 rows for the matrix units."""
    # Memory cached by torch counts as free.
    free = torch.cuda.mem_get_info()[0]
    free += torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    scores = min(SCORES_MAX, int(free * SCORES_SHARE) // rows.element_size())
    chunk_count = math.ceil(len(rows) / max(1, scores // query_count))
    return math.ceil(len(rows) / chunk_count / 64) * 64


def recall_of(found, expected) -> float:
    hits = (found.unsqueeze(2) == expected.unsqueeze(1)).any(dim=2)
    return round(hits.float().mean().item(), 5)


def read_data(file: str, row_limit: int, query_count: int, dimension: int):
    """The first rows and the last ones, as queries, of a file of float32, row-major [rows, dimension]."""
    count = Path(file).stat().st_size // 4 // dimension
    vectors = torch.from_file(file, size=count * dimension, dtype=torch.float32).view(count, dimension)
    row_count = min(row_limit, count - query_count)
    return vectors[:row_count].cuda(), vectors[count - query_count :].cuda()


def create_data(row_count: int, query_count: int, dimension: int, is_clustered: bool):
    """Unit vectors around the same centers or in all directions alike, float32."""
    centers = torch.randn(CENTERS, dimension, device="cuda")

    def draw(count: int):
        vectors = torch.empty(count, dimension, device="cuda")
        for chunk in vectors.split(1 << 20):
            chunk.normal_()
            if is_clustered:
                chosen = torch.randint(CENTERS, (len(chunk),), device="cuda")
                chunk.mul_(SPREAD).add_(centers[chosen])
            chunk.div_(torch.linalg.vector_norm(chunk, dim=1, keepdim=True))
        return vectors

    return draw(row_count), draw(query_count)


def measure_bf16_rate() -> float:
    left = torch.randn(PEAK_SIZE, PEAK_SIZE, device="cuda").bfloat16()
    right = torch.randn(PEAK_SIZE, PEAK_SIZE, device="cuda").bfloat16()
    product = torch.empty_like(left)
    milliseconds, _ = measure(lambda: torch.matmul(left, right, out=product), 0.25)
    return round(2 * PEAK_SIZE**3 / milliseconds * 1e3)


def measure(work, seconds: float) -> tuple:
    """Median times in milliseconds: device time from events, and wall time."""
    for _ in range(WARM_UPS):
        work()
    torch.cuda.synchronize()
    device_ms = []
    wall_ms = []
    started = time.perf_counter()
    while len(device_ms) < RUNS_MIN or time.perf_counter() - started < seconds:
        before = torch.cuda.Event(enable_timing=True)
        after = torch.cuda.Event(enable_timing=True)
        start = time.perf_counter()
        before.record()
        work()
        after.record()
        after.synchronize()
        wall_ms.append((time.perf_counter() - start) * 1e3)
        device_ms.append(before.elapsed_time(after))
    return statistics.median(device_ms), statistics.median(wall_ms)


def print_line(**line) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
