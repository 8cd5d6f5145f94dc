"""Writes report.md and report.json of a call of lease.sh from what its steps have written so far.

    report.py --call NAME --million ROWS --dimension D --seconds S --steps NAMES LOGS RESULTS

LOGS has steps.tsv (name, outcome, exit code, seconds, limit), and the output of each step. `--million` is the
rows that stand for a million, fewer on an emulated GPU. report.md begins with what was predicted and what was
measured, and the goals.
"""

import argparse
import json
import os
import re
from pathlib import Path

# Milliseconds on an H100, by program, millions of rows of 768 dimensions, and queries: k = 10, clustered data.
PREDICTED_MS = {
    "sagitta": {
        1: {1: 0.20, 64: 0.30, 1024: 1.9, 4096: 7.0},
        10: {1: 0.96, 64: 1.5, 1024: 15},
    },
    "sagitta, int8 codes only": {1: {1: 0.40, 64: 0.43}, 10: {1: 3.0, 64: 3.2}},
    "torch bf16": {
        1: {1: 0.6, 64: 0.8, 1024: 5.4, 4096: 22},
        10: {1: 5.2, 64: 7.3, 1024: 54},
    },
    "torch float32": {
        1: {1: 1.1, 64: 2.5, 1024: 39, 4096: 156},
        10: {1: 10, 64: 24, 1024: 390},
    },
}
# Steps that compare answers with those of the CPU, to the bit.
COMPARING = ("test-", "scan", "selftest")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--call", required=True)
    parser.add_argument("--million", type=int, required=True)
    parser.add_argument("--dimension", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--steps", type=str.split, required=True)
    parser.add_argument("logs", type=Path)
    parser.add_argument("results", type=Path)
    options = parser.parse_args()
    steps = read_steps(options.logs)
    lines = [line for step in steps for line in read_lines(options.logs, step["step"])]
    cases = [line for line in lines if "device_ms_p50" in line]
    measured = measure(cases, options.million, options.dimension)
    goals = judge(cases, measured, steps)
    report = {
        "call": options.call,
        "seconds": options.seconds,
        "million": options.million,
        "goals": goals,
        "steps": steps,
        "not_run": [name for name in options.steps if name not in [step["step"] for step in steps]],
        "lines": lines,
    }
    device = next((line["device"] for line in lines if "device" in line), "no device")
    parts = [
        [f"# {options.call}: {device}, {options.seconds} s"],
        table(["case", "predicted ms", "measured ms", "measured / predicted"], compare(measured)),
        table(["goal", "measured", "outcome"], [list(goal.values()) for goal in goals]),
        table(["step", "outcome", "seconds", "last line"], list_steps(report)),
        table(CASE_COLUMNS, [list_case(case) for case in cases]),
        # The bench of REST prints a table itself.
        [line for line in read(options.logs / "rest.out").splitlines() if line.startswith("|")],
    ]
    text = "\n\n".join("\n".join(part) for part in parts if part)
    replace(options.results / "report.json", json.dumps(report) + "\n")
    replace(options.results / "report.md", text + "\n")


def read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def replace(path: Path, text: str) -> None:
    """Writes a file that is whole whenever the call is stopped."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


def read_steps(logs: Path) -> list:
    steps = []
    for line in read(logs / "steps.tsv").splitlines():
        name, outcome, code, seconds, limit = line.split("\t")
        message = message_of(logs / name, outcome)
        counts = {"exit_code": int(code), "seconds": int(seconds), "limit_seconds": int(limit)}
        steps.append({"step": name, "outcome": outcome, **counts, "message": message})
    return steps


def message_of(log: Path, outcome: str) -> str:
    """The last line that a step has written, or of one that failed, the last that tells of an error."""
    kinds = ("out", "err") if outcome == "passed" else ("err", "out")
    written = [
        text.strip()[:160]
        for kind in kinds
        for text in reversed(read(log.with_suffix(f".{kind}")).splitlines())
        if re.search(r"\w", text) and not text.startswith(("{", "|"))
    ]
    errors = [text for text in written if re.search("error|fail", text, re.IGNORECASE)]
    return ((errors if outcome == "failed" else []) + written + [""])[0]


def read_lines(logs: Path, step: str) -> list:
    """The lines of JSON that a bench has printed, each with its step."""
    found = []
    for text in read(logs / f"{step}.out").splitlines():
        if not text.startswith("{"):
            continue
        try:
            found.append({"step": step, **json.loads(text)})
        except ValueError:
            # A line of a step that was stopped ends anywhere, and doctor prints several.
            if text.endswith("}"):
                found.append({"step": step, "unreadable": text})
    return found


def program_of(case: dict) -> str:
    if "precision" in case:
        return f"torch {case['precision']}"
    method = {"tiles": ", int8 codes only", "coarse": ", coarse codes", "head": ", head tiles"}.get(case["method"], "")
    return "sagitta" + method


def measure(cases: list, million: int, dimension: int) -> dict:
    """The cases that have predictions, by program, millions of rows, and queries; the best kernels first."""
    measured = {}
    for case in sorted(cases, key=lambda case: case.get("scan", "best") != "best"):
        is_plain = case["data"] == "clustered" and case["k"] == 10 and case["filter_percent"] == 100
        if is_plain and case["dimension"] == dimension and case["rows"] % million == 0:
            key = (program_of(case), case["rows"] // million, case["queries"])
            measured.setdefault(key, case)
    return measured


def predict(program: str, millions: int, queries: int):
    """As predicted, or between the predictions for 1 and 10 million rows."""
    of = PREDICTED_MS.get(program, {})
    if millions in of:
        return of[millions].get(queries)
    if not 1 < millions < 10 or any(queries not in of.get(end, {}) for end in (1, 10)):
        return None
    return of[1][queries] + (of[10][queries] - of[1][queries]) * (millions - 1) / 9


def compare(measured: dict) -> list:
    keys = {
        (program, millions, queries)
        for program, by_rows in PREDICTED_MS.items()
        for millions, by_queries in by_rows.items()
        for queries in by_queries
    }
    programs = list(PREDICTED_MS)
    wanted = [key for key in keys | set(measured) if predict(*key) is not None]
    rows = []
    for key in sorted(wanted, key=lambda key: (programs.index(key[0]), *key[1:])):
        program, millions, queries = key
        predicted = predict(*key)
        name = f"{program}, {millions} M, {queries} queries"
        ms = measured[key]["device_ms_p50"] if key in measured else None
        if key in measured and measured[key].get("scan", "best") != "best":
            name += f" ({measured[key]['scan']})"
        ratio = "" if ms is None else f"{ms / predicted:.2f}"
        rows.append([name, f"{predicted:.3g}", "not measured" if ms is None else f"{ms:.3g}", ratio])
    return rows


def judge(cases: list, measured: dict, steps: list) -> list:
    def ms(*key):
        return measured[key]["device_ms_p50"] if key in measured else None

    def ratio(above, below):
        return None if above is None or below is None else above / below

    def goal(name, value, is_met, unit):
        if value is None:
            return {"goal": name, "measured": "", "outcome": "not measured"}
        return {"goal": name, "measured": f"{value:.3g}{unit}", "outcome": "met" if is_met(value) else "missed"}

    many = ("sagitta", 1, 1024)
    share = measured[many]["share_of_int8"] * 100 if many in measured else None
    return [
        goal("one query over 1 M in 0.2 ms", ms("sagitta", 1, 1), lambda value: value <= 0.2, " ms"),
        goal("one query over 10 M in 1 ms", ms("sagitta", 10, 1), lambda value: value <= 1, " ms"),
        goal("1,024 queries over 1 M: 55 % of int8", share, lambda value: value >= 55, " %"),
        goal(
            "1,024 queries over 1 M: 2.5 × torch bf16",
            ratio(ms("torch bf16", 1, 1024), ms(*many)),
            lambda value: value >= 2.5,
            " ×",
        ),
        goal(
            "1,024 queries over 1 M: 10 × torch float32",
            ratio(ms("torch float32", 1, 1024), ms(*many)),
            lambda value: value >= 10,
            " ×",
        ),
        goal("filtered batches in 1.2 × the time", cost_of_filters(cases), lambda value: value <= 1.2, " ×"),
        judge_answers(steps),
    ]


def cost_of_filters(cases: list):
    """The largest time of a filtered batch, in times of the same batch without a filter."""
    of = [case for case in cases if case["step"] == "scan-filters"]
    plain = {case["queries"]: case["device_ms_p50"] for case in of if case["filter_percent"] == 100}
    filtered = [case for case in of if case["filter_percent"] < 100]
    return max((case["device_ms_p50"] / plain[case["queries"]] for case in filtered), default=None)


def judge_answers(steps: list) -> dict:
    name = "every answer is the CPU's, to the bit"
    compared = [step for step in steps if step["step"].startswith(COMPARING) and step["outcome"] != "skipped"]
    passed = [step for step in compared if step["outcome"] == "passed"]
    failed = [step for step in compared if step["outcome"] == "failed"]
    if not passed and not failed:
        return {"goal": name, "measured": "", "outcome": "not measured"}
    found = f"{len(passed)} of {len(compared)} steps passed"
    return {"goal": name, "measured": found, "outcome": "missed" if failed else "met"}


def list_steps(report: dict) -> list:
    rows = [[step["step"], step["outcome"], step["seconds"], step["message"]] for step in report["steps"]]
    return rows + [[name, "not run yet", "", ""] for name in report["not_run"]]


CASE_COLUMNS = (
    "step,program,data,rows × dimension,blocks,queries,k,% pass,ms on the device,ms,of copy,of int8,"
    "rescored,by coarse codes,by head tiles,abandoned,scanned again,undecided"
).split(",")


def list_case(case: dict) -> list:
    program = program_of(case)
    if case.get("scan", "best") != "best":
        program += f" ({case['scan']})"

    def percent(name):
        return f"{100 * case[name]:.1f} %" if name in case else ""

    shape = f"{case['rows']} × {case['dimension']}"
    asked = [case["queries"], case["k"], f"{case['filter_percent']:g}"]
    times = [f"{case['device_ms_p50']:.3f}", f"{case['wall_ms_p50']:.3f}"]
    shares = [percent("share_of_copy"), percent("share_of_int8")]
    names = ("rescored_per_query", "coarse", "head", "abandoned", "repeated", "undecided")
    counts = [case.get(name, "") for name in names]
    blocks = case.get("blocks", "")
    return [case["step"], program, case["data"], shape, blocks, *asked, *times, *shares, *counts]


def table(columns: list, rows: list) -> list:
    if not rows:
        return []
    cells = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in cells]


if __name__ == "__main__":
    main()
