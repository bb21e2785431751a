"""Closings of the panel protocol: the conclusion and the confidence with which an answer ends, as models write them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import TypedDict

from council.protocols.common.conclusions import LEVELS
from council.protocols.common.replies import read_confidence
from council.text_cleanup import single_line

MAX_CLOSING_LINES = 12  # of an answer, in which its conclusion and its confidence are looked for
MAX_CONCLUSION_CHARS = 600
# The labels are asked for in English. Models that answer in another language may translate them. Words that also mean
# security or reliability, such as Sicherheit, are left out: "Sicherheit: hoch" may be about the subject.
LABELS: Mapping[str, str] = {
    "conclusion": "conclusion, conclusions, fazit, schluss, schlussfolgerung, conclusión, conclusione, conclusão, 结论, 結論",
    "confidence": "confidence, zuversicht, konfidenz, vertrauen, confiance, certitude, confianza, certeza, "
    "confidenza, fiducia, certezza, confiança, 置信度, 可信度, 信心, 把握, 信頼度, 確信度, 確度, 自信",
}
LEVEL_WORDS: Mapping[str, str] = {
    "HIGH": "hoch, sehr hoch, élevé, élevée, très élevée, haute, forte, alta, alto, muy alta, molto alta, muito alta, elevada, "
    "elevata, 高, 很高, 高い",
    "MEDIUM": "mittel, mäßig, mittelmäßig, moyen, moyenne, modérée, media, medio, moderada, moderata, média, médio, 中, 中等, 中程度",
    "LOW": "niedrig, gering, sehr niedrig, sehr gering, schwach, faible, très faible, basse, baja, bajo, muy baja, bassa, basso, "
    "molto bassa, baixa, baixo, muito baixa, 低, 很低, 较低, 低い",
}
_LINE = re.compile(
    r"^[\s>*_#|\d.)-]*(?P<label>[^\W\d_][\w ]{1,40}?)[*_\s]*(?:$|(?:[:：=]|\s[–—-]\s)[*_\s]*(?P<text>.*?)[*_\s]*$)"
)
_BESIDE_LABEL = re.compile(
    r"^(?:(?:my|the|own|final|overall|level of|niveau de|nivel de|livello di|nivel da|meine) )+| (?:level|score|rating)$"
)
_MARKS = re.compile(r"^[\s>*_#•-]+|[\s*_]+$")
_REMARK = re.compile(r"\s*[,;:(（，；、。.–—-]")


class Closing(TypedDict):
    """How an answer ends: its conclusion in a sentence, and its confidence. None if it does not say."""

    conclusion: str | None
    confidence: str | None  # HIGH | MEDIUM | LOW


def read_closing(text: str) -> Closing:
    """Return the last conclusion and the last confidence of an answer. What cannot be read is not guessed.

    The text is on the line of its label, or on the next one, as after a heading.
    """
    lines = [line for line in text.splitlines() if line.strip()][-MAX_CLOSING_LINES:]
    labelled = [_read_line(line) for line in lines]
    found: dict[str, str] = {}
    for number, row in enumerate(labelled):
        if row is None:
            continue
        label, text = row
        has_next = number + 1 < len(lines) and labelled[number + 1] is None
        found[label] = text or (_MARKS.sub("", lines[number + 1]) if has_next else "")
    conclusion = single_line(found.get("conclusion", ""), MAX_CONCLUSION_CHARS)
    level = read_confidence(_translate_level(found.get("confidence", "")))
    return {
        "conclusion": conclusion if any(map(str.isalnum, conclusion)) else None,
        "confidence": level if level in LEVELS else None,
    }


def _read_line(line: str) -> tuple[str, str] | None:
    """Return the label and the text of a line such as `**Confidence:** LOW` or `## Confidence`; None if it has none."""
    match = _LINE.match(line)
    name = _LABEL_TABLE.get(_BESIDE_LABEL.sub("", _fold(match["label"]))) if match else None
    return (name, match["text"] or "") if match and name else None


def _translate_level(text: str) -> str:
    """Return a level of another language in English, with its remark. A remark in words may take back a HIGH."""
    mark = _REMARK.search(text)
    head, rest = (text[: mark.start()], text[mark.start() :]) if mark else (text, "")
    level = _LEVEL_TABLE.get(_fold(head))
    has_words = any(map(str.isalpha, rest))
    if level is None or (level == "HIGH" and has_words):
        return text
    return level if has_words else f"{level}{rest}"


def _fold(text: str) -> str:
    """Return a text in lower case, without accents and marks of Markdown."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(plain.replace("*", " ").replace("_", " ").split())


def _index_words(rows: Mapping[str, str]) -> dict[str, str]:
    return {_fold(word): value for value, words in rows.items() for word in words.split(",")}


_LABEL_TABLE = _index_words(LABELS)
_LEVEL_TABLE = _index_words(LEVEL_WORDS)
