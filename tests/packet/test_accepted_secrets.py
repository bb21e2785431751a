"""The baseline of accepted secrets."""

from __future__ import annotations

import errno
import os
import subprocess
import tomllib
import tracemalloc
from pathlib import Path

import pytest

from council import packet
from council.errors import PacketRefused, UsageError
from council.packet.accepted_secrets import BASELINE_NAME, MAX_BASELINE_BYTES, MAX_ROWS, Baseline, FoundSecret

VALUE = "".join(["Copp", "er!99", "41xy"])
SETTING = f'password: "{VALUE}"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "sub").mkdir()
    for name in ("app.yaml", "other.yaml", "sub/app.yaml"):
        (tmp_path / name).write_text(SETTING, encoding="utf-8")
    return tmp_path


def accept(root: Path, path: str) -> Baseline:
    with pytest.raises(PacketRefused) as refused:
        packet.build(path, root, task="validate")
    baseline = Baseline(root)
    assert baseline.add(refused.value.secrets, "a test") == 1
    return Baseline(root)


@pytest.mark.behaviour("packet-accepted-secret")
def test_an_accepted_value_is_sent_in_its_file_only(project: Path) -> None:
    baseline = accept(project, "app.yaml")
    assert [file.content for file in packet.build("app.yaml", project, task="validate").files] == [SETTING]
    assert VALUE not in baseline.file.read_text(encoding="utf-8")
    for other in ("other.yaml", "sub/app.yaml"):
        with pytest.raises(PacketRefused):
            packet.build(other, project, task="validate")


@pytest.mark.behaviour("packet-accepted-secret")
def test_another_value_in_the_same_file_is_refused(project: Path) -> None:
    accept(project, "app.yaml")
    (project / "app.yaml").write_text(SETTING.replace("Copp", "Zinc"), encoding="utf-8")
    with pytest.raises(PacketRefused):
        packet.build("app.yaml", project, task="validate")


@pytest.mark.behaviour("packet-accepted-secret")
def test_the_baseline_of_the_repository_counts_in_its_folders(project: Path) -> None:
    baseline = accept(project / "sub", "app.yaml")
    assert baseline.file == project.resolve() / BASELINE_NAME
    assert [(row.path, row.reason) for row in baseline.rows] == [("sub/app.yaml", "a test")]
    assert packet.build("sub/app.yaml", project, task="validate").files
    assert packet.build("app.yaml", project / "sub", task="validate").files


@pytest.mark.behaviour("packet-accepted-secret")
def test_an_accepted_value_is_sent_in_a_diff(project: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@host.org"]
    subprocess.run([*git, "add", "."], cwd=project, check=True)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=project, check=True)
    (project / "app.yaml").write_text(SETTING + "port: 5432\n", encoding="utf-8")
    accept(project, "app.yaml")
    assert VALUE in packet.build("changes", project, task="validate", base="HEAD").diff


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
        packet.build("app.yaml", project, task="validate")


@pytest.mark.behaviour("packet-accepted-secret")
def test_a_linked_baseline_is_refused(project: Path, tmp_path: Path) -> None:
    (project / BASELINE_NAME).symlink_to("/etc/hostname")
    with pytest.raises(UsageError, match="remove it"):
        packet.build("app.yaml", project, task="validate")


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
        packet.build("app.yaml", project, task="validate")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.behaviour("packet-baseline-hostile")
def test_a_baseline_has_limits(project: Path) -> None:
    file = project / BASELINE_NAME
    file.write_bytes(b"#" * (MAX_BASELINE_BYTES + 1))
    with pytest.raises(UsageError, match="over 512 KB"):
        Baseline(project)
    file.write_text('[[accepted]]\nhash = "a"\npath = "b"\n' * (MAX_ROWS + 1), encoding="utf-8")
    with pytest.raises(UsageError, match="over 2,000 accepted secrets"):
        Baseline(project)
    file.write_bytes(b'[[accepted]]\nhash = "\xff"\n')
    with pytest.raises(UsageError, match="is not valid UTF-8"):
        Baseline(project)


@pytest.mark.behaviour("packet-baseline-hostile")
def test_a_baseline_edited_by_hand_stays_readable(project: Path) -> None:
    text = '# ours\r\n\r\n [[accepted]] # one\r\n\thash="aa"\r\n path = "a \\"b\\" \\u00e4.py" # here\r\nreason = ""\r\n'
    (project / BASELINE_NAME).write_bytes(f'{text}[[accepted]]\nhash = "bb"\npath = "b"'.encode())
    assert Baseline(project).rows == (("aa", 'a "b" ä.py', ""), ("bb", "b", ""))


@pytest.mark.behaviour("packet-baseline-write")
def test_a_reason_that_is_not_utf8_is_refused_and_the_file_stays(project: Path) -> None:
    baseline = accept(project, "app.yaml")
    before = baseline.file.read_bytes()
    with pytest.raises(UsageError, match=r'"bad \\udcff" is not valid UTF-8, nothing was written: ') as refused:
        baseline.add([FoundSecret("b.py", "b.py:1", "0" * 64)], "bad \udcff")
    assert len(str(refused.value).splitlines()) == 1
    assert baseline.file.read_bytes() == before


@pytest.mark.behaviour("packet-baseline-write")
@pytest.mark.parametrize("reason", ["a \x7f b", 'quotes " and \\', "a\nb\tc\x00\x1b", "\u2028 \x85 ü 鍵 \U0001f511", "r" * 1_000])
def test_every_reason_can_be_read_again(project: Path, reason: str) -> None:
    Baseline(project).add([FoundSecret("b.py", "b.py:1", "0" * 64)], reason)
    assert [row.reason for row in Baseline(project).rows] == [reason]
    assert b"\x7f" not in (project / BASELINE_NAME).read_bytes()


@pytest.mark.behaviour("packet-baseline-write")
@pytest.mark.parametrize("fault", ["write", "close", "replace"])
def test_a_full_disk_leaves_the_earlier_file(project: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    baseline = accept(project, "app.yaml")
    before, names = baseline.file.read_bytes(), sorted(os.listdir(project))

    def fail(*_rest: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = {"write": "open_named_file", "close": "os.fsync", "replace": "os.replace"}[fault]
    monkeypatch.setattr(f"council.packet.accepted_secrets.{target}", fail)
    with pytest.raises(UsageError, match=r'\.council-secrets\.toml" cannot be written \(No space left on device\): '):
        baseline.add([FoundSecret("b.py", "b.py:1", "0" * 64)], "a test")
    assert baseline.file.read_bytes() == before
    assert sorted(os.listdir(project)) == names


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
