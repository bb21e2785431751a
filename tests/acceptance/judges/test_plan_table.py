"""Plans of the documented example lines: seats, task and calls."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import pytest

from tests.acceptance.helpers import Json, Terminal
from tests.acceptance.judges.fake_judges import JudgesWorkspace
from tests.packet.conftest import commit, git, write

TWO, THREE = ("judge-1", "judge-2"), ("judge-1", "judge-2", "judge-3")
DOCS = ("judge-clarity-editor", "judge-accuracy-verifier", "judge-completeness-auditor", "judge-audience-advocate")
AUDIT = ("judge-attacker", "judge-defender", "judge-compliance")
SIX = (*(f"claude-judge-{n}" for n in (1, 2, 3)), *(f"codex-judge-{n}" for n in (1, 2, 3)))
FOUR = tuple(f"{family}-judge-{n}" for family in ("claude", "codex") for n in (1, 2))
AUTH, PLAN, API = (
    "used as target: auth → src/auth/",
    "used as target: plan → PLAN.md",
    "used as target: api → src/api/",
)
ARCHITECTURE = "used as target: architecture → docs/ARCHITECTURE.md"
INSTEAD = 'no file here matches "the implementation": reviewing the recent changes'
SCALED = "3 judges per family scaled down to 2: at most 12 agents"


@dataclass(frozen=True)
class Line:
    """An example line and its expected plan."""

    line: str
    task: str
    seats: tuple[str, ...]
    target: str | None = None
    warnings: tuple[str, ...] = ()
    explorers: int = 0
    debate: bool = False
    options: tuple[tuple[str, object], ...] = ()

    @property
    def agents(self) -> int:
        return len(self.seats) * (1 + self.explorers)

    @property
    def phases(self) -> list[tuple[str, int]]:
        judges, sent = len(self.seats), len(self.seats) * self.explorers
        looks = [("judge/explore", sent * 4)] if sent else []  # the question and at most three look-ups
        rounds = [("r1", judges), ("r2", judges)] if self.debate else [("judge", judges)]
        ends = [("consolidate", 1)] if self.task != "validate" else [("grouping", 1)] if judges > 1 else []
        return [*([("judge/questions", judges)] if sent else []), *looks, *rounds, *ends]


LINES = [
    # Quick Start
    Line("--quick validate recent", "validate", ("judge-1",), "recent"),
    Line("validate this plan", "validate", TWO, None, (PLAN,)),
    Line("brainstorm caching approaches", "brainstorm", TWO),
    Line("validate the implementation", "validate", TWO, None, (INSTEAD,)),
    Line("research kubernetes upgrade strategies", "research", TWO),
    Line("research the CI/CD pipeline bottlenecks", "research", TWO),
    Line("--preset=security-audit validate the auth system", "validate", AUDIT, None, (AUTH,)),
    Line("--deep --explorers=3 research upgrade automation", "research", THREE, explorers=3),
    Line("--debate validate the auth system", "validate", TWO, None, (AUTH,), debate=True),
    Line("--deep --debate validate the migration plan", "validate", THREE, None, (PLAN,), debate=True),
    # Modes
    Line("recent", "validate", TWO, "recent"),
    Line("--deep recent", "validate", THREE, "recent"),
    Line("--mixed recent", "validate", SIX, "recent"),
    # Named Perspectives
    Line(
        '--perspectives="security-auditor,performance-critic,simplicity-advocate" validate src/auth/',
        "validate", ("judge-security-auditor", "judge-performance-critic", "judge-simplicity-advocate"), "src/auth/",
    ),
    Line(
        "--perspectives-file=.agents/perspectives/api-review.yaml validate src/api/",
        "validate", ("judge-security-auditor", "judge-performance-critic"), "src/api/",
    ),
    # Examples
    Line("validate recent", "validate", TWO, "recent"),
    Line(
        "--deep --preset=architecture research the auth system",
        "research", ("judge-scalability", "judge-maintainability", "judge-simplicity"), None, (AUTH,),
    ),
    Line("--mixed validate this plan", "validate", SIX, None, (PLAN,)),
    Line("--deep --explorers=3 research upgrade patterns", "research", THREE, explorers=3),
    Line("--preset=security-audit --deep validate the API", "validate", AUDIT, None, (API,)),
    Line("--preset=doc-review validate README.md", "validate", DOCS, "README.md"),
    Line("brainstorm caching strategies for the API", "brainstorm", TWO, None, (API,)),
    Line("--technique=scamper brainstorm API improvements", "brainstorm", TWO, None, (API,), options=(("technique", "scamper"),)),
    Line("--technique=six-hats brainstorm migration strategy", "brainstorm", TWO, options=(("technique", "six-hats"),)),
    Line("--profile=thorough validate the security architecture", "validate", THREE, None, (ARCHITECTURE,)),
    Line("--profile=fast validate recent", "validate", TWO, "recent"),
    Line("research Redis vs Memcached for session storage", "research", TWO),
    Line("validate the implementation plan in PLAN.md", "validate", TWO, "PLAN.md"),
    Line("--preset=doc-review validate docs/ARCHITECTURE.md", "validate", DOCS, "docs/ARCHITECTURE.md"),
    Line('--perspectives="security-auditor,perf-critic" validate src/', "validate", ("judge-security-auditor", "judge-perf-critic"), "src/"),
    # The worked example and the migration table
    Line("--mixed --explorers=2 research Kubernetes upgrade strategies", "research", FOUR, None, (SCALED,), explorers=2),
]  # fmt: skip


def warnings(plan: Json) -> list[str]:
    """Return the warnings but the advice on mixing vendors, which has a test of its own."""
    return [warning for warning in plan["warnings"] if "mix them with" not in warning]


def shown(plan: Json) -> Json:
    return {
        "task": plan["task"], "protocol": plan["protocol"], "target": plan["target"], "seats": tuple(seat["name"] for seat in plan["seats"]),
        "agents": plan["agents"], "phases": [(phase["name"], phase["calls"]) for phase in plan["phases"]], "warnings": tuple(warnings(plan)),
        "chair": plan["chair"] is not None,
    }  # fmt: skip


def wanted(line: Line) -> Json:
    return {
        "task": line.task, "protocol": "judges", "target": line.target, "seats": line.seats, "agents": line.agents, "phases": line.phases,
        "warnings": line.warnings, "chair": line.task != "validate",
    }  # fmt: skip


@pytest.mark.behaviour("issue-3-example-lines", "002-example-lines")
def test_every_example_line_plans_as_documented_quoted_or_not(judges: JudgesWorkspace, council: Terminal) -> None:
    assert len({line.line for line in LINES}) == 31
    for line in LINES:
        words = shlex.split(line.line)
        quoted = [
            *(word for word in words if word.startswith("-")),
            " ".join(word for word in words if not word.startswith("-")),
        ]
        for arguments in (words, quoted):
            done = council(*arguments, "--dry-run", "--json")
            assert done.code == 0, (line.line, done.out)
            plan = done.json
            assert shown(plan) == wanted(line), line.line
            assert plan["calls"]["max"] == sum(calls for _, calls in line.phases), line.line
            assert {name: plan["options"][name] for name, _ in line.options} == dict(line.options)
            assert all(phase["parallel"] == (phase["calls"] > 1) for phase in plan["phases"]), line.line
    assert judges.provider.log == []
    assert judges.runs() == []


@pytest.mark.behaviour("issue-3-bare-council", "002-example-lines")
def test_bare_council_and_a_bare_verb_use_the_changes_in_the_work_tree(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    nothing = council("--dry-run", "--json")
    assert (nothing.code, "the work tree has no changes" in nothing.json["error"]) == (2, True)
    write(judges.folder, {"src/app.py": "import os\n", "src/new.py": "x = 1\n"})
    for arguments, seats in (
        ([], TWO), (["validate"], TWO), (["--deep"], THREE),
        (["--perspectives-file=.agents/perspectives/custom.yaml", "validate"], ("judge-security-auditor", "judge-performance-critic")),
    ):  # fmt: skip
        plan = council(*arguments, "--dry-run", "--json").json
        assert (plan["task"], plan["protocol"], tuple(seat["name"] for seat in plan["seats"])) == (
            "validate",
            "judges",
            seats,
        )
        assert plan["packet"]["files"] == ["src/app.py", "src/new.py"]
        assert "the changes in the work tree" in plan["question"]
    assert council("brainstorm", "--dry-run", "--json").json["task"] == "brainstorm"
    assert council("research", "--dry-run", "--json").json["task"] == "research"


@pytest.mark.behaviour("issue-3-recent", "packet-recent")
def test_recent_contains_only_changes_since_three_commits_ago(judges: JudgesWorkspace, council: Terminal) -> None:
    for n in range(4):
        commit(judges.folder, {f"src/step{n}.py": f"step = {n}\n"})
    write(judges.folder, {"src/app.py": "import os\n"})
    git(judges.folder, "add", "-A")
    plan = council("recent", "--dry-run", "--json").json
    assert plan["packet"]["files"] == ["src/app.py", "src/step1.py", "src/step2.py", "src/step3.py"]
    packet = council("packet", "recent", "--json").json["council_packet"]
    assert "+import os" in packet["context"]["diff"]
    assert "step0" not in packet["context"]["diff"]


@pytest.mark.behaviour("packet-table", "packet-budget")
def test_packet_prints_a_table_of_what_is_sent_and_of_what_is_not(judges: JudgesWorkspace, council: Terminal) -> None:
    filler = "".join(f"def unused_{n}():\n    return {n}\n\n\n" for n in range(600))
    steps = "".join(f"    step_{n}(item)\n" for n in range(9))
    files = {
        "src/price.py": f"{filler}def price_of(item):\n{steps}    return item\n",
        "src/order.py": "from price import price_of\n\n\ndef invoice():\n    return price_of(1)\n",
        "AGENTS.md": "Money is always Decimal.\n",
        "large.py": "x = 1\n" * 200_000,
    }
    commit(judges.folder, files)
    changes = {"src/price.py": files["src/price.py"].replace("return item\n", "return 2 * item\n"), "new.py": "y = 1\n"}
    commit(judges.folder, {**changes, "large.py": files["large.py"] + "x = 2\n"}, "Double prices\n\nFixes #41.")
    lines = council("packet", "HEAD~1..HEAD").out.splitlines()
    assert lines[0].split() == ["path", "part", "lines", "tokens", "reason"]
    rows = {(row[0], row[1]): row for line in lines[1:] if len(row := line.split()) > 2}
    assert {
        ("src/price.py", "diff"),
        ("commits", "commits"),
        ("AGENTS.md", "rules"),
        ("src/price.py", "definitions"),
    } <= rows.keys()
    assert rows["src/price.py", "diff"][2:4] == ["+1", "-1"]
    assert rows["src/order.py", "callers"][-2:] == ["calls", "price_of"]
    assert rows["new.py", "file"][2:4] == ["all", "1"]
    assert any(line.startswith("total") for line in lines)
    assert "Not included:" in lines and any(line.startswith("  large.py: only its diff is shown") for line in lines)
    less = council("packet", "--packet-tokens", "1000", "--json", "HEAD~1..HEAD").json["receipt"]
    assert less["tokens"] <= 1_000 and less["holes"] == []
    assert council("packet", "--packet-tokens", "10", "recent").code == 2


TRIGGERS = {
    "validate": ("validate", "check", "review", "assess", "critique", "feedback", "improve"),
    "brainstorm": ("brainstorm", "explore", "options", "approaches"),
    "research": ("research", "investigate", "deep dive", "explore deeply", "analyze", "examine", "evaluate", "compare"),
}


@pytest.mark.behaviour("002-task-triggers")
def test_every_specified_trigger_word_chooses_its_task(judges: JudgesWorkspace, council: Terminal) -> None:
    found = {}
    for words in TRIGGERS.values():
        for word in words:
            plan = council(f"{word} src/auth", "--dry-run", "--json").json
            found[word] = (
                plan["task"],
                plan["protocol"],
                plan["packet"]["files"] == ["src/auth/jwt.py", "src/auth/middleware.py"],
            )
    assert found == {word: (task, "judges", True) for task, words in TRIGGERS.items() for word in words}
    inside = council("please review src/auth", "--dry-run", "--json").json
    assert (inside["task"], inside["target"]) == ("validate", "src/auth")
    alone = council("please review our values", "--dry-run", "--json").json
    assert (alone["task"], alone["protocol"]) == ("ask", "collaborative")


def members(plan: Json) -> list[str]:
    return [seat["model"] for seat in plan["seats"]]


@pytest.fixture
def unseated(judges: JudgesWorkspace) -> JudgesWorkspace:
    """No seats are set by name: profiles, variables and [models] decide."""
    text = judges.config.read_text(encoding="utf-8")
    judges.config.write_text(text[: text.index("[seats.")], encoding="utf-8")
    return judges


@pytest.mark.behaviour("002-environment-variables", "issue-3-precedence")
def test_variables_choose_the_models_and_the_number_of_judges(
    unseated: JudgesWorkspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(*arguments: str) -> Json:
        return council(*arguments, "validate", "src/app.py", "--dry-run", "--json").json

    assert members(plan()) == ["sim:default", "simb:other"]
    monkeypatch.setenv("COUNCIL_JUDGE_COUNT", "4")
    assert members(plan()) == ["sim:default", "simb:other"] * 2
    assert members(plan("--profile=fast")) == ["sim:fast", "simb:other"] * 2
    assert len(members(plan("--deep"))) == 3
    assert len(members(plan("--count=1"))) == 1
    assert len(members(plan("--quick"))) == 1
    monkeypatch.delenv("COUNCIL_JUDGE_COUNT")
    monkeypatch.setenv("COUNCIL_CLAUDE_MODEL", "sim:mine")
    assert members(plan()) == ["sim:mine"] * 2
    assert members(plan("--profile=thorough")) == ["sim:mine"] * 3
    assert members(plan("--mixed")) == ["sim:mine"] * 3 + ["simb:other"] * 3
    assert members(plan("--seat", "judge-1=sim:chosen")) == ["sim:chosen", "sim:mine"]
    unseated.config.write_text(unseated.config.read_text().replace('other = "simb:other"', ""), encoding="utf-8")
    monkeypatch.setenv("COUNCIL_CODEX_MODEL", "simb:theirs")
    assert members(plan("--mixed")) == ["sim:mine"] * 3 + ["simb:theirs"] * 3


@pytest.mark.behaviour("issue-3-precedence")
def test_a_profile_sets_the_model_and_number_and_an_explicit_size_overrides_it(
    unseated: JudgesWorkspace, council: Terminal
) -> None:
    def plan(*arguments: str) -> Json:
        return council(*arguments, "validate", "src/app.py", "--dry-run", "--json").json

    assert members(plan("--profile=thorough")) == ["sim:strong", "simb:other", "sim:strong"]
    assert members(plan("--profile=balanced")) == ["sim:default", "simb:other"]
    assert members(plan("--profile=FAST")) == ["sim:fast", "simb:other"]
    assert members(plan("--profile=fast", "--deep")) == ["sim:fast", "simb:other", "sim:fast"]
    assert members(plan("--profile=thorough", "--count=2")) == ["sim:strong", "simb:other"]
    assert members(plan("--profile=fast", "--mixed")) == ["sim:fast"] * 3 + ["simb:other"] * 3
    assert len(members(plan("--profile=fast", "--preset=doc-review"))) == 4


@pytest.mark.behaviour("002-environment-variables")
def test_short_names_resolve_to_the_family_with_a_key(
    project: object, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")

    def plan(*arguments: str) -> list[str]:
        return members(council(*arguments, "validate", "src/app.py", "--dry-run", "--json").json)

    opus = "anthropic:claude-opus-5.5"
    assert plan() == ["anthropic:claude-sonnet-5.5", "openai:gpt-6.1-terra"]
    assert plan("--mixed") == ["anthropic:claude-sonnet-5.5"] * 3 + ["openai:gpt-5.3-codex"] * 3
    assert plan("--profile=thorough") == [opus, "openai:gpt-6.1-sol", opus]
    assert plan("--profile=fast") == ["anthropic:claude-haiku-5.5", "openai:gpt-6-luna"]
    monkeypatch.setenv("COUNCIL_CLAUDE_MODEL", "opus")
    assert plan("--profile=fast") == ["anthropic:claude-opus-5.5"] * 2


@pytest.mark.behaviour("002-bench-escalates", "002-bench-count-overrides", "002-bench-cap")
def test_perspectives_raise_the_count_and_count_and_cap_lower_it(judges: JudgesWorkspace, council: Terminal) -> None:
    def plan(*arguments: str) -> Json:
        return council(*arguments, "validate", "README.md", "--dry-run", "--json").json

    def seats(plan: Json) -> list[str]:
        return [seat["name"] for seat in plan["seats"]]

    fewer = plan("--preset=doc-review", "--count=2")
    assert (seats(fewer), warnings(fewer)) == (
        list(DOCS[:2]),
        ["perspectives dropped: completeness-auditor, audience-advocate"],
    )
    more = plan("--preset=security-audit", "--count=4")
    assert seats(more) == [*AUDIT, "judge-4"]
    capped = plan("--preset=doc-review", "--explorers=5")
    assert (len(seats(capped)), capped["agents"]) == (2, 12)
    assert warnings(capped) == [
        "4 judges scaled down to 2: at most 12 agents", "perspectives dropped: completeness-auditor, audience-advocate",
    ]  # fmt: skip
    both = plan("--preset=doc-review", "--perspectives=mine,yours")
    assert seats(both) == ["judge-mine", "judge-yours"]
    paired = plan("--mixed", "--preset=security-audit")
    assert seats(paired) == [f"{family}-{name}" for family in ("claude", "codex") for name in AUDIT]
    assert [seat["perspective"] for seat in paired["seats"]] == ["attacker", "defender", "compliance"] * 2
    assert [seat["vendor"] for seat in paired["seats"]] == ["anthropic"] * 3 + ["openai"] * 3


@pytest.mark.behaviour("issue-3-quick-warns")
def test_quick_warns_for_questions_that_need_more_than_one_judge(judges: JudgesWorkspace, council: Terminal) -> None:
    for words in ("the security of src/app.py", "docs/ARCHITECTURE.md"):
        (warning,) = warnings(council("--quick", "validate", words, "--dry-run", "--json").json)
        assert "needs more than one judge: drop --quick" in warning
    assert warnings(council("--quick", "validate", "src/app.py", "--dry-run", "--json").json) == []
    assert warnings(council("validate", "the security of src/app.py", "--dry-run", "--json").json) == []


SENTENCES = {
    "--quick --debate validate recent": "Error: --quick and --debate are incompatible.",
    "--debate brainstorm caching": "Error: --debate is only supported with validate mode.",
    "--debate research caching": "Error: --debate is only supported with validate mode.",
    "--technique=scamper validate recent": "Error: --technique is only applicable to brainstorm mode.",
    "--technique=reverse research caching": "Error: --technique is only applicable to brainstorm mode.",
    "--debate --count=1 validate recent": "--debate needs at least 2 judges, but --count=1 seats one: raise --count",
}


@pytest.mark.behaviour("002-error-quick-debate", "002-error-debate-validate", "002-error-technique-brainstorm")
def test_the_error_sentences_match_the_specification(judges: JudgesWorkspace, council: Terminal) -> None:
    for line, sentence in SENTENCES.items():
        as_json = council(*line.split(), "--json")
        assert (as_json.code, as_json.json) == (2, {"schema": "council.error/1", "error": sentence, "exit": 2}), line
        in_words = council(*line.split())
        said = sentence if sentence.startswith("Error: ") else f"council: {sentence}"
        assert (in_words.code, in_words.out, in_words.err) == (2, "", f"{said}\n"), line
    assert judges.runs() == []


def vendors(plan: Json) -> list[str]:
    return [seat["vendor"] for seat in plan["seats"]]


@pytest.fixture
def three_keys(project: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "not-a-key")


@pytest.mark.behaviour("00-members-spread-judges")
def test_judges_and_advisors_are_spread_over_the_vendors_that_have_a_key(three_keys: None, council: Terminal) -> None:
    def plan(*arguments: str) -> list[str]:
        return vendors(council(*arguments, "--dry-run", "--json").json)

    assert plan("validate", "recent") == ["anthropic", "openai"]
    assert plan("validate", "recent", "--deep") == ["anthropic", "openai", "google"]
    assert plan("--protocol", "advisors", "Tabs or spaces?") == ["anthropic", "openai", "google"]
    assert plan("validate", "recent", "-m", "haiku") == ["anthropic"] * 2


@pytest.mark.behaviour("20-mixed-families")
def test_mixed_takes_two_families_or_as_many_as_it_says(three_keys: None, council: Terminal) -> None:
    def plan(*arguments: str) -> list[str]:
        return vendors(council(*arguments, "--dry-run", "--json").json)

    families = ["anthropic"] * 3 + ["openai"] * 3
    assert plan("--mixed", "validate", "recent") == families
    assert plan("validate", "recent", "--mixed=2") == families
    assert plan("validate", "recent", "--mixed=3") == families + ["google"] * 3
    done = council("validate", "recent", "--mixed=4", "--dry-run", "--json")
    assert done.json["warnings"][0] == "--mixed=4 found 3 vendor families: the judges are of these."
    refused = council("validate", "recent", "--mixed=4", "--strict", "--dry-run")
    assert (refused.code, "needs 4 families, but 3 is available" in refused.err) == (2, True)


@pytest.mark.behaviour("20-mixed-families")
@pytest.mark.parametrize("value", ["1", "9", "all", ""])
def test_a_wrong_number_of_families_is_one_line(three_keys: None, council: Terminal, value: str) -> None:
    refused = council("validate", "recent", f"--mixed={value}", "--dry-run")
    assert (refused.code, refused.err.strip().splitlines()) == (
        2,
        [f"council: --mixed={value} is no number of vendor families: give 2 to 4"],
    )
