"""Write the answers that were recorded with the data set MMLU-Pro as a CSV file for `council eval --replay`.

    git clone https://github.com/TIGER-AI-Lab/MMLU-Pro
    git -C MMLU-Pro checkout ff991b5 -- eval_results/gpt4o eval_results/deepseek
    python scripts/make_answer_matrix.py MMLU-Pro answers.csv

The checkout adds two models whose answers the newest commit does not have as readable files. A question counts as the
same one if its id, its options and its right answer are equal. A model without a readable answer has an empty cell.
"""

from __future__ import annotations

import csv
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VENDORS = {
    "c4ai": "cohere",
    "claude": "anthropic",
    "deepseek": "deepseek",
    "gemini": "google",
    "gemma": "google",
    "gpt": "openai",
    "jamba": "ai21",
    "llama": "meta",
    "mathstral": "mistral",
    "meta-llama": "meta",
    "mistral": "mistral",
    "mixtral": "mistral",
    "phi": "microsoft",
    "qwen": "alibaba",
    "yi": "01-ai",
}
MIN_ROWS = 11_000  # of a complete record

Question = tuple[str, ...]  # its options, without empty ones, and the letter of the right one


def read_records(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each model of known vendor with its rows: from an archive, or from a folder with one file per subject."""
    for path in sorted(folder.glob("model_outputs_*.zip")):
        model = path.name.removeprefix("model_outputs_").partition("_5shots")[0]
        if path.stat().st_size and find_vendor(model):
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if name.endswith(".json") and "__MACOSX" not in name]
                yield model, [row for name in names for row in json.loads(archive.read(name))]
    for subfolder in sorted(one for one in folder.iterdir() if one.is_dir() and find_vendor(one.name)):
        files = sorted(subfolder.glob("*_result.json"))
        yield subfolder.name, [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]


def find_vendor(model: str) -> str | None:
    return next((vendor for start, vendor in VENDORS.items() if model.lower().startswith(start)), None)


def read_question(row: dict[str, Any]) -> Question:
    return (*(option.strip() for option in row["options"] if option != "N/A"), row["answer"])


def main(source: Path, target: Path) -> None:
    questions: dict[int, Question] = {}
    columns: dict[str, dict[int, str]] = {}
    for model, rows in read_records(source / "eval_results"):
        rows = [row for row in rows if isinstance(row, dict) and "question_id" in row]
        if len(rows) < MIN_ROWS:
            print(f"{model}: {len(rows)} rows, left out", file=sys.stderr)
            continue
        column = columns.setdefault(f"{find_vendor(model)}/{model}", {})
        for row in rows:
            if questions.setdefault(row["question_id"], read_question(row)) == read_question(row):
                column[row["question_id"]] = row.get("pred") or ""
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "truth", *columns])
        for key in sorted(questions):
            writer.writerow([key, questions[key][-1], *(column.get(key, "") for column in columns.values())])
    print(f"{len(questions)} questions, {len(columns)} models", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
