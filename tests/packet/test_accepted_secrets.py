"""The baseline of accepted secrets."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import time
import tomllib
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from council import packet
from council.errors import PacketRefused, UsageError
from council.packet.accepted_secrets import BASELINE_NAME, MAX_BASELINE_BYTES, MAX_ROWS, Baseline, FoundSecret
from council.packet.lookups import look
from council.settings.workspace_trust import TrustSource
from council.types import Packet

VALUE = "".join(["Copp", "er!99", "41xy"])
SETTING = f'password: "{VALUE}"\n'
OTHER_SETTING = SETTING.replace("Copp", "Zinc")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "sub").mkdir()
    for name in ("app.yaml", "other.yaml", "sub/app.yaml"):
        (tmp_path / name).write_text(SETTING, encoding="utf-8")
    return tmp_path


def build(
    target: str, root: Path, base: str | None = None, *, redact: bool = False, skip_secrets: bool = False
) -> Packet:
    """Build the packet as the user of this machine does."""
    trust = TrustSource(os.environ)
    return packet.build(target, root, task="validate", base=base, redact=redact, skip_secrets=skip_secrets, trust=trust)


def accept(root: Path, path: str) -> Baseline:
    with pytest.raises(PacketRefused) as refused:
        build(path, root)
    baseline = Baseline(root)
    assert baseline.add(refused.value.secrets, "a test") == 1
    return Baseline(root)


def clone(project: Path, folder: Path) -> Path:
    """Return a copy of a project in another folder, where nothing is trusted."""
    shutil.copytree(project, folder)
    return folder


def commit_all(root: Path, *, branch: str = "") -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@host.org"]
    if branch:
        subprocess.run([*git, "switch", "-qc", branch], cwd=root, check=True)
    subprocess.run([*git, "add", "."], cwd=root, check=True)
    subprocess.run([*git, "commit", "-qm", "a commit"], cwd=root, check=True)


@pytest.mark.behaviour("packet-accepted-secret")
def test_an_accepted_value_is_sent_in_its_file_only(project: Path) -> None:
    baseline = accept(project, "app.yaml")
    assert [file.content for file in build("app.yaml", project).files] == [SETTING]
    assert VALUE not in baseline.file.read_text(encoding="utf-8")
    for other in ("other.yaml", "sub/app.yaml"):
        with pytest.raises(PacketRefused):
            build(other, project)


@pytest.mark.behaviour("packet-accepted-secret")
def test_another_value_in_the_same_file_is_refused(project: Path) -> None:
    accept(project, "app.yaml")
    (project / "app.yaml").write_text(SETTING.replace("Copp", "Zinc"), encoding="utf-8")
    with pytest.raises(PacketRefused):
        build("app.yaml", project)


@pytest.mark.behaviour("packet-accepted-secret")
def test_the_baseline_of_the_repository_counts_in_its_folders(project: Path) -> None:
    baseline = accept(project / "sub", "app.yaml")
    assert baseline.file == project.resolve() / BASELINE_NAME
    assert [(row.path, row.reason) for row in baseline.listed.rows] == [("sub/app.yaml", "a test")]
    assert build("sub/app.yaml", project).files
    assert build("app.yaml", project / "sub").files


@pytest.mark.behaviour("packet-accepted-secret")
def test_an_accepted_value_is_sent_in_a_diff(project: Path) -> None:
    accept(project, "app.yaml")
    commit_all(project)
    (project / "app.yaml").write_text(SETTING + "port: 5432\n", encoding="utf-8")
    sent = build("changes", project, base="HEAD")
    assert VALUE in sent.diff
    assert sent.remarks[0] == "1 accepted secret in app.yaml is sent (line 1)"


@pytest.mark.behaviour("packet-accepted-secret")
def test_added_rows_keep_the_earlier_ones(project: Path) -> None:
    accept(project, "app.yaml")
    accept(project, "other.yaml")
    rows = tomllib.loads((project / BASELINE_NAME).read_text(encoding="utf-8"))["accepted"]
    assert [row["path"] for row in rows] == ["app.yaml", "other.yaml"]


@pytest.mark.behaviour("packet-accepted-secret")
@pytest.mark.parametrize("content", ["[[accepted]]\npath = 'a'\n", "accepted = 1\n", "not toml", "accepted = ['a']"])
def test_a_broken_baseline_is_one_clear_line(project: Path, content: str) -> None:
    (project / BASELINE_NAME).write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match="each \\[\\[accepted\\]\\] needs a hash and a path"):
        build("app.yaml", project)


@pytest.mark.behaviour("packet-accepted-secret")
def test_a_linked_baseline_is_refused(project: Path, tmp_path: Path) -> None:
    (project / BASELINE_NAME).symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="remove it"):
        build("app.yaml", project)


@pytest.mark.behaviour("packet-baseline-hostile")
@pytest.mark.parametrize(
    ("content", "where"),
    [
        (".".join("a" * 20_000) + " = 1\n", "line 1"),
        ("[" * 100_000, "line 1"),
        ("[[accepted]]\nhash = " + "[" * 5_000 + "\n", "line 2"),
        ('[[accepted]]\nhash = """a"""\n', "line 2"),
        ("[[accepted]]\nhash = 'a'\n", "line 2"),
        ('# fine\n\n[[accepted]]\npath = "a" b\n', "line 4"),
        ("[accepted]\n", "line 1"),
    ],
)  # fmt: skip
def test_a_hostile_baseline_is_one_clear_line_and_costs_no_memory(project: Path, content: str, where: str) -> None:
    (project / BASELINE_NAME).write_text(content, encoding="utf-8")
    tracemalloc.start()
    with pytest.raises(UsageError, match=f"{where} .* each \\[\\[accepted\\]\\] needs a hash and a path") as refused:
        build("app.yaml", project)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.behaviour("packet-baseline-hostile")
@pytest.mark.parametrize(
    "content",
    ['[[accepted]]\nhash = "' + "\\n" * 240_000 + '"\npath = "b"\n',
     '[[accepted]]\nhash = "' + "a" * 500_000 + '\n',
     '[[accepted]]\nhash = "a"\npath = "b"\n' * MAX_ROWS, "\n" * 500_000, "#\n" * 250_000],
    ids=["escapes", "no end", "rows", "blank lines", "comments"],
)  # fmt: skip
def test_a_baseline_within_its_limits_is_parsed_fast(project: Path, content: str) -> None:
    (project / BASELINE_NAME).write_text(content, encoding="utf-8")
    tracemalloc.start()
    started = time.process_time()
    with suppress(UsageError):
        _ = Baseline(project).listed.rows
    seconds, peak = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (seconds < 10, peak < 60_000_000) == (True, True), (seconds, peak)


@pytest.mark.behaviour("packet-baseline-hostile")
def test_a_baseline_has_limits(project: Path) -> None:
    file = project / BASELINE_NAME
    file.write_bytes(b"#" * (MAX_BASELINE_BYTES + 1))
    with pytest.raises(UsageError, match="over 512 KB"):
        _ = Baseline(project).listed.rows
    file.write_text('[[accepted]]\nhash = "a"\npath = "b"\n' * (MAX_ROWS + 1), encoding="utf-8")
    with pytest.raises(UsageError, match="over 2,000 accepted secrets"):
        _ = Baseline(project).listed.rows
    file.write_bytes(b'[[accepted]]\nhash = "\xff"\n')
    with pytest.raises(UsageError, match="is not valid UTF-8"):
        _ = Baseline(project).listed.rows


@pytest.mark.behaviour("packet-baseline-hostile")
def test_a_baseline_edited_by_hand_stays_readable(project: Path) -> None:
    text = (
        '# ours\r\n\r\n [[accepted]] # one\r\n\thash="aa"\r\n path = "a \\"b\\" \\u00e4.py" # here\r\nreason = ""\r\n'
    )
    (project / BASELINE_NAME).write_bytes(f'{text}[[accepted]]\nhash = "bb"\npath = "b"'.encode())
    assert Baseline(project).listed.rows == (("aa", 'a "b" ä.py', ""), ("bb", "b", ""))


@pytest.mark.behaviour("packet-baseline-write")
def test_a_reason_that_is_not_utf8_is_refused_and_the_file_stays(project: Path) -> None:
    baseline = accept(project, "app.yaml")
    before = baseline.file.read_bytes()
    with pytest.raises(UsageError, match=r'"bad \\udcff" is not valid UTF-8, nothing was written: ') as refused:
        baseline.add([FoundSecret("b.py", "b.py:1", "0" * 64)], "bad \udcff")
    assert len(str(refused.value).splitlines()) == 1
    assert baseline.file.read_bytes() == before


@pytest.mark.behaviour("packet-baseline-write")
@pytest.mark.parametrize(
    "reason", ["a \x7f b", 'quotes " and \\', "a\nb\tc\x00\x1b", "\u2028 \x85 ü 鍵 \U0001f511", "r" * 1_000]
)
def test_every_reason_can_be_read_again(project: Path, reason: str) -> None:
    Baseline(project).add([FoundSecret("b.py", "b.py:1", "0" * 64)], reason)
    assert [row.reason for row in Baseline(project).listed.rows] == [reason]
    assert b"\x7f" not in (project / BASELINE_NAME).read_bytes()


@pytest.mark.behaviour("packet-baseline-write")
@pytest.mark.parametrize("fault", ["write", "close", "replace"])
def test_a_full_disk_leaves_the_earlier_file(project: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    baseline = accept(project, "app.yaml")
    before, names = baseline.file.read_bytes(), sorted(project.iterdir())

    def fail(*_rest: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = {"write": "open_named_file", "close": "os.fsync", "replace": "Path.replace"}[fault]
    monkeypatch.setattr(f"council.settings.private_files.{target}", fail)
    with pytest.raises(UsageError, match=r'\.council-secrets\.toml" cannot be written \(No space left on device\): '):
        baseline.add([FoundSecret("b.py", "b.py:1", "0" * 64)], "a test")
    assert baseline.file.read_bytes() == before
    assert sorted(project.iterdir()) == names


@pytest.mark.behaviour("packet-baseline-write")
def test_no_file_is_written_that_would_be_too_large_to_read(project: Path) -> None:
    with pytest.raises(UsageError, match="nothing was written: "):
        Baseline(project).add([FoundSecret(f"{n}.py", "", "0" * 64) for n in range(MAX_ROWS + 1)], "a test")
    with pytest.raises(UsageError, match="nothing was written: "):
        Baseline(project).add([FoundSecret("b.py", "", "0" * 64)], "x" * (MAX_BASELINE_BYTES + 1))
    assert not (project / BASELINE_NAME).exists()


@pytest.mark.behaviour("packet-baseline-write")
def test_the_permissions_of_the_file_stay(project: Path) -> None:
    file = accept(project, "app.yaml").file
    file.chmod(0o600)
    accept(project, "other.yaml")
    assert file.stat().st_mode & 0o777 == 0o600


# Trust


@pytest.mark.behaviour("packet-baseline-trust")
def test_a_baseline_of_another_checkout_accepts_nothing_until_it_is_trusted(project: Path, tmp_path: Path) -> None:
    accept(project, "app.yaml")
    copy = clone(project, tmp_path / "clone")
    with pytest.raises(PacketRefused, match=r"secrets found at app\.yaml:1 \(") as refused:
        build("app.yaml", copy)
    message = str(refused.value)
    assert (
        "app.yaml:1: .council-secrets.toml accepts it, but you have not trusted that file: `council trust`" in message
    )
    assert len(message.splitlines()) == 1 and VALUE not in message
    Baseline(copy).listed.store(TrustSource(os.environ))
    assert build("app.yaml", copy).files


@pytest.mark.behaviour("packet-baseline-trust")
def test_a_row_that_was_added_by_others_does_not_count(project: Path) -> None:
    baseline = accept(project, "app.yaml")
    row = baseline.file.read_text(encoding="utf-8").partition("\n[[")[2].replace("app.yaml", "other.yaml")
    with baseline.file.open("a", encoding="utf-8") as file:
        file.write("\n[[" + row)
    assert build("app.yaml", project).files, "the row of the user still counts"
    with pytest.raises(PacketRefused, match="have not trusted that file"):
        build("other.yaml", project)
    accept(project, "sub/app.yaml")
    with pytest.raises(PacketRefused, match="have not trusted that file"):
        build("other.yaml", project)
    assert accept(project, "other.yaml").listed.rows, "naming it accepts it"
    assert build("other.yaml", project).files


@pytest.mark.behaviour("packet-baseline-trust")
def test_without_a_source_of_trust_nothing_is_accepted(project: Path) -> None:
    accept(project, "app.yaml")
    with pytest.raises(PacketRefused):
        packet.build("app.yaml", project, task="validate")


@pytest.mark.behaviour("packet-baseline-trust")
def test_the_variable_trusts_the_hash_which_is_the_same_in_every_clone(project: Path, tmp_path: Path) -> None:
    baseline = accept(project, "app.yaml")
    copy = clone(project, tmp_path / "clone")
    text = (copy / BASELINE_NAME).read_text(encoding="utf-8")
    (copy / BASELINE_NAME).write_text(text.replace("a test", "another reason"), encoding="utf-8")
    assert Baseline(copy).listed.digest == baseline.listed.digest
    trust = TrustSource({**os.environ, "COUNCIL_TRUST": baseline.listed.digest})
    assert packet.build("app.yaml", copy, task="validate", trust=trust).files
    with (copy / BASELINE_NAME).open("a", encoding="utf-8") as file:
        file.write('[[accepted]]\nhash = "0"\npath = "b"\n')
    with pytest.raises(PacketRefused):
        packet.build("app.yaml", copy, task="validate", trust=trust)


@pytest.mark.behaviour("packet-baseline-trust")
def test_trust_for_one_run_is_not_stored_with_what_is_accepted(project: Path, tmp_path: Path) -> None:
    accept(project, "app.yaml")
    copy = clone(project, tmp_path / "clone")
    trust = TrustSource(os.environ, {"trust": True})
    assert packet.build("app.yaml", copy, task="validate", trust=trust).files
    with pytest.raises(PacketRefused) as refused:
        build("other.yaml", copy)
    assert Baseline(copy, trust=trust).add(refused.value.secrets, "a test") == 1
    with pytest.raises(PacketRefused):
        build("app.yaml", copy)


@pytest.mark.behaviour("packet-baseline-trust")
@pytest.mark.parametrize("redact", [True, False])
def test_a_value_that_is_masked_or_left_out_without_trust_is_named(project: Path, tmp_path: Path, redact: bool) -> None:
    accept(project, "app.yaml")
    copy = clone(project, tmp_path / "clone")
    sent = build(".", copy, redact=redact, skip_secrets=not redact)
    assert VALUE not in str(sent.files)
    assert [one for one in sent.remarks if one.startswith("app.yaml:1: .council-secrets.toml accepts it, but")]


@pytest.mark.behaviour("packet-baseline-trust")
def test_look_ups_accept_nothing(project: Path) -> None:
    accept(project, "app.yaml")
    (row,) = look(project, {"files": ["app.yaml"]})
    assert "secret found at app.yaml:1" in row["why"]
    (row,) = look(project, {"files": ["app.yaml"]}, redact=True)
    assert VALUE not in row["content"]


# Remarks


@pytest.mark.behaviour("packet-accepted-named")
def test_accepted_secrets_that_are_sent_are_named_without_their_values(project: Path) -> None:
    (project / "app.yaml").write_text(f"# one\n{SETTING}# two\n{SETTING}{OTHER_SETTING}", encoding="utf-8")
    with pytest.raises(PacketRefused) as refused:
        build("app.yaml", project)
    assert Baseline(project).add(refused.value.secrets, "a test") == 2
    sent = build("app.yaml", project)
    assert sent.remarks == ("2 accepted secrets in app.yaml are sent (lines 2, 4, 5)",)
    (project / "plain.py").write_text("x = 1\n", encoding="utf-8")
    assert build("plain.py", project).remarks == ()


@pytest.mark.behaviour("packet-accepted-named")
def test_an_accepted_secret_of_a_file_that_is_left_out_is_not_named(project: Path) -> None:
    accept(project, "app.yaml")
    (project / "app.yaml").write_text("# a comment\n" * 4_000 + SETTING, encoding="utf-8")
    sent = packet.build("app.yaml", project, task="validate", tokens=2_000, trust=TrustSource(os.environ))
    assert sent.holes and sent.remarks == ()


@pytest.mark.behaviour("packet-accepted-named")
def test_two_accepted_secrets_of_one_line_are_two(project: Path) -> None:
    text = f"{SETTING.strip()} # {OTHER_SETTING}"
    (project / "app.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(PacketRefused) as refused:
        build("app.yaml", project)
    assert Baseline(project).add(refused.value.secrets, "a test") == 2
    assert build("app.yaml", project).remarks == ("2 accepted secrets in app.yaml are sent (line 1)",)


@pytest.mark.behaviour("packet-accepted-named")
def test_an_accepted_secret_of_the_specification_is_named(project: Path) -> None:
    accept(project, "app.yaml")
    (project / "plain.py").write_text("x = 1\n", encoding="utf-8")
    sent = packet.build("plain.py", project, task="validate", spec="app.yaml", trust=TrustSource(os.environ))
    assert (VALUE in sent.spec, sent.remarks) == (True, ("1 accepted secret in app.yaml is sent (line 1)",))


# The base revision


@pytest.mark.behaviour("packet-baseline-base")
def test_a_change_cannot_accept_its_own_secrets(project: Path) -> None:
    accept(project, "app.yaml")
    commit_all(project)
    commit_all_with = {"app.yaml": SETTING + "port: 1\n", "new.yaml": SETTING}
    for name, text in commit_all_with.items():
        (project / name).write_text(text, encoding="utf-8")
    accept(project, "new.yaml")
    commit_all(project, branch="feature")
    with pytest.raises(PacketRefused, match=r"secrets found at new\.yaml:1 \([a-z ]+\): ") as refused:
        build("changes", project, base="HEAD~1")
    assert 'which counts with --base once "HEAD~1" has it' in refused.value.message_for("cli")
    sent = build("changes", project, base="HEAD~1", skip_secrets=True)
    assert "1 accepted secret in app.yaml is sent (line 1)" in sent.remarks
    assert build("changes", project, base="HEAD").note


@pytest.mark.behaviour("packet-baseline-base")
def test_the_file_of_the_base_revision_counts_in_folders(project: Path) -> None:
    accept(project / "sub", "app.yaml")
    commit_all(project)
    (project / "sub" / "app.yaml").write_text(SETTING + "port: 1\n", encoding="utf-8")
    sent = build("changes", project / "sub", base="HEAD")
    assert (VALUE in sent.diff, sent.remarks[0]) == (True, "1 accepted secret in app.yaml is sent (line 1)")


@pytest.mark.behaviour("packet-baseline-base")
def test_a_change_cannot_take_rows_away_either(project: Path) -> None:
    accept(project, "app.yaml")
    commit_all(project)
    (project / "app.yaml").write_text(SETTING + "port: 1\n", encoding="utf-8")
    (project / BASELINE_NAME).write_text("not toml", encoding="utf-8")
    assert VALUE in build("changes", project, base="HEAD").diff
    (project / BASELINE_NAME).unlink()
    assert VALUE in build("changes", project, base="HEAD").diff


@pytest.mark.behaviour("packet-baseline-base")
def test_the_file_of_the_base_revision_needs_trust_and_has_limits(project: Path, tmp_path: Path) -> None:
    accept(project, "app.yaml")
    commit_all(project)
    copy = clone(project, tmp_path / "clone")
    (copy / "app.yaml").write_text(SETTING + "port: 1\n", encoding="utf-8")
    with pytest.raises(
        PacketRefused, match=r'toml of "HEAD" accepts it, but you have not trusted it: check "HEAD" out'
    ):
        build("changes", copy, base="HEAD")
    for content, words in (
        ("a.b = 1\n", 'HEAD:.council-secrets.toml" line 1 is'),
        ("#" * (MAX_BASELINE_BYTES + 1), "over 512 KB"),
    ):
        (copy / BASELINE_NAME).write_text(content, encoding="utf-8")
        commit_all(copy)
        (copy / "app.yaml").write_text(SETTING + f"port: {len(content)}\n", encoding="utf-8")
        with pytest.raises(UsageError, match=words):
            build("changes", copy, base="HEAD")
    (copy / BASELINE_NAME).unlink()
    (copy / BASELINE_NAME).symlink_to("app.yaml")
    commit_all(copy)
    (copy / "app.yaml").write_text(SETTING, encoding="utf-8")
    with pytest.raises(PacketRefused):
        build("changes", copy, base="HEAD")
