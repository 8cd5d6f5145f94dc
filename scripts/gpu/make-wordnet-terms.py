"""Counts the terms of WordNet's glosses, the text from which `term-vectors` computes vectors.

    make-wordnet-terms.py --source /usr/share/wordnet --target bench/data/wordnet-terms.gz

Reads data.noun, data.verb, data.adj and data.adv of WordNet 3.0 (Debian's package wordnet-base). The text
of a sense is its words twice, its gloss without quotations, the words of up to two hypernyms, and the name
of its category. Terms are runs of two or more letters or digits that at least three senses have, without
the most frequent words of the language. Senses are in an order that a hash of their ids gives, so that the
first ones are a sample.

The file, compressed by gzip, has a line `sagitta terms 1`, then unsigned LEB128 integers: the number of
senses and of terms; for each sense the number of its terms, and for each of these, in ascending order, how
many terms lie between it and the one before, and how often the sense has it.
"""

import argparse
import gzip
import hashlib
import re
from collections import Counter
from pathlib import Path

SENSES_MIN = 3
HYPERNYMS_MAX = 2
FREQUENT = frozenset(
    """a an and any are as at be been but by can did do does for from had has have he her his if in into is it its
    may more most no nor not of on one or other she so some such than that the their them there these they this
    those to up used was were when where which who whom whose will with would you your""".split()
)
CATEGORIES = """all pert all Tops act animal artifact attribute body cognition communication event feeling food
    group location motive object person phenomenon plant possession process quantity relation shape state
    substance time body change cognition communication competition consumption contact creation emotion motion
    perception possession social stative weather ppl""".split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="folder of WordNet's files")
    parser.add_argument("--target", type=Path, required=True)
    options = parser.parse_args()
    senses = [sense for name in ("noun", "verb", "adj", "adv") for sense in read_senses(options.source, name)]
    words_of = {sense["id"]: sense["words"] for sense in senses}
    senses.sort(key=lambda sense: hashlib.sha256(sense["id"].encode()).digest())
    counts = [Counter(terms_of(sense, words_of)) for sense in senses]
    frequency = Counter(term for count in counts for term in count)
    vocabulary = sorted(term for term, seen in frequency.items() if seen >= SENSES_MIN)
    write(options.target, counts, {term: i for i, term in enumerate(vocabulary)})
    print(f"{len(counts)} senses, {len(vocabulary)} terms, {options.target.stat().st_size} bytes")


def read_senses(source: Path, name: str):
    """The senses of a file, which describes one per line."""
    for line in (source / f"data.{name}").read_text("latin-1").splitlines():
        if line.startswith("  "):
            continue
        head, gloss = line.split("|", 1)
        fields = head.split()
        word_count = int(fields[3], 16)
        words = [fields[4 + 2 * i].split("(")[0].replace("_", " ") for i in range(word_count)]
        first = 5 + 2 * word_count
        pointers = [fields[first + 4 * i : first + 4 * i + 4] for i in range(int(fields[first - 1]))]
        yield {
            "id": fields[2].replace("s", "a") + fields[0],
            "words": words,
            "gloss": re.sub(r'"[^"]*"', "", gloss),
            "hypernyms": [kind + target for symbol, target, kind, _ in pointers if symbol in ("@", "@i")],
            "category": CATEGORIES[int(fields[1])],
        }


def terms_of(sense: dict, words_of: dict) -> list:
    parents = [word for parent in sense["hypernyms"][:HYPERNYMS_MAX] for word in words_of.get(parent, [])]
    text = " ".join([*sense["words"], *sense["words"], sense["gloss"], *parents, sense["category"]])
    return [term for term in re.findall(r"[^\W_]{2,}", text.lower()) if term not in FREQUENT]


def write(target: Path, counts: list, numbers: dict) -> None:
    data = bytearray(b"sagitta terms 1\n")
    for number in (len(counts), len(numbers)):
        data += leb128(number)
    for count in counts:
        known = sorted((numbers[term], times) for term, times in count.items() if term in numbers)
        data += leb128(len(known))
        before = -1
        for number, times in known:
            data += leb128(number - before - 1) + leb128(times)
            before = number
    target.parent.mkdir(parents=True, exist_ok=True)
    # Without a time, the same text gives the same bytes.
    target.write_bytes(gzip.compress(bytes(data), 9, mtime=0))


def leb128(number: int) -> bytes:
    encoded = bytearray()
    while number >= 128:
        encoded.append(number % 128 + 128)
        number //= 128
    encoded.append(number)
    return bytes(encoded)


if __name__ == "__main__":
    main()
