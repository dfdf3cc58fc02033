"""Writes golden.jsonl beside this file: texts, their rows, and their vectors.

  python3 testdata/golden.py

It shares nothing with the Go code but the files of the table, and favours
plainness over speed: whole-text passes, and only what comes with Python.
"""
import json
import math
import pathlib
import re
import struct
import unicodedata

HERE = pathlib.Path(__file__).parent
TABLE = HERE.parent / "minilm-static-256"

TEXTS = [
    "We keep the queue in PostgreSQL; SQLite is for tests only.",
    "Why did the nightly backup fail on Tuesday?",
    "backup fail fail FAIL",
    "don't retry more than 3 times, wait 250ms in between (see retry.go:42)",
    "panic: runtime error: index out of range [7] with length 7",
    "Später nehmen wir doch die größere Maschine, sagte Zoë im Café.",
    "Où est passé l’ancien fichier « config.yaml » ?",
    "[CLS] this is [SEP] plain text [MASK]",
    "nul\x00byte, bell\x07, escape\x1b[31m, unit\x1fseparator, next\x85line",
    "half\u200b a \u00a0 word\u00ad break\ufeff\u2028new paragraph \ufffd",
    "ship it 🚀🚀 — then 🍰",
    "x̷̛̖y z\u0301\u0327 ＦＵＬＬ ½ ² ﬀ",
    "部署到staging之后再合并",
    "デプロイは金曜日にしない",
    "배포는 금요일에 하지 않는다",
    "ห้ามปล่อยงานวันศุกร์",
    "Не выкладываем в пятницу",
    "404 2026-03-14 3.5 %",
    "…?!",
    "",
    "a" * 100 + " " + "b" * 101 + " tail",
    "naïveté coöperate İzmir ΜΕΓΑΣ ǅ",
]

VOCABULARY = (TABLE / "vocab.txt").read_text("utf8").rstrip("\n").split("\n")
ROW_OF = {piece: row for row, piece in enumerate(VOCABULARY)}
DATA = (TABLE / "table.bin").read_bytes()
ROWS, DIMENSIONS = struct.unpack_from("<4xII", DATA)
SCALES = struct.unpack_from(f"<{ROWS}f", DATA, 12)
IDEOGRAPHS = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
                        "\U0002b740-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f])")
ASCII_PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def row(number):
    values = struct.unpack_from(f"<{DIMENSIONS}b", DATA, 12 + 4 * ROWS + number * DIMENSIONS)
    return [SCALES[number] * value for value in values]


def words(text):
    text = re.sub(r"\s", " ", text)
    text = "".join(c for c in text if c != "\ufffd" and unicodedata.category(c) not in {"Cc", "Cf", "Co", "Cs"})
    text = IDEOGRAPHS.sub(r" \1 ", text)
    text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    text = "".join(c.lower() for c in text)
    text = "".join(f" {c} " if c in ASCII_PUNCTUATION or unicodedata.category(c).startswith("P") else c for c in text)
    return text.split()


def pieces(word):
    if len(word) > 100:
        return []
    found, prefix = [], ""
    while word:
        end = next((end for end in range(len(word), 0, -1) if prefix + word[:end] in ROW_OF), None)
        if end is None:
            return []
        found.append(ROW_OF[prefix + word[:end]])
        word, prefix = word[end:], "##"
    return found


def unit(vector):
    length = math.sqrt(math.fsum(x * x for x in vector))
    return [x / length for x in vector] if length else vector


def total(rows, weight):
    sums = [0.0] * DIMENSIONS
    for number in rows:
        sums = [s + weight(number) * x for s, x in zip(sums, row(number))]
    return unit(sums)


def main():
    documents = [[number for word in words(text) for number in pieces(word)] for text in TEXTS]

    def idf(number):
        df = sum(number in rows for rows in documents)
        return math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))

    weighted = [total(rows, idf) for rows in documents]
    mean = [math.fsum(column) / len(documents) for column in zip(*weighted)]
    with open(HERE / "golden.jsonl", "w", encoding="utf8") as out:
        for text, rows, memory in zip(TEXTS, documents, weighted):
            centred = unit([x - m for x, m in zip(memory, mean)]) if rows else memory
            record = {
                "text": text,
                "rows": rows,
                "vector": [round(x, 6) for x in total(rows, lambda _: 1)],
                "memory_vector": [round(x, 6) for x in centred],
            }
            out.write(json.dumps(record, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
