"""Workspace trust: which settings of a project apply without trust, and what a hash covers."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from council.calling.pricing import find_price
from council.errors import ConfigError, TrustRequired, message_for
from council.settings import Settings, load_settings
from council.settings.network import describe_key_leak, is_loopback
from council.settings.schema import (
    CONFIG_KEYS,
    KEY_ACCESS,
    KEY_PLACEHOLDERS,
    KEYS_BY_ACCESS,
    Access,
    TableList,
    access_of,
)
from council.settings.workspace_trust import TrustRequest, load_trust, revoke_trust, store_trust

HOSTILE = """
report_dir = ".git/hooks"
[providers.evil]
base_url = "http://127.evil.example/v1"
api_key_env = "STRIPE_SECRET_KEY"
[seats.alpha]
model = "evil:x"
"""


class Project:
    def __init__(self, root: Path) -> None:
        self.folder, self.config = root / "project", root / "config"
        self.env = {"XDG_CONFIG_HOME": str(self.config)}
        self.folder.mkdir()
        (self.config / "council").mkdir(parents=True)

    def write(self, text: str, name: str = "council.toml") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def write_user(self, text: str) -> None:
        (self.config / "council" / "config.toml").write_text(text, encoding="utf-8")

    def load(self, folder: Path | None = None, **flags: Any) -> Settings:
        return load_settings(folder or self.folder, self.env, flags=flags)

    def digest(self, folder: Path | None = None) -> str:
        request = self.load(folder).untrusted
        assert request is not None
        return request.digest

    def trust(self) -> None:
        request = self.load().untrusted
        assert request is not None
        store_trust(request, self.env)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def schema_keys(keys: Mapping[str, Any], prefix: str = "") -> Iterable[str]:
    for key, rule in keys.items():
        dotted = f"{prefix}.{KEY_PLACEHOLDERS.get(prefix, key)}" if prefix else key
        if isinstance(rule, Mapping):
            yield from schema_keys(rule, dotted)
            continue
        yield dotted
        if isinstance(rule, TableList):
            yield from schema_keys(rule.keys, dotted)


@pytest.mark.behaviour("14-trust-keys-classified")
def test_every_key_of_the_schema_is_classified() -> None:
    tables = {name for name in KEYS_BY_ACCESS[Access.TRUSTED] if isinstance(CONFIG_KEYS[name], Mapping)}
    inside = {key for key in schema_keys(CONFIG_KEYS) if key.partition(".")[0] in tables}
    assert set(schema_keys(CONFIG_KEYS)) - inside == set(KEY_ACCESS) - tables
    assert {access_of(key) for key in inside} == {Access.TRUSTED}


@pytest.mark.parametrize(
    ("key", "access"),
    [
        ("providers.lab.base_url", Access.TRUSTED), ("providers.lab", Access.TRUSTED), ("prices.'x:*'", Access.TRUSTED),
        ("seats.alpha", Access.FREE), ("seats.alpha.model", Access.MEMBER), ("rosters.board", Access.FREE),
        ("commands.codex.idle", Access.TRUSTED), ("search", Access.TRUSTED), ("store.url", Access.TRUSTED),
        ("budget.max_cost", Access.LOWER), ("a_key.of_tomorrow", Access.TRUSTED),
    ],
)  # fmt: skip
def test_the_access_of_a_key_is_that_of_its_row(key: str, access: Access) -> None:
    assert access_of(key) is access


# Without trust


@pytest.mark.behaviour("14-trust-free-keys")
@pytest.mark.parametrize(
    "text",
    [
        "timeout = 9", 'effort = "low"', 'vendors = ["openai"]', "[general]\ndeliberate = false", "[human]\ntimeout = 9",
        "[budget]\nmax_cost = 1\nmax_cost_per_day = 2\nconfirm_above = 0.1", '[models]\ndefault = "openai:gpt-5.2"\nfast = "sonnet"',
        '[seats.alpha]\nmodel = "lab:m"\nfallback = ["human", "cli:claude", "scripted:"]', '[chair]\nmodel = "local:smollm2"',
        '[rosters.board]\nabout = "x"\nseats = [{name = "cfo", lens = "cash", model = "lab:m"}]\nchair = {model = "lab:m"}',
        '[models]\ndefault = "nowhere:m"',  # an unknown provider has its own error
    ],
)  # fmt: skip
def test_free_keys_apply_without_trust(project: Project, text: str) -> None:
    project.write_user('[providers.lab]\nbase_url = "http://127.0.0.1:9/v1"\n')
    path = project.write(text)
    settings = project.load()
    assert (settings.untrusted, settings.trusted) == (None, None)
    assert str(path) in {origin.name for origin in settings.origins.values()}


@pytest.mark.behaviour("14-trust-needed")
@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('[providers.evil]\nbase_url = "http://a.example"', ["providers.evil", "providers.evil.base_url"]),
        ('[providers.lab]\napi_key_env = "STRIPE_SECRET_KEY"', ["providers.lab", "providers.lab.api_key_env"]),
        ('[providers.openai]\nbase_url = "http://a.example"', ["providers.openai", "providers.openai.base_url"]),
        ('[providers.openai]\nidle = 5', ["providers.openai", "providers.openai.idle"]),
        ('[search]\nprovider = "files"\nfolder = "/"', ["search.provider", "search.folder"]),
        ('[search]\nbase_url = "http://a.example"', ["search.base_url"]),
        ('report_dir = ".git/hooks"', ["report_dir"]),
        ("notify = true", ["notify"]),
        ("[store]\nkeep_days = 1", ["store.keep_days"]),
        ("[commands.claude]\nidle = 1", ["commands.claude.idle"]),
        ('[prices."openai:*"]\ninput = 0\noutput = 0', ["prices.'openai:*'", "prices.'openai:*'.input", "prices.'openai:*'.output"]),
        ('[models]\ndefault = "scripted:x.toml"', ["models.default"]),
        ('[seats.alpha]\nfallback = ["openai:gpt-5.2", "local:/tmp/m.gguf"]', ["seats.alpha.fallback"]),
        ('[chair]\nmodel = "local:m.gguf"', ["chair.model"]),
        ('[rosters.board]\nseats = [{name = "cfo", model = "scripted:x.toml"}]', ["rosters.board.seats"]),
        ('[rosters.board]\nchair = {fallback = ["scripted:x.toml"]}', ["rosters.board.chair.fallback"]),
    ],
)  # fmt: skip
def test_all_other_keys_need_trust_and_are_left_out(project: Project, text: str, keys: list[str]) -> None:
    project.write_user('[providers.lab]\nbase_url = "http://127.0.0.1:9/v1"\n')
    path = project.write(text)
    settings = project.load()
    assert settings.untrusted is not None
    assert list(settings.untrusted.values) == keys
    left_out = {key for key, origin in settings.origins.items() if origin.name == str(path)}
    assert not left_out & set(keys)
    with pytest.raises(TrustRequired) as caught:
        settings.require_trust()
    for language, how in (("cli", "--trust"), ("python", "trust=True"), ("http", "the owner of this server")):
        line = message_for(caught.value, language)  # type: ignore[arg-type]
        assert str(path) in line and how in line and "\n" not in line and "nothing was sent" in line
    assert project.load(trust=True).untrusted is None


def test_a_named_file_counts_as_the_users_own(project: Project) -> None:
    path = project.write(HOSTILE, "mine.toml")
    assert load_settings(project.folder, project.env, config=path).untrusted is None
    assert load_settings(project.folder, {**project.env, "COUNCIL_CONFIG": str(path)}).untrusted is None


# Trust


@pytest.mark.behaviour("14-trust-by-hash")
def test_trust_holds_for_one_folder_until_a_trusted_key_changes(project: Project, tmp_path: Path) -> None:
    project.write(HOSTILE)
    project.trust()
    settings = project.load()
    assert settings.trusted is not None and settings.untrusted is None
    assert settings.providers["evil"].api_key_env == "STRIPE_SECRET_KEY"
    project.write(f"timeout = 9\n{HOSTILE}# a comment\n")
    assert project.load().untrusted is None, "a free key and a comment change nothing"
    sub = project.folder / "sub"
    sub.mkdir()
    assert project.load(sub).untrusted is None
    other = tmp_path / "clone"
    other.mkdir()
    (other / "council.toml").write_text(HOSTILE, encoding="utf-8")
    assert project.load(other).untrusted is not None, "trust is stored by folder"
    project.write(HOSTILE.replace("127.evil", "128.evil"))
    assert project.load().untrusted is not None
    project.trust()
    project.write(HOSTILE)
    assert project.load().untrusted is not None, "an earlier version is no longer trusted"


def test_revoked_trust_is_gone(project: Project) -> None:
    project.write(HOSTILE)
    project.trust()
    assert [row.file for row in load_trust(project.env)] == ["council.toml"]
    assert [row.file for row in revoke_trust(project.folder, project.env)] == ["council.toml"]
    assert project.load().untrusted is not None
    assert revoke_trust(project.folder, project.env) == []


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '[{"folder": 1}]', "null", '[{"folder": "/", "file": "a", "hash": "b", "at": "c"}]']
)
def test_a_damaged_list_trusts_nothing(project: Project, content: str) -> None:
    project.write(HOSTILE)
    (project.config / "council" / "trust.json").write_text(content, encoding="utf-8")
    assert project.load().untrusted is not None


@pytest.mark.behaviour("14-trust-variable")
def test_the_variable_lists_hashes_that_are_the_same_in_every_clone(project: Project, tmp_path: Path) -> None:
    project.write(HOSTILE)
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "council.toml").write_text(HOSTILE, encoding="utf-8")
    digest = project.digest()
    env = {**project.env, "COUNCIL_TRUST": f"{'0' * 64}, {digest.upper()}"}
    assert load_settings(clone, env).untrusted is None
    (clone / "council.toml").write_text(HOSTILE + "[store]\nkeep_days = 1\n", encoding="utf-8")
    assert load_settings(clone, env).untrusted is not None
    with pytest.raises(ConfigError, match=r'COUNCIL_TRUST has "all", which is not a hash'):
        load_settings(clone, {**env, "COUNCIL_TRUST": "all"})


def test_a_resumed_run_trusts_only_what_it_was_started_with(project: Project) -> None:
    project.write(HOSTILE)
    digest = project.digest()
    assert project.load(trusted=[digest]).untrusted is None
    project.write(HOSTILE.replace("127.evil", "128.evil"))
    assert project.load(trusted=[digest]).untrusted is not None


# Paths


@pytest.mark.behaviour("14-trust-paths")
def test_a_path_that_leads_out_after_it_was_trusted_needs_trust_again(project: Project, tmp_path: Path) -> None:
    project.write('report_dir = "out"\n[search]\nprovider = "files"\nfolder = "docs"\n')
    project.trust()
    (project.folder / "docs").symlink_to(tmp_path)
    request = project.load().untrusted
    assert request is not None
    assert any(f"the files of {tmp_path} (outside the project)" in line for line in request.describe())
    (project.folder / "docs").unlink()
    assert project.load().untrusted is None
    (project.folder / "out").symlink_to(tmp_path)
    assert project.load().untrusted is not None


@pytest.mark.behaviour("14-trust-paths")
def test_a_script_is_trusted_with_its_content(project: Project, tmp_path: Path) -> None:
    script = project.write(f'record = "{tmp_path}/calls.jsonl"\n', "x.toml")
    project.write(f'[models]\ndefault = "scripted:{script}"\n')
    request = project.load().untrusted
    assert request is not None
    assert any(
        f"writes every request to {tmp_path}/calls.jsonl (outside the project)" in line for line in request.describe()
    )
    project.trust()
    assert project.load().untrusted is None
    script.write_text('record = "/etc/calls.jsonl"\n', encoding="utf-8")
    assert project.load().untrusted is not None


# Description


@pytest.mark.behaviour("14-trust-question")
def test_the_description_names_every_destination_and_every_key(project: Project) -> None:
    project.write_user('[providers.lab]\nbase_url = "https://lab.example/v1"\napi_key_env = "LAB_KEY"\n')
    project.write(
        'report_dir = "/srv/out"\n[providers.lab]\napi_key_env = "OTHER_KEY"\n[providers.b]\nbase_url = "http://b.example/v1"\nwire = "anthropic"\n'
        '[search]\nprovider = "searxng"\nbase_url = "http://s.example"\n[seats.alpha]\nmodel = "b:m"\n[chair]\nmodel = "local:/m.gguf"\n'
        '[prices."b:*"]\ninput = 0\noutput = 0.5\n[commands.codex]\nidle = 5\n'
    )  # fmt: skip
    request = project.load().untrusted
    assert request is not None
    text = "\n".join(request.describe())
    for part in (
        "for lab are sent to https://lab.example/v1, with the key in OTHER_KEY", "for b are sent to http://b.example/v1, without a key",
        'providers.b.wire = "anthropic"', 'search.provider = "searxng"', "search queries are sent to http://s.example",
        "reports are written to /srv/out (outside the project)", "loads the model file /m.gguf (outside the project)",
        "b:* counts as input $0, output $0.5", 'seats.alpha.model = "b:m"', "commands.codex.idle = 5",
    ):  # fmt: skip
        assert part in text
    assert json.dumps(dict(request.values))


@pytest.mark.parametrize(
    ("url", "variable", "leaks"),
    [
        ("https://api.openai.com/v1", "OPENAI_API_KEY", False), ("http://127.0.0.1:9/v1", "OPENAI_API_KEY", False),
        ("http://127.evil.example/v1", "OPENAI_API_KEY", True), ("https://bucket.s3.amazonaws.com", "AWS_SECRET_ACCESS_KEY", True),
        ("https://bedrock-runtime.s3.amazonaws.com", "AWS_SECRET_ACCESS_KEY", True),
        ("https://bedrock-runtime.us-east-1.amazonaws.com", "AWS_SECRET_ACCESS_KEY", False),
        ("https://shop.openai.azure.com", "AZURE_OPENAI_API_KEY", False), ("https://vm.cloudapp.azure.com", "AZURE_OPENAI_API_KEY", True),
        ("https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", False), ("https://storage.googleapis.com/b", "GEMINI_API_KEY", True),
        ("https://us-central1-aiplatform.googleapis.com", "GOOGLE_API_KEY", False), ("https://a.example", "DATABASE_URL", True),
        ("https://a.example", "SHOP_API_KEY", False), ("https://a.example", "", False),
    ],
)  # fmt: skip
def test_a_key_that_goes_to_a_host_of_another_owner_is_warned_about(url: str, variable: str, leaks: bool) -> None:
    assert bool(describe_key_leak("council.toml", url, variable)) is leaks


def test_a_host_of_other_letters_is_shown_with_escapes(project: Project) -> None:
    project.write('[providers.evil]\nbase_url = "https://\u0430pi.openai.com/v1"\n')
    request = project.load().untrusted
    assert request is not None
    assert "https://\\u0430pi.openai.com/v1" in request.describe()[0]


# Money


@pytest.mark.behaviour("14-trust-caps")
@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize(
    ("user", "given", "result"),
    [
        ("max_cost = 0.5", "max_cost = 1000", 0.5), ("max_cost = 0.5", "max_cost = 0.1", 0.1), ("", "max_cost = 3", 3),
        ("max_cost_per_day = 2", "max_cost_per_day = 9", 2), ("confirm_above = 1", "confirm_above = false", 1),
        ("", "confirm_above = false", 0.5), ("", "confirm_above = 0.2", 0.2), ("confirm_above = false", "confirm_above = 7", 7),
    ],
)  # fmt: skip
def test_a_project_only_lowers_the_caps_of_the_user(
    project: Project, trust: bool, user: str, given: str, result: float
) -> None:
    project.write_user(f"[budget]\n{user}\n")
    project.write(f"notify = true\n[budget]\n{given}\n")
    assert project.load(trust=trust).budget[given.partition(" ")[0]] == result


def test_a_flag_replaces_the_cap_of_the_user_and_of_the_project(project: Project) -> None:
    project.write_user("[budget]\nmax_cost = 0.5\n")
    project.write("[budget]\nmax_cost = 0.1\n")
    assert project.load(max_cost=2.0).budget["max_cost"] == 2.0


@pytest.mark.behaviour("14-trust-prices")
@pytest.mark.parametrize(
    ("member", "user", "given", "rates"),
    [
        ("openai:gpt-5.2", "", '"openai:*"', ("1.75", "14")),  # the list price
        ("openai:gpt-5.2", '"openai:*"', '"openai:gpt-5.2"', ("3", "4")),
        ("evil:x", '"evil:x"', '"evil:*"', ("3", "4")),
        ("evil:x", "", '"evil:*"', ("0", "0")),  # no other price is known
    ],
)
def test_a_price_of_a_trusted_project_never_lowers_another_price(
    project: Project, member: str, user: str, given: str, rates: tuple[str, str]
) -> None:
    project.write_user(f"[prices.{user}]\ninput = 3\noutput = 4\n" if user else "")
    project.write(f'[providers.evil]\nbase_url = "http://a.example/v1"\n[prices.{given}]\ninput = 0\noutput = 0\n')
    price = find_price(member, project.load(trust=True))
    assert price is not None
    assert (price.rates.input, price.rates.output) == tuple(map(Decimal, rates))


def test_a_price_of_a_trusted_project_can_be_higher(project: Project) -> None:
    project.write('[prices."openai:gpt-5.2"]\ninput = 100\noutput = 1\n')
    price = find_price("openai:gpt-5.2", project.load(trust=True))
    assert price is not None
    assert (price.rates.input, price.rates.output) == (Decimal(100), Decimal(14))


@pytest.mark.behaviour("14-trust-prices")
@pytest.mark.parametrize(
    ("user", "flag", "known"),
    [
        ("", None, True), ("", 1.0, False), ("max_cost = 1", None, False), ("max_cost = 1", 0.5, False), ("max_cost = 1", 2.0, False),
        ("max_cost_per_day = 1", None, False), ("max_cost_per_day = 1", 2.0, False),
    ],
)  # fmt: skip
def test_under_a_cap_of_the_user_a_price_of_the_project_alone_is_not_known(
    project: Project, user: str, flag: float | None, known: bool
) -> None:
    project.write_user(f"[budget]\n{user}\n")
    project.write('[providers.evil]\nbase_url = "http://a.example/v1"\n[prices."evil:*"]\ninput = 0\noutput = 0\n')
    assert (find_price("evil:x", project.load(trust=True, max_cost=flag)) is not None) is known


# Loopback


@pytest.mark.behaviour("14-loopback-by-address")
@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("::ffff:127.0.0.1", True), ("localhost", True),
        ("127.evil.example", False), ("127.0.0.1.nip.io", False), ("localhost.evil.example", False), ("10.0.0.1", False), ("", False),
        ("0.0.0.0", False), ("::", False), ("::ffff:10.0.0.1", False),
    ],
)  # fmt: skip
def test_loopback_is_decided_by_address(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_name_is_loopback_only_if_all_its_addresses_are(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"box": ["127.0.0.1"], "both": ["127.0.0.1", "192.0.2.1"], "away.localhost": ["192.0.2.1"]}

    def look_up(host: str, *rest: Any, **more: Any) -> list[Any]:
        if host not in answers:
            raise OSError("no such host")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in answers[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    is_loopback.cache_clear()
    assert [is_loopback(name) for name in (*answers, "unknown")] == [True, False, False, False]
    is_loopback.cache_clear()


def test_the_error_names_the_file_to_trust_unless_the_command_finds_it(project: Project) -> None:
    values = {"report_dir": "out"}
    commands = []
    for name in ("council.toml", "pyproject.toml", "other.toml"):
        request = TrustRequest(project.folder / name, project.folder, values, project.folder)
        commands.append(re.findall("`(.*)`", message_for(request.error(), "cli"))[0])
    assert commands == ["council trust", "council trust", "council trust other.toml"]


def test_the_summary_names_three_keys_and_counts_the_others(project: Project) -> None:
    keys = ("report_dir", "search.folder", "store.url", "store.owner", "notify")
    summaries = []
    for n in (3, 4):
        values = dict.fromkeys(keys[:n], "x") | {"providers.lab": None}
        summaries.append(TrustRequest(project.folder / "f", project.folder, values, project.folder).summary)
    assert summaries[0].endswith("(report_dir, search.folder, store.url)")
    assert summaries[1].endswith("(report_dir, search.folder, store.url and 1 more)")
