"""Planted secrets in every kind of target: none reaches the endpoint, the ledger or a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import Terminal
from tests.acceptance.judges.fake_judges import JudgesWorkspace, finding, look, opinion, written_up
from tests.packet.conftest import commit, git, write
from tests.packet.fake_secrets import SECRETS, secrets_for

Way = Callable[[Path, str, str], list[str]]  # the root, a name, a text with a secret → what to validate


def named(root: Path, name: str, text: str) -> list[str]:
    write(root, {f"src/{name}.py": text})
    return [f"src/{name}.py"]


def folder(root: Path, name: str, text: str) -> list[str]:
    write(root, {f"src/{name}/settings.py": text, f"src/{name}/other.py": "x = 1\n"})
    return [f"src/{name}"]


def diff(root: Path, name: str, text: str) -> list[str]:
    commit(root, {f"src/{name}.py": text})
    return ["HEAD~1..HEAD"]


def staged(root: Path, name: str, text: str) -> list[str]:
    git(root, "reset", "-q", "--hard")
    write(root, {f"src/{name}.py": text})
    git(root, "add", "-A")
    return ["staged"]


def renamed(root: Path, name: str, text: str) -> list[str]:
    commit(root, {f"src/{name}.py": f"a = 1\nb = 2\nc = 3\nd = 4\n{text}"})
    git(root, "mv", f"src/{name}.py", f"src/{name}_new.py")
    git(root, "commit", "-q", "-m", "rename")
    return ["HEAD~1..HEAD"]


def recent(root: Path, name: str, text: str) -> list[str]:
    git(root, "checkout", "-q", "-B", f"way-{name}", "main")
    commit(root, {f"src/{name}.py": text})
    return ["recent"]


WAYS: dict[str, Way] = {way.__name__: way for way in (named, folder, diff, staged, renamed, recent)}


def kept_bytes(judges: JudgesWorkspace) -> Iterator[tuple[str, bytes]]:
    """Yield everything sent or stored: requests, the database, reports."""
    for seen in judges.provider.log:
        yield f"request {seen.n}", seen.raw
    for place in (judges.data, judges.folder / ".agents" / "council"):
        for path in place.rglob("*") if place.exists() else ():
            if path.is_file():
                yield str(path), path.read_bytes()


def leaks(judges: JudgesWorkspace) -> list[tuple[str, str]]:
    plain = {kind: json.dumps(secret)[1:-1].encode() for kind, (_, secret) in SECRETS.items()}
    return [(where, kind) for where, held in kept_bytes(judges) for kind, secret in plain.items() if secret in held]


@pytest.mark.behaviour("issue-3-no-secret-leaves", "packet-refuses-secrets")
@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_refused_by_file_and_line_and_nothing_is_sent_or_kept(
    way: str, judges: JudgesWorkspace, council: Terminal
) -> None:
    assert len(SECRETS) >= 30
    for kind, (line, secret) in secrets_for(way, WAYS, len(WAYS) - 1):
        name = kind.replace("-", "_")
        words = WAYS[way](judges.folder, name, f"# {kind}\n{line}\n")
        done = council("validate", *words, "--json")
        assert done.code == 2, kind
        error = done.json["error"]
        assert secret not in done.out + done.err, kind
        assert f"src/{name}" in error and f":{6 if way == 'renamed' else 2} (" in error, (kind, error)
        assert "\n" not in error
    assert judges.provider.log == []
    assert judges.runs() == []
    assert leaks(judges) == []


@pytest.mark.behaviour("issue-3-no-secret-leaves", "packet-redact")
@pytest.mark.parametrize("way", WAYS)
def test_redact_sends_the_mask(way: str, judges: JudgesWorkspace, council: Terminal) -> None:
    text = "".join(f"{line}\n" for line, _ in SECRETS.values())
    words = WAYS[way](judges.folder, "all_of_them", text)
    done = council("validate", "--redact", *words, "--json")
    assert (done.code, done.json["verdict"]) == (0, "PASS")
    sent = b"".join(seen.raw for seen in judges.provider.log)
    assert sent.count(b"[redacted:") >= len(SECRETS) * 2
    assert leaks(judges) == []


@pytest.mark.behaviour("issue-3-no-secret-leaves", "packet-look")
def test_look_ups_of_explorers_are_masked_before_sending(judges: JudgesWorkspace, council: Terminal) -> None:
    files = {
        f"src/keys/{kind.replace('-', '_')}.py": f"needle = 1\n{line}\nneedle = 2\n"
        for kind, (line, _) in SECRETS.items()
    }
    commit(judges.folder, files | {".env": "WEAK=hunter2hunter2\n"})
    wishes = iter([list(files)[n : n + 9] for n in range(0, len(files), 9)])
    hops: dict[str, int] = {}

    def looking(seat: str) -> None:
        def wants(seen: object) -> None:
            hops[seat] = hops.get(seat, 0) + 1
            paths = next(wishes, [])
            wanted = look(".env", *paths, patterns=("needle", "hunter2", ".*")) if hops[seat] < 4 else written_up(seat)
            judges.judge_answers.said[f"look/{seat}"] = wanted

        judges.judge_answers.instead[f"look/{seat}"] = wants

    for seat in ("judge-1-1", "judge-1-2", "judge-2-1", "judge-2-2"):
        looking(seat)
    done = council("--explorers=2", "--explorer-model=sim:explorer", "validate", "src/app.py", "--json")
    assert done.code == 0, done.out
    shown = [seen.prompt for seen in judges.provider.log if len(seen.body["messages"]) > 2 and seen.model == "explorer"]
    assert len(shown) == 12
    assert {path for path in files if any(f'"path": "{path}"' in prompt for prompt in shown)} == set(files)
    assert all("[redacted:" in prompt for prompt in shown)
    assert leaks(judges) == []
    assert [where for where, held in kept_bytes(judges) if b"hunter2hunter2" in held] == []


@pytest.mark.behaviour("issue-3-no-secret-leaves", "packet-denied-names")
@pytest.mark.parametrize("way", ["named", "folder", "diff", "staged", "renamed", "work tree"])
def test_an_env_file_is_never_sent(way: str, judges: JudgesWorkspace, council: Terminal) -> None:
    root = judges.folder
    held = {"deploy/.env": "PLAIN=1\nWEAK=hunter2hunter2\n", "deploy/run.sh": "echo run\n"}
    commit(root, held) if way in ("diff", "renamed") else write(root, held)
    words = {"named": ["deploy/.env"], "folder": ["deploy"], "diff": ["HEAD~1..HEAD"], "work tree": []}.get(
        way, ["staged"]
    )
    if way == "renamed":
        git(root, "mv", "deploy/.env", "deploy/settings.txt")
    if way in ("staged", "renamed"):
        git(root, "add", "-A")
    done = council("validate", *words, "--json")
    assert (done.code, "deploy/.env:1 (secret file name)" in done.json["error"]) == (2, True)
    assert (judges.provider.log, judges.runs()) == ([], [])
    assert council("validate", "--redact", *words, "--json").code == 0
    left_out = council("validate", "--skip-secrets", *words, "--json")
    if way in ("named", "renamed"):  # nothing else was selected
        assert (left_out.code, "everything was left out" in left_out.json["error"]) == (2, True)
        return
    assert (left_out.code, left_out.json["verdict"]) == (3, "WARN")
    holes = [row["reason"] for row in left_out.json["degraded"] if row["state"] == "coverage_hole"]
    assert len(holes) == 1 and holes[0].endswith(": contains a secret")
    assert [where for where, held in kept_bytes(judges) if b"hunter2hunter2" in held] == []


@pytest.mark.behaviour("issue-3-report-scrubbed")
def test_a_secret_written_by_a_judge_is_not_in_any_report(judges: JudgesWorkspace, council: Terminal) -> None:
    """A judge may know a secret from elsewhere."""
    for n, (kind, (line, _)) in enumerate(SECRETS.items()):
        place = judges.judge_answers.said.setdefault(f"judge/judge-{1 + n % 2}", opinion("WARN"))
        place["findings"].append(finding("minor", "src/app.py:1", f"{kind}: {line}", fix=line))
    done = council("validate", "src/app.py", "--json")
    assert done.code == 0
    shown = {form: council("report", "--format", form).out for form in ("md", "json", "sarif", "junit", "github")}
    shown |= {str(path): path.read_text(encoding="utf-8") for path in judges.reports()} | {"stdout": done.out}
    assert [
        (form, kind) for form, text in shown.items() for kind, (_, secret) in SECRETS.items() if secret in text
    ] == []


@pytest.mark.behaviour("packet-asked-masked")
def test_a_secret_that_a_judge_repeats_is_masked_in_the_prompts_of_the_events(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    for kind, (line, _) in SECRETS.items():
        place = judges.judge_answers.said.setdefault("judge/judge-1", opinion("FAIL"))
        place["findings"].append(finding("minor", "src/app.py:1", f"{kind}: {line}", fix=line))
    assert council("validate", "--debate", "src/app.py", "--json").code in (0, 1)
    events = [json.loads(line) for line in council("runs", "replay", "--jsonl").out.splitlines()]
    second = [event for event in events if event["type"] == "asked" and event["key"].startswith("r2/")]
    assert second and all("[redacted:" in str(event["messages"]) for event in second)
    shown = json.dumps(events)
    assert [kind for kind, (_, secret) in SECRETS.items() if json.dumps(secret)[1:-1] in shown] == []


@pytest.mark.behaviour("issue-3-no-secret-leaves")
@pytest.mark.parametrize("task", ["brainstorm", "research"])
def test_brainstorm_and_research_use_the_same_secret_filter(
    task: str, judges: JudgesWorkspace, council: Terminal
) -> None:
    line, secret = SECRETS["aws"]
    write(judges.folder, {"src/auth/keys.py": f"{line}\n", "notes.md": f"{line}\n"})
    for words in ([task, "the auth system"], [task, "the content of notes.md"]):
        done = council(*words, "--json")
        assert (done.code, secret in done.out) == (2, False), words
        assert ".py:1" in done.out or "notes.md:1" in done.out
    asked = council("What should we do with notes.md?", "--json")
    assert (asked.code, "notes.md:1" in asked.out, secret in asked.out) == (2, True, False)
    assert (judges.provider.log, judges.runs()) == ([], [])


@pytest.mark.behaviour("issue-3-no-secret-leaves", "packet-stdin")
def test_stdin_uses_the_same_secret_filter(judges: JudgesWorkspace, council: Terminal) -> None:
    line, secret = SECRETS["stripe"]
    refused = judges.piped(f"# settings\n{line}\n", "validate", "-", "--json")
    assert (refused.code, secret in refused.out + refused.err) == (2, False)
    assert "stdin:2 (" in refused.json["error"]
    assert (judges.provider.log, judges.runs()) == ([], [])
    judged = judges.piped("diff --git a/x b/x\n+import os\n", "validate", "-", "--json")
    assert (judged.code, judged.json["verdict"], judged.json["target"]) == (0, "PASS", "-")
    assert judged.json["report_path"].endswith("-validate-stdin.md")
    assert "+import os" in judges.request("judge/judge-1").prompt


@pytest.mark.behaviour("packet-asked-masked")
def test_a_key_that_a_judge_repeats_is_masked_in_later_prompts_but_sent_as_it_is(judges: JudgesWorkspace) -> None:
    """The gate passes the file, because nothing in it shows that the word is a password. The judge's finding does."""
    key = "".join(["Xk29", "fLq8", "Zp4w"])
    write(judges.folder, {"src/door.txt": f"The door opens with {key}.\n"})
    told = finding(
        "critical", "src/door.txt:1", f'The file has the login password = "{key}".', quote=f"The door opens with {key}."
    )
    judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", told)
    done = judges.council("validate", "src/door.txt", "--deep", "--debate", "--json")
    run = done.json["run"]
    assert key not in done.out
    bodies = judges.rows("SELECT type, body FROM events WHERE run = ? ORDER BY seq", run)
    asked = [body for kind, body in bodies if kind == "asked" and json.loads(body)["phase"] == "r2"]
    assert len(asked) == 3 and not [body for body in asked if key in body]
    assert not [kind for kind, body in bodies if kind != "asked" and key in body]
    second_round = [seen for seen in judges.provider.log if judges.judge_answers.key(seen).startswith("r2/")]
    assert len(second_round) == 3 and all(key in seen.prompt for seen in second_round)
    assert judges.council("runs", "fsck", run).code == 0
    assert judges.council("runs", "replay", run).code == 0
