"""Replies of explorers and the questions judges give them."""

from __future__ import annotations

from pydantic import Field, model_validator

from council.replies.base import Reply
from council.replies.judges import NonEmptyList, ReplyPart, TextField


class SubQuestions(Reply):
    """Questions of a judge, one per explorer."""

    questions: NonEmptyList[str] = Field(description="specific, answerable by looking, no two alike")

    def prose(self) -> str:
        return "\n".join(f"{n}. {question}" for n, question in enumerate(self.questions, 1))


class Exploration(Reply):
    """Report of an explorer to its judge."""

    findings: list[str] = Field(description="facts that you found")
    evidence: list[str] = Field(description="the files, lines and patterns that show it")
    assessment: str = Field(description="the meaning for the question, and what you could not find")

    def prose(self) -> str:
        findings, evidence = (["- " + one for one in many] or ["- none"] for many in (self.findings, self.evidence))
        return "\n".join(["## Findings", *findings, "", "## Evidence", *evidence, "", "## Assessment", self.assessment])


class LineRange(ReplyPart):
    """A file or a line range of it; 0 to 0 is the whole file."""

    path: str
    first: int = Field(default=0, description="the first line wanted; 0 for the whole file")
    last: int = Field(default=0, description="the last line wanted; 0 for the whole file")

    @model_validator(mode="after")
    def _check_order(self) -> LineRange:
        if self.first < 0 or self.last < 0 or (self.last and self.last < self.first):
            raise ValueError(
                f"lines {self.first} to {self.last} of {self.path} are not a valid range: give the first line, then the last"
            )
        return self


class Lookups(Reply):
    """Files, names and patterns an explorer requests next, or its report."""

    exploration: Exploration | None = Field(
        default=None, description="your report when you are done; null to look further"
    )
    files: list[LineRange] = Field(default_factory=list, description="files to read")
    names: list[TextField] = Field(default_factory=list, description="names or globs of files to find")
    patterns: list[TextField] = Field(default_factory=list, description="texts to search for in the files")

    @model_validator(mode="after")
    def _check_not_empty(self) -> Lookups:
        if not (self.exploration or self.files or any(self.names) or any(self.patterns)):
            raise ValueError("ask for files, names or patterns, or write up what you found in exploration")
        return self

    @property
    def is_done(self) -> bool:
        return self.exploration is not None

    def prose(self) -> str:
        if self.exploration:
            return self.exploration.prose()
        wanted = [f"read {one.path}" + (f":{one.first}-{one.last}" if one.last else "") for one in self.files]
        wanted += [f"find {name}" for name in self.names] + [f"search {pattern}" for pattern in self.patterns]
        return "\n".join(f"- {want}" for want in wanted)
