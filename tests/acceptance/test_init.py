"""`council init`: no key, a bad key, three keys, an existing file; at a terminal and off it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.doors.cli.setup_commands import format_sources
from council.settings.catalogue import catalogue
from tests.acceptance.helpers import Json, Terminal
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.fake_provider import FakeProvider, Reply
from tests.trusted_project import trust_project, user_file, write_user_file

MODELS = tuple(id_ for model in catalogue().models.values() for id_ in model.ids.values())
KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
SEATS = {"alpha": "anthropic:opus", "beta": "openai:gpt", "gamma": "google:gemini-pro"}
RESOLVED = {
    "alpha": "anthropic:claude-opus-5.5",
    "beta": "openai:gpt-6.1-sol",
    "gamma": "google:gemini-3.1-pro-preview",
}


@pytest.fixture
def vendors(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    """The three vendors at one fake endpoint, without their keys, no Ollama and no command-line agents."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(Path.cwd()))
    with FakeProvider(models=MODELS) as provider:
        tables = {name: provider.base(name) for name in KEYS} | {"ollama": "http://127.0.0.1:9/v1"}
        lines = [f'[providers.{name}]\nbase_url = "{url}"\n' for name, url in tables.items()]
        Path("council.toml").write_text("".join(lines))
        trust_project()
        yield provider


@pytest.fixture
def set_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "sk-secret-of-the-user")


def written() -> Json:
    return tomllib.loads(user_file().read_text())


# Off a terminal


@pytest.mark.behaviour("00-init-no-key")
def test_without_a_key_it_explains_how_to_set_one_and_writes_nothing(vendors: FakeProvider, council: Terminal) -> None:
    done = council("init")
    assert "ANTHROPIC_API_KEY" in done.out
    assert "council keys set" in done.out
    assert done.code in (0, 4), "4 if the embedded model is not installed either"
    assert not user_file().exists()
    assert vendors.log == []


@pytest.mark.behaviour("00-init-no-key")
def test_without_a_key_the_embedded_model_is_offered(vendors: FakeProvider, council: Terminal) -> None:
    pytest.importorskip("xllamacpp", reason="the extra local is not installed")
    done = council("init", "--yes")
    assert done.code == 0
    assert "demonstration" in done.out
    assert written()["models"]["default"] == "local:smollm2"
    assert "costs nothing" in done.out


@pytest.mark.behaviour("00-init-no-key")
def test_without_a_key_the_seats_of_a_file_are_kept_even_with_yes(vendors: FakeProvider, council: Terminal) -> None:
    text = '[seats.alpha]  # chosen by hand\nmodel = "openai:gpt-5.2"\n'
    write_user_file(text)
    assert council("init", "--yes").code in (0, 4)
    assert user_file().read_text() == text


@pytest.mark.behaviour("00-init-seats", "00-init-tests-keys")
@pytest.mark.usefixtures("set_keys")
def test_three_keys_fill_the_seats_and_the_price_is_shown(vendors: FakeProvider, council: Terminal) -> None:
    done = council("init")
    assert done.code == 0, done.err
    for name, variable in KEYS.items():
        assert f"{name:<13}  {variable} (environment)" in done.out, done.out
    file = written()
    assert {name: seat["model"] for name, seat in file["seats"].items()} == SEATS
    assert file["chair"]["model"] == SEATS["alpha"]
    assert file["models"] == {
        "default": "anthropic:sonnet", "strong": SEATS["alpha"], "fast": "anthropic:haiku", "other": "openai:gpt-mini",
    }  # fmt: skip
    for name, member in RESOLVED.items():
        assert f"{name:<6} {member} (newest of {SEATS[name]})" in done.out
    assert "is a line" in user_file().read_text().splitlines()[1]
    assert user_file().stat().st_mode & 0o777 == 0o600
    assert "sk-secret" not in user_file().read_text() + done.out
    assert "A plain question costs about $0." in done.out
    assert 'Next: council "' in done.out
    again = council("init")
    assert (again.code, "is up to date" in again.out) == (0, True)
    assert vendors.log == []


