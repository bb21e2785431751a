"""Typed replies of seats. `prose()` renders a reply for people."""

from __future__ import annotations

from council.replies.advisors import Moved, Perspective, Refereed, RefereedRounds, Stand
from council.replies.base import SMALL_LIST, SMALL_STRING, Choices, Reply, each, read, schema_of, unfence
from council.replies.dual import Attack, Issue, Point, Ruling, Triage
from council.replies.explorers import Exploration, Lines, Lookups, SubQuestions
from council.replies.general import (
    Answered,
    Claimed,
    Position,
    Queries,
    Quoted,
    Reconsidered,
    Same,
    Side,
    SpecSynthesis,
    Synthesis,
    Told,
    Topics,
)
from council.replies.judges import (
    OUTPUT_SCHEMA,
    Acknowledgment,
    DebateNotes,
    Found,
    Objection,
    Opinion,
    SecondOpinion,
)
from council.replies.ranking import Ballot, Reason
from council.replies.surveys import Consolidation, Facet, Facets, Option, Options, Theme, TradeOff

__all__ = [
    "OUTPUT_SCHEMA", "SMALL_LIST", "SMALL_STRING", "Acknowledgment", "Answered", "Attack", "Ballot", "Choices", "Claimed",
    "Consolidation", "DebateNotes", "Exploration", "Facet", "Facets", "Found", "Issue", "Lines", "Lookups", "Moved",
    "Objection", "Opinion", "Option", "Options", "Perspective", "Point", "Position", "Queries", "Quoted", "Reason",
    "Reconsidered", "Refereed", "RefereedRounds", "Reply", "Ruling", "Same", "SecondOpinion", "Side", "SpecSynthesis",
    "Stand", "SubQuestions", "Synthesis", "Theme", "Told", "Topics", "TradeOff", "Triage", "each", "read",
    "schema_of", "unfence",
]  # fmt: skip
