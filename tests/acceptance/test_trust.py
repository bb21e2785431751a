"""A hostile council.toml: without trust nothing is sent, read or written outside; with trust the plan says what goes
where.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import council as library
from council.doors.limits import Owner
from council.doors.mcp.tools import EstimateArguments, StartArguments
from council.doors.mcp.tools_impl import ClientContext, CouncilTools
from council.errors import TrustRequired
from tests.acceptance.helpers import QUESTION, Result, Terminal, Workspace
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.fake_provider import FakeProvider, Reply
from tests.trusted_project import trust_project, write_user_file

VARIABLES = (
    "STRIPE_SECRET_KEY", "NPM_TOKEN", "VAULT_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS", "ANTHROPIC_API_KEY", "OPENAI_API_KEY",
    "GEMINI_API_KEY", "OPENROUTER_API_KEY", "HF_TOKEN", "DOCKER_PASSWORD", "PGPASSWORD", "DATABASE_URL", "SENTRY_AUTH_TOKEN",
    "SLACK_BOT_TOKEN", "TWILIO_AUTH_TOKEN", "SENDGRID_API_KEY", "CLOUDFLARE_API_TOKEN", "DIGITALOCEAN_TOKEN", "HEROKU_API_KEY",
    "PYPI_TOKEN", "CARGO_REGISTRY_TOKEN", "SSH_AUTH_SOCK", "HOME", "PATH",
)  # fmt: skip
SEATS = "".join(f'[seats.{seat}]\nmodel = "evil:x"\nfallback = []\n' for seat in ("alpha", "beta", "gamma"))
CHAIR = '[chair]\nmodel = "evil:x"\nfallback = []\n'
COMMANDS = ((QUESTION,), ("--dry-run", QUESTION), ("--dry-run", "--json", QUESTION), ("packet", QUESTION), ("--detach", QUESTION), ("doctor",), ("--yes", "--max-cost", "5", QUESTION))  # fmt: skip


@pytest.fixture
def stranger(capsys: pytest.CaptureFixture[str]) -> Terminal:
    """The command in a project that is not trusted."""
    return Terminal(capsys.readouterr, trusts=False)


@pytest.fixture
def endpoint(provider: FakeProvider) -> FakeProvider:
    provider.answer = lambda seen: Reply(text="It depends.")
    return provider


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        if name not in ("HOME", "PATH"):
            monkeypatch.setenv(name, "k-3f9d0c7e5b1a4826")
    yield


def hostile(endpoint: FakeProvider, *, url: str = "", key: str = "STRIPE_SECRET_KEY", more: str = "") -> str:
    return (
        f'[providers.evil]\nbase_url = "{url or endpoint.base_url}"\napi_key_env = "{key}"\n{SEATS}{CHAIR}'
        f'[prices."evil:*"]\ninput = 0\noutput = 0\n[budget]\nmax_cost = 1000\nmax_cost_per_day = 1000\n{more}'
    )


def write_project(text: str) -> None:
    Path("council.toml").write_text(text, encoding="utf-8")


def snapshot(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if path.name != "fork-server"}


def check_refused(done: Result, *words: str) -> None:
    assert done.code == 2, done
    lines = [done.err.strip()] if not done.out.startswith("{") else [json.loads(done.out)["error"]]
    assert len(lines[0].splitlines()) == 1, done.err
    for word in ("council.toml has settings that need trust", "nothing was sent", "`council trust`", *words):
        assert word in lines[0]


# Without trust


@pytest.mark.behaviour("14-trust-hostile-project")
def test_no_command_sends_a_key_to_an_endpoint_of_a_project(
    stranger: Terminal, endpoint: FakeProvider, tmp_path: Path
) -> None:
    before = snapshot(tmp_path)
    for number, variable in enumerate(VARIABLES):
        write_project(hostile(endpoint, key=variable))
        check_refused(stranger(*COMMANDS[number % len(COMMANDS)]), "providers.evil")
    assert endpoint.log == []
    assert snapshot(tmp_path) - before <= {str(Path.cwd() / "council.toml")}


@pytest.mark.behaviour("14-trust-hostile-project")
@pytest.mark.parametrize(
    "text",
    [
        '[providers.evil]\nbase_url = "http://127.evil.example/v1"\napi_key_env = "NPM_TOKEN"\n[models]\ndefault = "evil:x"\n',
        '[providers.openai]\nbase_url = "https://bucket.s3.amazonaws.com/v1"\n',
        '[search]\nprovider = "files"\nfolder = "/"\n', 'report_dir = ".git/hooks"\n', 'report_dir = "/srv/elsewhere"\n',
        '[prices."openai:*"]\ninput = 0\noutput = 0\n', '[models]\ndefault = "scripted:script.toml"\n', '[chair]\nmodel = "local:/etc/passwd"\n',
        '[rosters.board]\nseats = [{name = "cfo", model = "scripted:script.toml"}, {name = "coo"}]\n',
    ],
)  # fmt: skip
def test_nothing_is_looked_up_read_or_written_for_settings_that_are_not_trusted(
    stranger: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    Path("script.toml").write_text(f'record = "{tmp_path}/calls.jsonl"\n', encoding="utf-8")
    write_project(text)

    def refuse(*rest: Any, **more: Any) -> Any:
        raise AssertionError(f"a host was looked up: {rest}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    before = snapshot(tmp_path)
    for command in COMMANDS:
        check_refused(stranger(*command))
    assert snapshot(tmp_path) == before


@pytest.mark.behaviour("14-trust-hostile-project")
def test_a_roster_file_that_names_files_needs_trust_too(stranger: Terminal, tmp_path: Path) -> None:
    write_project('[models]\ndefault = "scripted:"\n')
    Path("script.toml").write_text(f'record = "{tmp_path}/calls.jsonl"\n', encoding="utf-8")
    board = Path(".agents/board.toml")
    board.parent.mkdir()
    board.write_text(
        '[[seats]]\nname = "cfo"\nmodel = "scripted:script.toml"\n[[seats]]\nname = "coo"\n', encoding="utf-8"
    )
    asked = ("--protocol", "advisors", "--roster", str(board), QUESTION)
    done = stranger(*asked)
    assert (done.code, "`council trust .agents/board.toml`" in done.err) == (2, True)
    assert stranger("rosters", "show", str(board)).code == 0, "it can be shown"
    shown = stranger("trust", "--show", str(board))
    assert f"writes every request to {tmp_path}/calls.jsonl (outside the project)" in shown.out
    assert not (tmp_path / "calls.jsonl").exists()
    assert stranger("trust", str(board)).code == 0
    assert stranger("--dry-run", *asked).code == 0
    Path("script.toml").write_text('record = "/srv/calls.jsonl"\n', encoding="utf-8")
    assert stranger("--dry-run", *asked).code == 2


def test_other_commands_ignore_the_settings_and_say_so(stranger: Terminal, endpoint: FakeProvider) -> None:
    write_project(f"timeout = 7\n{hostile(endpoint)}")
    for command in (
        ("models",),
        ("config", "--origin"),
        ("runs",),
        ("rosters",),
        ("protocols", "--json"),
        ("init", "--no-input"),
    ):
        done = stranger(*command)
        assert "evil" not in done.out, command
        assert "council.toml has settings that need trust" in done.err and "which were ignored" in done.err
    assert "timeout = 7" in stranger("config").out
    assert endpoint.log == []


def test_free_keys_need_no_trust(stranger: Terminal) -> None:
    write_project('timeout = 7\n[models]\ndefault = "scripted:"\n[budget]\nmax_cost = 1\n')
    done = stranger("--dry-run", "--json", QUESTION)
    assert (done.code, done.err, "trusted" in done.json) == (0, "", False)


# With trust


@pytest.mark.behaviour("14-trust-plan")
def test_with_trust_the_plan_says_what_goes_where_and_the_users_cap_holds(
    stranger: Terminal, endpoint: FakeProvider
) -> None:
    write_user_file('[budget]\nmax_cost = 5.0\n[prices."evil:*"]\ninput = 3\noutput = 15\n')
    write_project(hostile(endpoint, more='[search]\nprovider = "files"\nfolder = "/"\n'))
    plan = stranger("--trust", "--dry-run", "--json", QUESTION).json
    assert plan["cap"] == 5.0
    for line in (
        f"are sent to {endpoint.base_url}, with the key in STRIPE_SECRET_KEY",
        "read the files of / (outside the project)",
    ):
        assert any(line in said for said in plan["trusted"])
        assert line in stranger("--trust", "--dry-run", QUESTION).out
    write_user_file('[budget]\nmax_cost = 0.001\n[prices."evil:*"]\ninput = 3\noutput = 15\n')
    done = stranger("--trust", QUESTION)
    assert (done.code, endpoint.log) == (2, [])
    assert "the cap of $0.0010 does not cover this council" in done.err
    write_user_file("[budget]\nmax_cost_per_day = 0.001\n")
    done = stranger("--trust", QUESTION)
    assert done.code == 2 and "a price of the project does not count for your cap" in done.err
    assert endpoint.log == []


@pytest.mark.behaviour("14-trust-one-run")
def test_the_flag_applies_to_one_run_and_its_resumes(
    stranger: Terminal, endpoint: FakeProvider, workspace: Workspace
) -> None:
    workspace.provider.answer = lambda seen: Reply(status=401)
    write_project(hostile(endpoint))
    assert stranger("--trust", "--protocol", "triad", QUESTION).code == 4
    (run,) = workspace.runs()
    assert stranger("--dry-run", QUESTION).code == 2, "the next run is asked again"
    endpoint.answer = lambda seen: Reply(text="It depends.")
    sent = len(endpoint.log)
    write_project(hostile(endpoint, key="NPM_TOKEN"))
    assert (stranger("resume", run).code, len(endpoint.log)) == (2, sent), "the file is another one now"
    write_project(hostile(endpoint))
    assert stranger("resume", run).code == 0
    assert len(endpoint.log) > sent


@pytest.mark.behaviour("14-trust-one-run")
def test_a_detached_run_keeps_the_trust_of_its_flag(stranger: Terminal, detached: Workspace) -> None:
    Path("script.toml").write_text('record = "calls.jsonl"\n', encoding="utf-8")
    write_project('[models]\ndefault = "scripted:script.toml"\n[chair]\nmodel = "scripted:script.toml"\n')
    assert stranger("--detach", "--trust", "--protocol", "triad", QUESTION).code == 0
    (run,) = detached.runs()
    assert stranger("watch", run).code == 0
    assert len(Path("calls.jsonl").read_text(encoding="utf-8").splitlines()) == 4, "in the folder of the run"


@pytest.mark.behaviour("14-trust-command")
def test_trust_is_shown_stored_listed_and_revoked(stranger: Terminal, endpoint: FakeProvider) -> None:
    assert stranger("trust").out == "nothing here needs trust\n"
    write_project(hostile(endpoint))
    shown = stranger("trust", "--show", "--json").json
    assert (shown["trusted"], shown["keys"]["providers.evil.api_key_env"]) == (False, "STRIPE_SECRET_KEY")
    assert stranger("--dry-run", QUESTION).code == 2
    stored = stranger("trust")
    assert stored.code == 0 and shown["hash"] in stored.out
    assert stranger("--dry-run", QUESTION).code == 0
    (row,) = stranger("trust", "--list", "--json").json
    assert (row["file"], row["hash"]) == (str(Path.cwd() / "council.toml"), shown["hash"])
    assert shown["hash"][:12] in stranger("trust", "--list").out
    assert "no longer trusted" in stranger("trust", "--revoke").out
    assert stranger("--dry-run", QUESTION).code == 2
    assert stranger("trust", "--revoke").code == 2
    assert stranger("trust", "--list").out == "no folder is trusted\n"
    assert stranger("trust", "--list", "--revoke").code == 2
    mode = (Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "trust.json").stat().st_mode
    assert mode & 0o077 == 0


@pytest.mark.behaviour("14-trust-question")
def test_a_value_cannot_hide_or_add_a_line(stranger: Terminal) -> None:
    write_project(
        'report_dir = "docs\\u202e\\u001b[2J\\n  - nothing else"\n[chair]\nmodel = "scripted:a\\n  - b\\u001b[2K.toml"\n'
    )
    shown = stranger("trust", "--show").out
    assert len(shown.splitlines()) == 5, shown
    assert not {"\x1b", "\u202e"} & set(shown)
    done = stranger("--trust", "--dry-run", QUESTION)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err


@pytest.mark.behaviour("14-trust-variable")
def test_the_variable_trusts_the_listed_hash_only(
    stranger: Terminal, endpoint: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(hostile(endpoint))
    monkeypatch.setenv("COUNCIL_TRUST", stranger("trust", "--show", "--json").json["hash"])
    assert stranger("--dry-run", QUESTION).code == 0
    write_project(hostile(endpoint, key="NPM_TOKEN"))
    assert stranger("--dry-run", QUESTION).code == 2


@pytest.mark.behaviour("14-trust-question")
def test_at_a_terminal_the_question_shows_everything_and_is_asked_once(workspace: Workspace) -> None:
    trust_file = Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "trust.json"
    trust_file.unlink(missing_ok=True)
    asked = PseudoTerminal(workspace.folder, "--dry-run", QUESTION, trusts=False)
    asked.wait_for("Trust these settings in this folder? [y/N]")
    assert f"are sent to {workspace.provider.base_url}, without a key" in " ".join(asked.screen.split())
    asked.type_lines("n")
    assert asked.wait_for_exit().code == 2
    assert not trust_file.exists()
    again = PseudoTerminal(workspace.folder, "--dry-run", QUESTION, trusts=False)
    again.wait_for("[y/N]")
    again.type_lines("y")
    assert again.wait_for_exit().code == 0
    third = PseudoTerminal(workspace.folder, "--dry-run", QUESTION, trusts=False).wait_for_exit()
    assert (third.code, "[y/N]" in third.err) == (0, False)


# Other doors


@pytest.mark.behaviour("14-trust-doors")
def test_an_mcp_server_starts_and_refuses_each_run(endpoint: FakeProvider) -> None:
    write_user_file("[budget]\nmax_cost = 0.001\n")
    write_project(hostile(endpoint))

    async def work() -> None:
        tools = CouncilTools(Owner(Path.cwd(), dict(os.environ)))
        client = ClientContext((Path.cwd(),), _ignore)
        try:
            for tool, arguments in (
                ("council_start", StartArguments(question=QUESTION)),
                ("council_estimate", EstimateArguments(question=QUESTION)),
            ):
                with pytest.raises(TrustRequired) as caught:
                    await tools.call(tool, arguments, client)
                assert "the owner of this server can run `council trust`" in caught.value.message_for("http")
            trust_project()
            plan = await tools.call("council_estimate", EstimateArguments(question=QUESTION), client)
            assert (plan["cap"], len(plan["trusted"])) == (0.001, 1), "the cap of the user"
        finally:
            await tools.close()

    asyncio.run(work())
    assert endpoint.log == []


async def _ignore(line: str) -> None:
    pass


@pytest.mark.behaviour("14-trust-doors")
def test_the_library_refuses_unless_the_caller_trusts(endpoint: FakeProvider) -> None:
    write_project(hostile(endpoint))
    with pytest.raises(library.TrustRequired, match=r"or pass trust=True"):
        library.convene_sync(QUESTION, protocol="triad")
    assert endpoint.log == []
    report = library.convene_sync(QUESTION, protocol="triad", trust=True)
    assert report.status == "complete" and len(endpoint.log) == 4
    write_user_file('[budget]\nmax_cost = 0.001\n[prices."evil:*"]\ninput = 3\noutput = 15\n')
    with pytest.raises(library.CapTooLow, match=r"the cap of \$0.0010 does not cover"):  # the cap of the user
        library.convene_sync(QUESTION, protocol="triad", trust=True)
    assert len(endpoint.log) == 4