@pytest.mark.behaviour("00-init-bad-key", "00-members-vendors")
@pytest.mark.usefixtures("set_keys")
def test_a_refused_key_is_named_with_the_reason_and_not_seated(vendors: FakeProvider, council: Terminal) -> None:
    with FakeProvider() as other:
        other.always(
            "/models", Reply(status=401, error={"message": "Incorrect API key provided: sk-secret-of-the-user"})
        )
        text = Path("council.toml").read_text().replace(f'[providers.openai]\nbase_url = "{vendors.base("openai")}"', f'[providers.openai]\nbase_url = "{other.base_url}"')  # fmt: skip
        Path("council.toml").write_text(text)
        trust_project()
        done = council("init")
    assert done.code == 0
    assert "refused: 401: Incorrect API key" in " ".join(done.out.split())
    assert "sk-secret" not in done.out
    assert written()["vendors"] == ["anthropic", "google"]
    Path("a.py").write_text("x = 1\n")
    for words in (
        ["Redis or Postgres?"],
        ["How should we start?"],
        ["validate", "a.py"],
        ["--cheap", "Why?"],
        ["--flow", "parallel", "Why?"],
    ):
        plan = council("--dry-run", "--json", *words).json
        members = [
            member for seat in (*plan["seats"], plan["chair"]) if seat for member in (seat["model"], *seat["fallbacks"])
        ]
        assert members
        assert not [member for member in members if member.startswith("openai:")], words


