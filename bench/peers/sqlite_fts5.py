"""Queries by words in SQLite's FTS5, in memory and on one thread, ranked by its bm25.

Reads the request file named on the command line: the documents, lists of queries (each a list of distinct
words), and k. Prints the milliseconds of every query as JSON, in the same lists.
"""

import json
import sqlite3
import sys
import time


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'unicode61')")
    rows = ((text,) for text in request["documents"])
    connection.executemany("INSERT INTO texts (text) VALUES (?)", rows)
    connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")
    k = request["k"]
    answers = [[measure(connection, words, k) for words in some] for some in request["queries"]]
    print(json.dumps(answers))


def measure(connection: sqlite3.Connection, words: list, k: int) -> float:
    query = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
    statement = "SELECT rowid, rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
    started_at = time.perf_counter()
    connection.execute(statement, (query, k)).fetchall()
    return (time.perf_counter() - started_at) * 1000


main()
