"""Permissions of everything that Council creates, for each command as the first one in an empty home, with three
umasks.
"""

from __future__ import annotations

import json
import signal
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from council.doors.cli.management import COMMANDS
from tests.acceptance.helpers import EVERYONE, QUESTION, FixedAnswers, Result
from tests.acceptance.judges.fake_judges import JudgeAnswers
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.acceptance.workers import wait_for_worker_exit
from tests.fake_provider import FakeProvider
from tests.fork_server import Process

UMASKS = (0o000, 0o022, 0o077)
ASK = ("--protocol", "triad", QUESTION)
KEYRING = """
import json, os, pathlib
from keyring.backend import KeyringBackend

class Ring(KeyringBackend):
    priority = 1
    place = pathlib.Path(os.environ["RING_FILE"])

    def get_password(self, service, username):
        return self.place.read_text() if self.place.exists() else None

    def set_password(self, service, username, password):
        self.place.write_text(password)

    def delete_password(self, service, username):
        self.place.unlink()
"""


@dataclass(frozen=True)
class First:
    """A first command. `ready` is what a server prints, or a terminal shows, when it can be stopped or typed into."""

    arguments: tuple[str, ...]
    stdin: str | None = None
    ready: str = ""
    typed: tuple[str, ...] = ()  # at a terminal
    exits: tuple[int, ...] = (0,)
    writes: tuple[str, ...] = ()  # patterns of what it has to leave in the home or the project


HELLO = json.dumps(
    {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }
)  # fmt: skip
DATABASE = "home/.local/share/council/council.db"
REPORT = "home/.local/share/council/reports/*.md"
USER_FILE = "home/.config/council/config.toml"
NO_RUN = (2,)
# For each command of the table: its forms that may write something. "" is a question.
FORMS: dict[str, tuple[First, ...]] = {
    "": (
        First(ASK, writes=(DATABASE, REPORT)),
        First(("validate", "notes.md", "--quick"), exits=(0, 3), writes=(".agents/council/*.md", ".agents/council/.gitignore")),
        First(("--detach", *ASK), writes=(DATABASE, REPORT, "home/.local/share/council/worker.l*")),
        First(("--report-dir", "made/reports", *ASK), writes=("made/reports/*.md",)),
        First(("-o", "answer.md", *ASK), writes=("answer.md",)),
        First(("--dry-run", *ASK)),
    ),
    "ask": (First(("ask", *ASK), writes=(DATABASE,)),),
    "runs": (First(("runs",)), First(("runs", "fsck")), First(("runs", "export", "-o", "run.json"), exits=NO_RUN)),
    "replay": (First(("replay",), exits=NO_RUN),),
    "list": (First(("list",)), First(("list", "models"))),
    "report": (First(("report",), exits=NO_RUN),),
    "gate": (First(("gate",), exits=NO_RUN),),
    "spend": (First(("spend",)),),
    "resume": (First(("resume",), exits=NO_RUN),),
    "watch": (First(("watch",), exits=NO_RUN),),
    "cancel": (First(("cancel", "abcdefgh"), exits=NO_RUN),),
    "fork": (First(("fork",), exits=NO_RUN),),
    "chat": (
        First(("chat", "--protocol", "triad"), ready="council> ", typed=(QUESTION, "/quit"), writes=("home/.local/share/council/chat_history",)),
        First(("chat", "--protocol", "triad"), stdin=f"{QUESTION}\n", writes=(DATABASE,)),
    ),
    "batch": (First(("batch", "rows.jsonl", "--protocol", "triad", "-o", "out.jsonl"), writes=("out.jsonl", DATABASE)),),
    "eval": (First(("eval", "set.jsonl", "--arms", "single", "--no-plots"), writes=("set.eval/answers.jsonl", "home/.local/share/council/evals/*.json")),),
    "outcome": (First(("outcome", "--correct"), exits=NO_RUN),),
    "advise": (First(("advise", QUESTION)),),
    "packet": (First(("packet", QUESTION, "notes.md")),),
    "presets": (First(("presets",)),),
    "rosters": (First(("rosters",)),),
    "protocols": (First(("protocols",)),),
    "models": (First(("models",)),),
    "doctor": (First(("doctor",)), First(("doctor", "--deep"), exits=(0, 4))),
    "keys": (First(("keys",)), First(("keys", "set", "OPENAI_API_KEY"), stdin="one-key\n", writes=("home/.config/council/keys.json",))),
    "init": (First(("init", "--yes"), writes=(USER_FILE,)),),
    "config": (First(("config",)), First(("config", "init"), writes=(USER_FILE,)), First(("config", "path")), First(("config", "edit"), writes=(USER_FILE,))),
    "trust": (First(("trust",), ready="[y/N]", typed=("y",),  writes=("home/.config/council/trust.json",)), First(("trust", "--list"))),
    "skill": (First(("skill", "install", "--user", "--agent", "claude"), writes=("home/.claude/skills/*/SKILL.md",)),),
    "serve": (First(("serve",), ready="http://127.0.0.1", exits=(0, 130, -signal.SIGTERM), writes=("home/.local/share/council/servers/token",)),),
    "open": (First(("open",), exits=NO_RUN),),
    "tokens": (First(("tokens", "add", "ann"), writes=(DATABASE,)), First(("tokens",))),
    "mcp": (First(("mcp",), stdin=f"{HELLO}\n"), First(("mcp", "--http"), ready="http://127.0.0.1", exits=(0, 130, -signal.SIGTERM))),
    "worker": (First(("worker",), writes=(DATABASE,)),),
    "completion": (First(("completion", "bash")),),
}  # fmt: skip
CASES = [pytest.param(first, id=" ".join(first.arguments)[:60]) for forms in FORMS.values() for first in forms]
QUICK = [first for name in ("", "serve", "mcp", "config", "eval") for first in FORMS[name][:1]]
QUICK_CASES = [pytest.param(first, id=" ".join(first.arguments)[:60]) for first in QUICK]