@pytest.mark.behaviour("00-init-bad-key")
def test_only_a_refused_key_writes_nothing(
    vendors: FakeProvider, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    vendors.always("/models", Reply(status=401))
    for flags in ([], ["--yes"]):
        done = council("init", "--json", *flags)
        row = next(row for row in done.json["vendors"] if row["name"] == "openai")
        assert (row["state"], row["found"]) == ("refused", "OPENAI_API_KEY (environment)")
        assert done.json["written"] is False
        assert not user_file().exists()


@pytest.mark.behaviour("00-init-keeps-the-file")
@pytest.mark.usefixtures("set_keys", "vendors")
def test_an_existing_file_is_changed_only_with_yes(council: Terminal) -> None:
    old = '# mine\n[budget]\nmax_cost = 2.0  # dollars\n\n[models]\ndefault = "openai:gpt-5.2"\n'
    write_user_file(old)
    for flags in ([], ["--no-input"]):
        done = council("init", *flags)
        assert done.code == 2
        assert "nothing was written: pass --yes" in done.err
        assert done.err.count("\n") == 1
        assert '-default = "openai:gpt-5.2"' in done.out
        assert '+default = "anthropic:sonnet"' in done.out
        assert user_file().read_text() == old
    assert council("init", "--yes").code == 0
    assert "\n\n# mine\n[budget]\nmax_cost = 2.0  # dollars\n" in user_file().read_text()
    assert written()["seats"]["beta"]["model"] == SEATS["beta"]
    assert council("init").code == 0, "nothing changes any more"


@pytest.mark.usefixtures("set_keys", "vendors")
def test_a_project_file_that_takes_precedence_is_named(council: Terminal) -> None:
    with Path("council.toml").open("a") as file:
        file.write('[seats.alpha]\nmodel = "google:gemini-3-pro-preview"\n')
    trust_project()
    done = council("init")
    assert done.code == 0
    assert "takes precedence: seats.alpha.model (" in done.out


@pytest.mark.behaviour("00-init-seats")
@pytest.mark.usefixtures("set_keys")
def test_an_endpoint_of_the_project_is_not_seated_for_all_folders(vendors: FakeProvider, council: Terminal) -> None:
    own = f'[providers.mine]\nbase_url = "{vendors.base_url}"\n'
    with Path("council.toml").open("a") as file:
        file.write(own)
    trust_project()
    done = council("init")
    assert "seat it in council.toml, which defines it" in " ".join(done.out.split())
    assert "mine" not in written()["vendors"]
    user_file().unlink()
    write_user_file(own)
    Path("council.toml").write_text(Path("council.toml").read_text().replace(own, ""))
    trust_project()
    assert council("init", "--yes").code == 0
    assert written()["vendors"] == ["anthropic", "openai", "google", "mine"]


def test_a_broken_file_is_named_and_kept(vendors: FakeProvider, council: Terminal) -> None:
    write_user_file("timeout = \n")
    done = council("init", "--yes")
    assert (done.code, str(user_file()) in done.err) == (2, True)
    assert user_file().read_text() == "timeout = \n"


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_the_table_fits_the_terminal_and_breaks_no_word(width: int) -> None:
    reason = "401: Incorrect API key provided: you can find your key in the settings of your account"
    rows = [
        {"name": "anthropic", "found": "ANTHROPIC_API_KEY (environment)", "state": "refused", "detail": reason},
        {"name": "local:smollm2", "found": "", "state": "missing", "detail": "not installed"},
    ]
    lines = format_sources(rows, width)
    assert reason in " ".join(" ".join(lines).split())
    if width >= 80:
        assert max(map(len, lines)) <= width


# At a terminal


@pytest.mark.behaviour("00-init-asks")
@pytest.mark.usefixtures("set_keys", "vendors")
def test_at_a_terminal_it_asks_which_vendors_to_seat() -> None:
    terminal = PseudoTerminal(Path.cwd(), "init")
    terminal.wait_for("Seat which vendors? anthropic, openai, google")
    terminal.type_lines("antropic")
    terminal.wait_for('"antropic" is not in the list')
    terminal.type_lines("openai, google")
    terminal.wait_for("[Enter for adaptive]: ")
    terminal.type_lines("")
    done = terminal.wait_for_exit()
    assert done.code == 0, done.err
    assert written()["models"]["default"] == "openai:gpt-mini"
    members = [*(seat["model"] for seat in written()["seats"].values()), *written()["chair"]["fallback"]]
    assert {member.partition(":")[0] for member in members} == {"openai", "google"}
    assert written()["protocol"] == "adaptive"


@pytest.mark.behaviour("00-init-protocol")
@pytest.mark.usefixtures("set_keys", "vendors")
def test_at_a_terminal_it_offers_adaptive_as_the_default_protocol(council: Terminal) -> None:
    terminal = PseudoTerminal(Path.cwd(), "init")
    terminal.wait_for("[Enter for all]: ")
    terminal.type_lines("")
    terminal.wait_for("Default protocol? adaptive (asks two members and stops if they agree), collaborative")
    terminal.type_lines("adaptiv")
    terminal.wait_for('"adaptiv" is not in the list')
    terminal.type_lines("collaborative")
    assert terminal.wait_for_exit().code == 0
    assert written()["protocol"] == "collaborative"
    assert council("init", "--yes").code == 0  # it asks nothing and keeps the key
    assert written()["protocol"] == "collaborative"


@pytest.mark.behaviour("00-init-protocol")
@pytest.mark.usefixtures("set_keys", "vendors")
def test_without_a_terminal_or_a_second_vendor_the_default_protocol_stays(
    council: Terminal,
) -> None:
    assert council("init", "--yes").code == 0
    assert "protocol" not in written()


@pytest.mark.behaviour("00-init-asks", "00-init-keeps-the-file")
@pytest.mark.usefixtures("set_keys", "vendors")
@pytest.mark.parametrize(("answer", "code"), [("n", 130), ("y", 0)])
def test_at_a_terminal_it_asks_before_it_changes_a_file(answer: str, code: int) -> None:
    write_user_file("timeout = 60\n")
    terminal = PseudoTerminal(Path.cwd(), "init")
    terminal.wait_for("[Enter for all]: ")
    terminal.type_lines("")
    terminal.wait_for("[Enter for adaptive]: ")
    terminal.type_lines("")
    terminal.wait_for("? [y/N]: ")
    assert user_file().read_text() == "timeout = 60\n"
    terminal.type_lines(answer)
    done = terminal.wait_for_exit()
    assert done.code == code
    assert '+model = "anthropic:opus"' in done.out
    assert ("seats" in written()) is (answer == "y")
    assert written()["timeout"] == 60


@pytest.mark.behaviour("00-init-asks")
@pytest.mark.usefixtures("set_keys", "vendors")
@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_stopping_at_the_question_writes_nothing(key: str) -> None:
    terminal = PseudoTerminal(Path.cwd(), "init")
    terminal.wait_for("[Enter for all]: ")
    terminal.press(key)
    assert terminal.wait_for_exit().code == 130
    assert not user_file().exists()


@pytest.mark.behaviour("50-quiet", "50-verbose-rest")
def test_after_init_the_plan_says_all_about_models_and_vendors_once(
    vendors: FakeProvider, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    done = council("init", "--yes")
    assert done.code == 0, done.err
    assert "models known on " in done.out and "(documented as " in done.out
    assert "! alpha, beta and gamma use the same vendor (anthropic), so their agreement means less." in done.out
    assert "-v shows the plan" in done.out
