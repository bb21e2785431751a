"""Rules of the collaborative protocol: whether drafts agree, so that no seat needs to improve its own."""

from __future__ import annotations

from typing import Any

from council.final_answers.comparison import compare_all
from council.protocols.collaborative.replies import Draft
from council.protocols.common.stances import describe_vendor, has_two_members
from council.text_cleanup import single_line
from council.types import Round

MAX_CONCLUSION_CHARS = 100  # in the note


def explain_stop(drafts: Round[Any], question: str) -> str:
    """Return why two or more members with equal, firm conclusions need not improve their drafts, or an empty string."""
    said = [one.reply for one in drafts.values() if isinstance(one.reply, Draft) and one.reply.is_firm]
    if len(said) < len(drafts) or not has_two_members(drafts.values()):
        return ""
    if compare_all([one.conclusion for one in said], question) != "same":
        return ""
    who = "both drafts" if len(said) == 2 else f"all {len(said)} drafts"
    conclusion = single_line(said[0].conclusion, MAX_CONCLUSION_CHARS)
    vendor = describe_vendor(drafts.values())
    return f'{who} conclude "{conclusion}" with HIGH confidence and without a doubt{vendor}'