# Places that the user named, and folders of other programs: they follow the umask, and other users can never write to
# them.
NAMED = (
    "project/.agents", "project/made", "project/answer.md", "project/set.eval", "project/set.eval/result.json",
    "project/set.eval/table.txt", "home/.claude", "home/.claude/*",
)  # fmt: skip


def is_named_place(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in NAMED)


class Machine:
    """An empty home, a project with a few files, and an endpoint for all members."""

    def __init__(self, root: Path, provider: FakeProvider) -> None:
        self.root, self.home, self.project = root, root / "home", root / "project"
        for folder in (self.home, self.project, root / "tmp", root / "ring"):
            folder.mkdir(mode=0o700, parents=True)
        self.provider = provider
        lines = [f'[providers.sim]\nwire = "openai"\nbase_url = "{provider.base_url}"\n']
        lines += [f'[providers.openai]\nbase_url = "{provider.base("openai")}"\n[models]\ndefault = "sim:alpha"\n']
        lines += [f'[{"chair" if seat == "chair" else f"seats.{seat}"}]\nmodel = "sim:{seat}"\n' for seat in EVERYONE]
        self.write("council.toml", "\n".join(lines))
        self.write("notes.md", "The archive is on hot storage.\n")
        self.write("rows.jsonl", json.dumps({"id": "a", "question": QUESTION}) + "\n")
        self.write("set.jsonl", json.dumps({"id": "a", "question": "How much is 2 times 2?", "answer": 4}) + "\n")
        (root / "ring" / "file_ring.py").write_text(KEYRING)
        self.given = set(self.project.rglob("*"))

    def write(self, name: str, text: str) -> None:
        (self.project / name).write_text(text, encoding="utf-8")
        (self.project / name).chmod(0o644)

    @property
    def env(self) -> dict[str, str]:
        """The environment of a user who has set no folder. The file is the user's own, so that nothing needs trust."""
        unset = dict.fromkeys(
            ("COUNCIL_DATA", "COUNCIL_CACHE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"),
            "",
        )
        return unset | {
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "COUNCIL_CONFIG": str(self.project / "council.toml"),
            "COUNCIL_WORKER_IDLE": "0.2",
            "BROWSER": "true",
            "EDITOR": "true",
            "PYTHON_KEYRING_BACKEND": "file_ring.Ring",
            "PYTHONPATH": str(self.root / "ring"),
            "RING_FILE": str(self.root / "ring" / "kept"),
        }

    def run(self, first: First, umask: int) -> None:
        """Run a command to its end, and check the permissions at the end; of a server also while it serves."""
        env = self.env
        self.provider.answer = JudgeAnswers() if first.arguments[0] == "validate" else FixedAnswers()
        if first.arguments[0] == "trust":
            env["COUNCIL_CONFIG"] = ""
        if first.ready:
            terminal = PseudoTerminal(self.project, *first.arguments, stdout=True, trusts=False, umask=umask, **env)
            for line in first.typed:
                terminal.wait_for(first.ready)
                terminal.type_lines(line)
            if not first.typed:
                terminal.wait_for(first.ready)
                self.check(umask)
                terminal.process.terminate()
            done = terminal.wait_for_exit()
        else:
            process = Process(
                first.arguments, self.project, stdin=first.stdin is not None, trusts=False, umask=umask, **env
            )
            out, err = process.communicate(first.stdin, timeout=120)
            done = Result(process.exit_code, out, err)
        wait_for_worker_exit(self.data)
        assert done.code in first.exits, f"{done.code}: {done.out}{done.err}"
        self.check(umask)
        for pattern in first.writes:
            root = self.root if pattern.startswith("home/") else self.project
            assert list(root.glob(pattern)), f"{pattern} was not written: {done.out}{done.err}"

    @property
    def data(self) -> Path:
        return self.home / ".local" / "share" / "council"

    def check(self, umask: int) -> None:
        """Check the permissions of everything in the home, the project and the folder of temporary files."""
        for path, mode in self.created():
            is_folder = path.is_dir()
            wanted = 0o700 if is_folder else 0o600
            if is_named_place(path.relative_to(self.root).as_posix()):
                wanted = (0o775 if is_folder else 0o664) & ~umask
            assert mode == wanted, f"{path}: {mode:o} instead of {wanted:o}"

    def created(self) -> Iterator[tuple[Path, int]]:
        for folder in (self.home, self.project, self.root / "tmp"):
            for path in sorted(folder.rglob("*")):
                if path not in self.given and not path.is_symlink():
                    yield path, stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def machine(tmp_path: Path, provider: FakeProvider) -> Machine:
    return Machine(tmp_path / "machine", provider)


def test_every_command_of_the_table_has_a_form() -> None:
    assert set(FORMS) == {"", "ask", *COMMANDS}


@pytest.mark.behaviour("40-private-files")
@pytest.mark.parametrize("first", QUICK_CASES)
def test_what_a_first_command_creates_is_private(machine: Machine, first: First) -> None:
    machine.run(first, 0o000)


@pytest.mark.behaviour("40-private-files")
@pytest.mark.parametrize("umask", UMASKS[1:], ids=oct)
def test_the_umask_makes_no_difference(machine: Machine, umask: int) -> None:
    machine.run(QUICK[0], umask)


@pytest.mark.sweep
@pytest.mark.behaviour("40-private-files")
@pytest.mark.parametrize("umask", UMASKS, ids=oct)
@pytest.mark.parametrize("first", CASES)
def test_what_any_first_command_creates_is_private(
    machine: Machine, first: First, umask: int, sweep_figures: Callable[..., None]
) -> None:
    machine.run(first, umask)
    created = list(machine.created())
    sweep_figures("private-folders", commands=1, files=len(created))
