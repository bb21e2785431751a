"""Every planted secret through every input: refused with its location and never shown; masked or left out on
request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council.errors import PacketRefused, UsageError
from council.events import dump_deeply
from council.packet import build
from council.packet.lookups import look
from council.planning.plan_object import make_packet_receipt
from council.types import Packet
from tests.packet.conftest import commit, git, write
from tests.packet.fake_secrets import SECRETS, pem, secrets_for

Plant = Callable[[Path, str], tuple[str, dict[str, object]]]  # returns the target and more arguments for build


def _file(root: Path, text: str) -> tuple[str, dict[str, object]]:
    write(root, {"src/config.py": text})
    return "src/config.py", {}


def _folder(root: Path, text: str) -> tuple[str, dict[str, object]]:
    write(root, {"src/config.py": text})
    return "src", {}


def _glob(root: Path, text: str) -> tuple[str, dict[str, object]]:
    write(root, {"src/config.py": text})
    return "src/**/*.py", {}


def _diff(root: Path, text: str) -> tuple[str, dict[str, object]]:
    commit(root, {"src/config.py": text})
    return "HEAD~1..HEAD", {}


def _removed(root: Path, text: str) -> tuple[str, dict[str, object]]:
    commit(root, {"src/config.py": f"a = 1\n{text}b = 2\n"})
    commit(root, {"src/config.py": "a = 1\nb = 2\n"})
    return "HEAD~1..HEAD", {}


def _context(root: Path, text: str) -> tuple[str, dict[str, object]]:
    commit(root, {"src/config.py": f"a = 1\n{text}"})
    commit(root, {"src/config.py": f"a = 2\n{text}"})
    return "HEAD~1..HEAD", {}


def _recent(root: Path, text: str) -> tuple[str, dict[str, object]]:
    commit(root, {"src/config.py": text})
    return "recent", {}


def _staged(root: Path, text: str) -> tuple[str, dict[str, object]]:
    write(root, {"src/config.py": text})
    git(root, "add", "-A")
    write(root, {"src/config.py": "taken_back = 1\n"})  # the staged version is sent
    return "staged", {}


def _renamed(root: Path, text: str) -> tuple[str, dict[str, object]]:
    commit(root, {"src/old.py": f"a = 1\nb = 2\nc = 3\nd = 4\n{text}"})
    git(root, "mv", "src/old.py", "src/new.py")
    commit(root, {})
    return "HEAD~1..HEAD", {}


def _work_tree(root: Path, text: str) -> tuple[str, dict[str, object]]:
    write(root, {"src/config.py": text})
    return "", {}


def _base(root: Path, text: str) -> tuple[str, dict[str, object]]:
    git(root, "checkout", "-q", "-b", "topic")
    commit(root, {"src/config.py": text})
    return "", {"base": "main"}


def _stdin(root: Path, text: str) -> tuple[str, dict[str, object]]:
    return "-", {"stdin": text}


def _word(root: Path, text: str) -> tuple[str, dict[str, object]]:
    write(root, {"src/billing/config.py": text})
    return "the billing system", {}


def _spec(root: Path, text: str) -> tuple[str, dict[str, object]]:
    write(root, {"docs/spec.md": text})
    return "src/app.py", {"spec": "docs/spec.md"}


def _decision(root: Path, text: str) -> tuple[str, dict[str, object]]:
    return "src/app.py", {"decisions": ["Use JWT", text]}


def _environment(root: Path, text: str) -> tuple[str, dict[str, object]]:
    write(root, {".agents/ao/environment.json": text})
    return "src/app.py", {}


WAYS: dict[str, Plant] = {
    plant.__name__.strip("_"): plant
    for plant in (
        _file, _folder, _glob, _diff, _removed, _context, _recent, _staged, _renamed, _work_tree, _base, _stdin, _word, _spec,
        _decision, _environment,
    )
}  # fmt: skip


def everything(packet: Packet) -> str:
    return json.dumps([dump_deeply(packet), make_packet_receipt(packet)], ensure_ascii=False)


def build_planted(plant: Plant, root: Path, text: str, **policy: bool) -> Packet:
    target, given = plant(root, text)
    return build(target, root, task="validate", **given, **policy)  # type: ignore[arg-type]


def secret_part(secret: str) -> str:
    return json.dumps(secret)[1:-1]


SHARE = 4  # one secret in four for each way except the first
COMMITTING = {"diff", "removed", "context", "recent", "staged", "renamed", "base"}


def test_the_other_inputs_together_get_every_secret() -> None:
    assert {kind for way in WAYS if way != "file" for kind, _ in secrets_for(way, WAYS, SHARE)} == set(SECRETS)


@pytest.mark.behaviour("packet-refuses-secrets")
@pytest.mark.parametrize("way", WAYS)
def test_secret_is_refused_with_its_location_and_never_printed(way: str, repo: Path) -> None:
    start = git(repo, "rev-parse", "HEAD").strip()
    for kind, (line, secret) in secrets_for(way, WAYS, SHARE):
        with pytest.raises(PacketRefused) as refused:
            build_planted(WAYS[way], repo, f"# {kind}\n{line}\n")
        assert secret not in str(refused.value), kind
        assert ":" in str(refused.value) and "\n" not in str(refused.value)
        if way in COMMITTING:  # the others replace the text
            git(repo, "checkout", "-q", "-f", "-B", "main", start)
            git(repo, "clean", "-q", "-f", "-d")
        git(repo, "branch", "-q", "-D", "topic") if way == "base" else None


@pytest.mark.behaviour("packet-redact")
@pytest.mark.parametrize("way", WAYS)
def test_redact_replaces_secrets_with_masks(way: str, repo: Path) -> None:
    text = "".join(f"{line}\n" for line, _ in SECRETS.values())
    packet = build_planted(WAYS[way], repo, text, redact=True)
    sent = everything(packet)
    assert [kind for kind, (_, secret) in SECRETS.items() if secret_part(secret) in sent] == []
    assert "[redacted:" in sent
    assert packet.masked >= len(SECRETS)
    assert packet.holes == ()


@pytest.mark.behaviour("packet-skip-secrets")
@pytest.mark.parametrize("way", WAYS)
def test_skip_secrets_leaves_a_hole(way: str, repo: Path) -> None:
    text = "".join(f"{line}\n" for line, _ in SECRETS.values())
    packet = build_planted(WAYS[way], repo, text, skip_secrets=True)
    sent = everything(packet)
    assert [kind for kind, (_, secret) in SECRETS.items() if secret_part(secret) in sent] == []
    assert len(packet.holes) == 1


@pytest.mark.behaviour("packet-refuses-secrets")
@pytest.mark.parametrize(
    ("way", "place"),
    [("file", "src/config.py:3"), ("folder", "src/config.py:3"), ("diff", "src/config.py:3"), ("context", "src/config.py:4"),
     ("removed", "src/config.py:4, a removed line"), ("staged", "src/config.py:3"), ("stdin", "stdin:3"), ("decision", "decision 2:3")],
)  # fmt: skip
def test_location_is_the_line_of_the_secret(way: str, place: str, repo: Path) -> None:
    line, _ = SECRETS["github"]
    with pytest.raises(PacketRefused) as refused:
        build_planted(WAYS[way], repo, f"# one\n# two\n{line}\n")
    assert f"at {place} (GitHub token)" in str(refused.value)


@pytest.mark.behaviour("packet-look")
@pytest.mark.parametrize("kind", SECRETS)
def test_a_look_up_shows_no_secret(kind: str, repo: Path) -> None:
    line, secret = SECRETS[kind]
    write(repo, {"src/config.py": f"needle = 1\n{line}\nneedle = 2\n"})
    wanted = {"files": [{"path": "src/config.py", "from": 1, "to": 1}, "src/config.py"], "patterns": ["needle", "."]}
    told = json.dumps(look(repo, wanted), ensure_ascii=False)
    assert secret_part(secret) not in told
    assert "src/config.py:2" in told
    masks = json.dumps(look(repo, wanted, redact=True), ensure_ascii=False)
    assert secret_part(secret) not in masks
    assert "needle = 2" in masks


DENIED = (
    ".env", ".env.local", ".env.production", "config/.envrc", "server.pem", "id_rsa", "keys/id_ed25519", "id_work", ".npmrc", ".netrc",
    "prod.tfvars", "kubeconfig", "credentials", "credentials.json", ".aws/config", ".kube/config", ".git-credentials", ".zsh_history",
)  # fmt: skip


def denied_cases() -> list[tuple[str, str]]:
    """Return every name with each way to send a file, and with half of the ways through git: all use one list of
    names.
    """
    by_git = [("diff", "renamed"), ("staged", "deleted")]
    return [(name, way) for n, name in enumerate(DENIED) for way in ("named", "folder", "look", *by_git[n % 2])]


@pytest.mark.behaviour("packet-denied-names")
@pytest.mark.parametrize(("name", "way"), denied_cases())
def test_file_with_a_secret_name_is_refused(name: str, way: str, repo: Path) -> None:
    if way in ("renamed", "deleted"):
        commit(repo, {name: "weak=hunter2\nplain=1\nmore=2\n"})
    else:
        write(repo, {name: "weak=hunter2\nplain=1\nmore=2\n"})
    if way == "renamed":
        git(repo, "mv", name, "env.txt")
    if way == "deleted":
        git(repo, "rm", "-q", name)
    if way in ("staged", "renamed", "deleted"):
        git(repo, "add", "-A")
    if way == "diff":
        commit(repo, {})
    target: str | Sequence[str] = {"named": [name], "folder": ".", "diff": "HEAD~1..HEAD"}.get(way, "staged")
    if way == "look":
        assert "hunter2" not in json.dumps(look(repo, {"files": [name], "patterns": ["weak"]}))
        return
    with pytest.raises(PacketRefused) as refused:
        build(target, repo, task="validate")
    assert f"{name}:1 (secret file name)" in str(refused.value)
    assert "hunter2" not in everything(build(target, repo, task="validate", redact=True))
    left_out = build(target, repo, task="validate", skip_secrets=True)
    assert "hunter2" not in everything(left_out)
    assert len(left_out.holes) == 1


@pytest.mark.behaviour("packet-denied-names")
def test_redacted_secret_file_keeps_its_setting_names(repo: Path) -> None:
    write(repo, {".env": f"# db: hunter2\nexport DB_HOST = db\nDB_PASSWORD={'hunter2'}\n\nhunter2\n"})
    packet = build([".env"], repo, task="validate", redact=True)
    assert packet.files[0].content == (
        "[redacted:value]\nexport DB_HOST = [redacted:value]\nDB_PASSWORD=[redacted:value]\n\n[redacted:value]\n"
    )
    assert packet.masked == 4


@pytest.mark.behaviour("packet-denied-names")
@pytest.mark.parametrize(
    "name", ["src/credentials.py", "src/id_map.ts", ".env.example", "docs/credentials.md", "src/environment.py"]
)
def test_source_files_and_templates_with_secret_names_are_included(name: str, repo: Path) -> None:
    write(repo, {name: "plain = 1\n"})
    assert [file.path for file in build([name], repo, task="validate").files] == [name]
    write(repo, {name: f"{SECRETS['github'][0]}\n"})
    with pytest.raises(PacketRefused):
        build([name], repo, task="validate")


def test_piped_diff_is_checked_for_secret_file_names(repo: Path) -> None:
    commit(repo, {".env": "weak=hunter2\n", "src/app.py": "x = 2\n"})
    piped = git(repo, "show")
    with pytest.raises(PacketRefused, match=r"stdin:\d+ \(\.env: secret file name\)"):
        build("-", repo, task="validate", stdin=piped)
    masked = everything(build("-", repo, task="validate", stdin=piped, redact=True))
    assert "hunter2" not in masked and "x = 2" in masked
    assert "hunter2" not in everything(build("-", repo, task="validate", stdin=piped, skip_secrets=True))


@pytest.mark.behaviour("packet-redact")
def test_the_middle_of_a_key_in_a_hunk_is_masked_too(repo: Path) -> None:
    lines = pem().split("\n")
    commit(repo, {"src/key.txt": pem() + "\n"})
    lines[5] = lines[5][::-1]
    commit(repo, {"src/key.txt": "\n".join([*lines, ""])})
    sent = everything(build("HEAD~1..HEAD", repo, task="validate", redact=True))
    assert not [line for line in pem().split("\n")[1:-1] + lines[1:-1] if line in sent]


def test_secret_in_a_file_name_is_refused(repo: Path) -> None:
    _, secret = SECRETS["github"]
    commit(repo, {f"notes/{secret}.md": "plain\n"})
    with pytest.raises(PacketRefused) as refused:
        build("recent", repo, task="validate")
    assert secret not in str(refused.value)
    for policy in ({"redact": True}, {"skip_secrets": True}):
        assert secret not in everything(build("recent", repo, task="validate", **policy))  # type: ignore[arg-type]


def test_redact_and_skip_secrets_are_exclusive(repo: Path) -> None:
    with pytest.raises(UsageError, match="choose one"):
        build("src", repo, task="validate", redact=True, skip_secrets=True)


@pytest.mark.behaviour("packet-refuses-secrets")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.binary(max_size=400), after=st.binary(max_size=400), kind=st.sampled_from(sorted(SECRETS)),
    redact=st.booleans(), skip=st.booleans(),
)  # fmt: skip
def test_planted_token_is_found_in_any_context(
    root: Path, before: bytes, after: bytes, kind: str, redact: bool, skip: bool
) -> None:
    line, secret = SECRETS[kind]
    (root / "a.py").write_bytes(before + b"\n" + line.encode() + b"\n" + after)
    try:
        packet = build(["a.py"], root, task="validate", redact=redact and not skip, skip_secrets=skip)
    except UsageError as error:
        assert secret not in str(error)
    else:
        assert secret_part(secret) not in everything(packet)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.one_of(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=4)),
    task=st.sampled_from(["ask", "validate"]),
)
def test_any_words_give_a_packet_or_a_one_line_error(repo: Path, words: str | list[str], task: str) -> None:
    try:
        build(words, repo, task=task)
    except UsageError as error:
        assert "\n" not in str(error)
