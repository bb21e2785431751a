"""Shapes of runs for the crash tests: every protocol with its main options, and the seats that answer, fail and
recover.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from council.planning.plan import Material
from tests.acceptance.adaptive.fake_solvers import make_answer
from tests.acceptance.adaptive.fake_solvers import take_seats as take_solvers
from tests.acceptance.advisors.fake_advisors import stance_fields
from tests.acceptance.advisors.fake_advisors import take_seats as take_advisors
from tests.acceptance.fake_drafts import take_seats as take_drafts
from tests.acceptance.general.fake_general import FakeGeneral
from tests.acceptance.general.test_rounds import opposed
from tests.acceptance.helpers import QUESTION, Instead, Json, Terminal, Workspace
from tests.acceptance.judges.fake_judges import JudgesWorkspace, finding, look, opinion, second
from tests.acceptance.judges.project import FILES
from tests.acceptance.panel.fake_clerk import take_seats as take_panel
from tests.acceptance.ranking.fake_readers import take_seats as take_readers
from tests.acceptance.refine.fake_authors import make_error
from tests.acceptance.refine.fake_authors import take_seats as take_authors
from tests.acceptance.test_money import PRICES
from tests.fake_provider import FakeProvider, Reply, Seen
from tests.packet.conftest import begin

CAP = 2.0
EXPLORERS: Json = {"explorers": 1, "explorer_model": "sim:explorer"}
Prepare = Callable[[Path, FakeProvider], Workspace]


@dataclass(frozen=True)
class Shape:
    """A question with its protocol and options, and the folder and endpoint that it needs."""

    prepare: Prepare
    protocol: str | None
    words: tuple[str, ...] = (QUESTION,)
    options: Json = field(default_factory=dict)
    cap: float | None = None  # in dollars, of a run with prices
    settings: Json = field(default_factory=dict)  # of the run, as the flags set them
    look: bool = False

    @property
    def material(self) -> Material:
        return Material(look=self.look)

    @property
    def arguments(self) -> list[str]:
        """The same as arguments of the command."""
        flags = ["--protocol", self.protocol] if self.protocol else []
        for name, value in self.options.items():
            flags += [f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")]
        flags += ["--check"] if self.settings.get("check") else []
        flags += ["--look"] if self.look else []
        flags += ["--hedge"] if self.settings.get("hedge") else []
        flags += [f"--timeout={self.settings['timeout']}"] if "timeout" in self.settings else []
        for model in self.settings.get("models", ()):
            flags += ["-m", model]
        return [*flags, *self.words]


def prepare_plain(folder: Path, provider: FakeProvider) -> Workspace:
    return Workspace(folder, provider)


def prepare_priced(folder: Path, provider: FakeProvider) -> Workspace:
    workspace = Workspace(folder, provider)
    workspace.configure(more=PRICES + f"[budget]\nmax_cost = {CAP}\n")
    return workspace


def prepare_faults(folder: Path, provider: FakeProvider) -> Workspace:
    """One seat uses its fallback, one is absent, and the chair needs a repair turn."""
    workspace = Workspace(folder, provider)
    workspace.configure(beta=["sim:spare"])
    workspace.answers.seat_of["spare"] = "beta"
    workspace.answers.instead |= {
        "beta": Reply(status=500),
        "gamma": Reply(status=500),
        "chair/triage": _wrong_at_first,
    }
    return workspace


def _wrong_at_first(seen: Seen) -> Reply | None:
    return Reply(text='{"leader": "alpha"}') if len(seen.body["messages"]) == 2 else None


def prepare_advisors(folder: Path, provider: FakeProvider) -> Workspace:
    """Advisors that do not agree; one changes its stance in the last round."""
    workspace = Workspace(folder, provider)
    answers = take_advisors(workspace)
    opposed_at_first = stance_fields("against", "stay")
    answers.said = {
        "r1/visionary": opposed_at_first,
        "r2/visionary": opposed_at_first,
        "r3/visionary": stance_fields(evidence="the audit"),
    }
    return workspace


def prepare_absent_advisor(folder: Path, provider: FakeProvider) -> Workspace:
    workspace = prepare_advisors(folder, provider)
    workspace.answers.instead["skeptic/r1"] = Reply(status=500)
    return workspace


def prepare_ranking(folder: Path, provider: FakeProvider) -> Workspace:
    """One seat gives no answer, another no ballot."""
    workspace = Workspace(folder, provider)
    take_readers(workspace).instead |= {"gamma/answer": Reply(status=500), "beta/rank": Reply(status=500)}
    return workspace


FATAL = make_error("FATAL", "It costs 5,000 euros in all", "The train is not counted.")
SLIP = make_error("MINOR", "Book the train early", "It does not say when.")


def prepare_refine(folder: Path, provider: FakeProvider) -> Workspace:
    """The check finds a fatal error; the corrected text is checked again, and a slip is corrected."""
    workspace = Workspace(folder, provider)
    take_authors(workspace).errors |= {"check/beta": [FATAL], "check/gamma": [SLIP], "check-again/gamma": [SLIP]}
    return workspace


def prepare_refine_faults(folder: Path, provider: FakeProvider) -> Workspace:
    """An attack, a new version and a reader are missing, and the author of the text does not correct it."""
    workspace = prepare_refine(folder, provider)
    failing = ("beta/attack", "gamma/rewrite", "chair/fix", "beta/check-again")
    workspace.answers.instead |= {name: Reply(status=500) for name in failing}
    return workspace


def prepare_solo(folder: Path, provider: FakeProvider) -> Workspace:
    workspace = Workspace(folder, provider)
    take_authors(workspace).is_solo = True
    return workspace


def prepare_adaptive(folder: Path, provider: FakeProvider) -> Workspace:
    """Two members agree, and the check confirms it."""
    workspace = Workspace(folder, provider)
    take_solvers(workspace)
    return workspace


def prepare_adaptive_dispute(folder: Path, provider: FakeProvider) -> Workspace:
    """A member differs, so that the others answer, the clerk names a point and two seats argue it."""
    workspace = Workspace(folder, provider)
    answers = take_solvers(workspace)
    answers.said["beta"] = make_answer("beta", "418")
    answers.disputed = {"408": ["alpha", "gamma"], "418": ["beta"]}
    return workspace


def prepare_adaptive_faults(folder: Path, provider: FakeProvider) -> Workspace:
    """A first seat and the clerk do not answer, and another seat takes the place of the first one."""
    workspace = prepare_adaptive_dispute(folder, provider)
    answers = workspace.answers
    answers.instead |= {name: Reply(status=500) for name in ("alpha", "clerk")}
    return workspace


def prepare_panel(folder: Path, provider: FakeProvider) -> Workspace:
    workspace = Workspace(folder, provider)
    take_panel(workspace)
    return workspace


def prepare_panel_faults(folder: Path, provider: FakeProvider) -> Workspace:
    """One seat is absent, and the clerk needs a repair turn."""
    workspace = prepare_panel(folder, provider)
    workspace.answers.instead |= {"gamma/answer": Reply(status=500), "clerk/compare": _prose_at_first}
    return workspace


def _prose_at_first(seen: Seen) -> Reply | None:
    return Reply(text="They agree, more or less.") if len(seen.body["messages"]) == 2 else None


def prepare_check(folder: Path, provider: FakeProvider) -> Workspace:
    """The two readers of an answer find a fatal error and a slip."""
    workspace = Workspace(folder, provider)
    fatal = FATAL | {"hits": "It costs 4,000 euros in all"}
    take_authors(workspace).errors |= {"check/alpha": [SLIP], "check/beta": [fatal], "check-again/beta": [SLIP]}
    return workspace


def prepare_drafts(folder: Path, provider: FakeProvider) -> Workspace:
    """Drafts that agree; one seat is absent, and another needs a repair turn."""
    workspace = Workspace(folder, provider)
    take_drafts(workspace).instead |= {"gamma": Reply(status=500), "beta/draft": _empty_at_first}
    return workspace


def _empty_at_first(seen: Seen) -> Reply | None:
    return Reply(text='{"draft": ""}') if len(seen.body["messages"]) == 2 else None


def prepare_agreeing_advisors(folder: Path, provider: FakeProvider) -> Workspace:
    """Advisors that agree after the second round."""
    workspace = Workspace(folder, provider)
    take_advisors(workspace).said = {"r1/visionary": stance_fields("against", "stay")}
    return workspace


def prepare_general(folder: Path, provider: FakeProvider) -> Workspace:
    """A search, a second round on a disagreement, and a synthesis that is sent back once."""
    general = FakeGeneral(Workspace(folder, provider), Terminal(lambda: None))
    general.documents()
    opposed(general)
    good = general.says["synthesise"]
    silent = good | {"disagreements": []}
    general.says["synthesise"] = lambda seen: good if "was checked and has these problems" in seen.prompt else silent
    return general.workspace


BUG = finding(
    "critical",
    "src/auth/jwt.py:7",
    "The signature is never checked.",
    quote="return json.loads(base64.b64decode(body))",
)


def prepare_judges(folder: Path, provider: FakeProvider) -> Workspace:
    """A repository; one judge finds a bug and keeps to it, and its explorer looks a file up."""
    begin(folder, FILES, "begin")
    judges = JudgesWorkspace(folder, provider, folder.parent / "council.toml")
    judges.judge_answers.explorers = 1
    judges.judge_answers.said |= {"judge/judge-1": opinion("FAIL", BUG), "r2/judge-1": second("FAIL", BUG)}
    judges.judge_answers.instead["look/judge-1-1"] = _look_at_first
    return judges


def _look_at_first(seen: Seen) -> Reply | None:
    return Reply(text=json.dumps(look("README.md"))) if len(seen.body["messages"]) == 2 else None


def prepare_options(folder: Path, provider: FakeProvider) -> Workspace:
    """A repository; the judges list options or facets, and the chair consolidates them."""
    begin(folder, FILES, "begin")
    return JudgesWorkspace(folder, provider, folder.parent / "council.toml")


# Rejected answers: the endpoint answers, and the answers are not used

REFUSED = Reply(text="I cannot help with that.", refuse=True)
TRUNCATED = Reply(text="The first half of", finish="length")
EMPTY = Reply(empty=True)
UNREADABLE = Reply(text='{"unexpected": "reply"}')


def reject_answers(prepare: Prepare, **rejected: Instead) -> Prepare:
    """Return a function that prepares a shape in which these answers are rejected; a name such as `beta__rank` has
    seat and phase.
    """

    def prepare_rejecting(folder: Path, provider: FakeProvider) -> Workspace:
        workspace = prepare(folder, provider)
        answers = workspace.judge_answers if isinstance(workspace, JudgesWorkspace) else workspace.answers
        answers.instead |= {name.replace("__", "/").replace("_", "-"): reply for name, reply in rejected.items()}
        return workspace

    return prepare_rejecting


def _unreadable_then_down(seen: Seen) -> Reply:
    """Answer the first request with another schema; the repair turn fails."""
    return UNREADABLE if len(seen.body["messages"]) == 2 else Reply(status=500)


def _wrong_opinion_at_first(seen: Seen) -> Reply | None:
    return UNREADABLE if len(seen.body["messages"]) == 2 else None


def _empty_at_first_temperature(seen: Seen) -> Reply | None:
    return None if seen.body.get("temperature") else EMPTY


def prepare_rejecting_fallbacks(folder: Path, provider: FakeProvider) -> Workspace:
    """A seat and its fallback give no usable answer; for another one only the fallback answers, and it refuses."""
    workspace = Workspace(folder, provider)
    workspace.configure(beta=["sim:spare"], gamma=["sim:other"])
    workspace.answers.seat_of |= {"spare": "beta", "other": "gamma"}
    workspace.answers.instead |= {
        "beta": REFUSED,
        "spare": TRUNCATED,
        "gamma": Reply(status=500),
        "other": REFUSED,
        "chair": _empty_at_first_temperature,
    }
    return workspace


def prepare_hedged(folder: Path, provider: FakeProvider) -> Workspace:
    """A member never answers, so its fallback is asked too."""
    workspace = Workspace(folder, provider)
    workspace.configure(beta=["sim:spare"])
    workspace.answers.seat_of["spare"] = "beta"
    workspace.answers.instead["beta"] = Reply(hang=True)
    return workspace


def prepare_rejecting_hedged(folder: Path, provider: FakeProvider) -> Workspace:
    """Of two members at work on a step, one is cut off at once, and the other refuses late."""
    workspace = prepare_hedged(folder, provider)
    workspace.answers.instead |= {"beta": replace(REFUSED, delay=1.5), "spare": TRUNCATED}
    return workspace


def prepare_rejecting_general(folder: Path, provider: FakeProvider) -> Workspace:
    general = FakeGeneral(Workspace(folder, provider), Terminal(lambda: None))
    general.documents()
    opposed(general)
    general.says |= {"r1/domain_expert": UNREADABLE, "r2/generalist": REFUSED}
    return general.workspace


def prepare_looking(folder: Path, provider: FakeProvider) -> Workspace:
    """Every seat reads other files before it answers, one of them twice."""
    workspace = Workspace(folder, provider)
    for name in ("invoice", "rates", "tax"):
        (folder / f"{name}.txt").write_text(f"The {name} of the shop.\n", encoding="utf-8")
    workspace.answers.instead |= {
        "alpha/look": _look_once("invoice.txt"),
        "beta/look": _look_once("rates.txt", "invoice.txt"),
        "gamma/look": _look_once("tax.txt"),
    }
    return workspace


def _look_once(*paths: str) -> Callable[[Seen], Reply | None]:
    """Return a function that asks for these files, one with each request, and then for nothing."""

    def answer(seen: Seen) -> Reply | None:
        hop = sum(turn["role"] == "assistant" for turn in seen.body["messages"])
        return (
            Reply(text=json.dumps({"files": [paths[hop]], "names": [], "patterns": []})) if hop < len(paths) else None
        )

    return answer


SHAPES = {
    "triad": Shape(prepare_plain, "triad"),
    "triad-cap": Shape(prepare_priced, "triad", cap=CAP),
    "collaborative": Shape(prepare_plain, "collaborative"),
    "collaborative-early-stop": Shape(prepare_drafts, "collaborative", options={"early_stop": True}),
    "adversarial": Shape(prepare_plain, "adversarial"),
    "adversarial-faults": Shape(prepare_faults, "adversarial"),
    "judges": Shape(prepare_judges, None, ("validate", "src/auth")),
    "judges-debate": Shape(prepare_judges, None, ("validate", "src/auth"), {"debate": True}),
    "judges-explorers": Shape(prepare_judges, None, ("validate", "src/auth"), {"debate": True, **EXPLORERS}),
    "brainstorm": Shape(prepare_options, None, ("brainstorm", "caching approaches")),
    "research": Shape(prepare_options, None, ("research", "caching approaches")),
    "quick": Shape(prepare_judges, None, ("validate", "src/auth"), {"quick": True}),
    "advisors": Shape(prepare_advisors, "advisors"),
    "advisors-debate": Shape(prepare_absent_advisor, "advisors", options={"flow": "debate", "early_stop": True}),
    "advisors-sequential": Shape(prepare_advisors, "advisors", options={"flow": "sequential", "rounds": 2}),
    "advisors-early-stop": Shape(prepare_agreeing_advisors, "advisors", options={"rounds": 3, "early_stop": True}),
    "ranking": Shape(prepare_ranking, "ranking"),
    "refine": Shape(prepare_refine, "refine"),
    "refine-faults": Shape(prepare_refine_faults, "refine"),
    "refine-two": Shape(prepare_refine, "refine", settings={"models": ["sim:alpha", "sim:beta"]}),
    "solo": Shape(prepare_solo, "solo"),
    "adaptive": Shape(prepare_adaptive, "adaptive"),
    "adaptive-dispute": Shape(prepare_adaptive_dispute, "adaptive"),
    "adaptive-faults": Shape(prepare_adaptive_faults, "adaptive"),
    "panel": Shape(prepare_panel, "panel"),
    "panel-faults": Shape(prepare_panel_faults, "panel"),
    "collaborative-check": Shape(prepare_check, "collaborative", settings={"check": True}),
    "general": Shape(prepare_general, "general", options={"search": "files:docs"}),
    "collaborative-look": Shape(prepare_looking, "collaborative", look=True),
    "judges-look": Shape(prepare_judges, None, ("validate", "src/auth"), look=True),
}
# Two members at work on one step: the fallback is asked after half of the timeout.
HEDGED: Json = {"hedge": True, "timeout": 2.0}
HEDGED_SHAPES = {"hedged": Shape(prepare_hedged, "triad", settings=HEDGED)}
# Every protocol with answers that are rejected: refused, truncated, empty, or of another schema twice.
REJECTED_SHAPES = {
    "triad-rejected": Shape(reject_answers(prepare_plain, beta__draft=REFUSED, gamma__draft=TRUNCATED), "triad"),
    "fallbacks-rejected": Shape(prepare_rejecting_fallbacks, "triad"),
    "hedged-rejected": Shape(prepare_rejecting_hedged, "triad", settings=HEDGED),
    "collaborative-rejected": Shape(
        reject_answers(prepare_plain, beta__draft=REFUSED, alpha__improve=EMPTY, gamma__improve=TRUNCATED),
        "collaborative",
    ),
    "early-stop-rejected": Shape(
        reject_answers(prepare_drafts, beta__draft=UNREADABLE, gamma__draft=_unreadable_then_down),
        "collaborative",
        options={"early_stop": True},
    ),
    "check-rejected": Shape(
        reject_answers(prepare_check, alpha__check=UNREADABLE, beta__check_again=REFUSED),
        "collaborative",
        settings={"check": True},
    ),
    "look-rejected": Shape(
        reject_answers(prepare_looking, alpha__look=REFUSED, beta__look=UNREADABLE, gamma__draft=TRUNCATED),
        "collaborative",
        look=True,
    ),
    "adversarial-rejected": Shape(
        reject_answers(prepare_plain, chair__triage=_wrong_at_first, beta__attack=UNREADABLE), "adversarial"
    ),
    "judges-rejected": Shape(
        reject_answers(prepare_judges, r2__judge_2=REFUSED, look__judge_1_1=UNREADABLE),
        None,
        ("validate", "src/auth"),
        {"debate": True, **EXPLORERS},
    ),
    "brainstorm-rejected": Shape(
        reject_answers(prepare_options, judge__judge_2=UNREADABLE),
        None,
        ("brainstorm", "caching approaches"),
    ),
    "research-rejected": Shape(
        reject_answers(prepare_options, judge__judge_1=REFUSED),
        None,
        ("research", "caching approaches"),
    ),
    "quick-rejected": Shape(
        reject_answers(prepare_judges, judge__judge_1=_wrong_opinion_at_first),
        None,
        ("validate", "src/auth"),
        {"quick": True},
    ),
    "advisors-rejected": Shape(
        reject_answers(prepare_advisors, skeptic__r1=REFUSED, visionary__r2=UNREADABLE, pragmatist__r3=REFUSED),
        "advisors",
        options={"rounds": 3},
    ),
    "advisors-sequential-rejected": Shape(
        reject_answers(prepare_advisors, pragmatist__r1=TRUNCATED, skeptic__r2=REFUSED),
        "advisors",
        options={"flow": "sequential", "rounds": 2},
    ),
    "ranking-rejected": Shape(
        reject_answers(
            prepare_ranking, gamma__answer=REFUSED, beta__rank=Reply(text='{"reasons": [], "order": ["Q"]}')
        ),
        "ranking",
    ),
    "refine-rejected": Shape(
        reject_answers(
            prepare_refine, beta__attack=UNREADABLE, gamma__rewrite=REFUSED, gamma__check=UNREADABLE, chair__fix=REFUSED
        ),
        "refine",
    ),
    "solo-rejected": Shape(
        reject_answers(prepare_solo, alpha__attack_again=REFUSED),
        "solo",
    ),
    "adaptive-rejected": Shape(reject_answers(prepare_adaptive_dispute, alpha=UNREADABLE, clerk=REFUSED), "adaptive"),
    "panel-rejected": Shape(reject_answers(prepare_panel_faults, gamma__answer=REFUSED), "panel"),
    "general-rejected": Shape(prepare_rejecting_general, "general", options={"search": "files:docs"}),
}
SHAPES |= REJECTED_SHAPES | HEDGED_SHAPES
