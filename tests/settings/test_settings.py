"""Settings: precedence, origins and validation errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from council.errors import ConfigError
from council.settings import SEAT_FLAG, Settings, extend_timeout, flatten, load_settings
from council.settings.catalogue import model_id
from council.settings.config_files import cache_folder, config_folder, data_folder
from council.settings.schema import PROVIDER_KEYS
from tests.paths import ROOT
from tests.trusted_project import trust_project

SIM = '[providers.sim]\nbase_url = "http://127.0.0.1:8080/v1"\n'


class ConfigFolder:
    """Temporary project folder, user configuration folder and environment."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.user = root / "config" / "council"
        self.env = {"XDG_CONFIG_HOME": str(root / "config")}
        self.project.mkdir()
        self.user.mkdir(parents=True)

    def write(self, text: str, name: str = "council.toml") -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        trust_project(self.project, **self.env)
        return path

    def write_user(self, text: str) -> Path:
        path = self.user / "config.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, **how: Any) -> Settings:
        return load_settings(self.project, self.env, **how)

    def refusal(self, **how: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(**how)
        return str(caught.value)


@pytest.fixture
def configs(tmp_path: Path) -> ConfigFolder:
    return ConfigFolder(tmp_path)


@pytest.mark.behaviour("00-config-precedence")
def test_each_source_overrides_lower_ones_and_is_named_as_origin(configs: ConfigFolder) -> None:
    assert (configs.load().timeout, configs.load().seat_timeout()) == (None, 120)
    user = configs.write_user("timeout = 10")
    assert _with_origin(configs.load()) == (10, str(user))
    project = configs.write("timeout = 20")
    assert _with_origin(configs.load()) == (20, str(project))
    assert _with_origin(configs.load(flags={"profile": "fast"})) == (60, "flag --profile=fast")
    configs.env["COUNCIL_TIMEOUT"] = "30"
    assert _with_origin(configs.load(flags={"profile": "fast"})) == (30, "environment COUNCIL_TIMEOUT")
    assert _with_origin(configs.load(flags={"timeout": 40})) == (40, "flag --timeout")


def _with_origin(settings: Settings) -> tuple[float | None, str]:
    return settings.timeout, str(settings.origins["timeout"])


@pytest.mark.behaviour("00-config-precedence")
def test_keys_are_merged_one_by_one_not_table_by_table(configs: ConfigFolder) -> None:
    configs.write_user('[providers.sim]\nbase_url = "http://user.example/v1"\nvendor = "house"')
    configs.write(SIM)
    sim = configs.load().providers["sim"]
    assert (sim.base_url, sim.vendor) == ("http://127.0.0.1:8080/v1", "house")


def test_full_example_loads(configs: ConfigFolder) -> None:
    configs.write("""
        [providers.sim]
        wire = "openai"
        base_url = "http://127.0.0.1:8080/v1"
        api_key_env = "SIM_API_KEY"
        vendor = "sim"
        max_connections = 16
        structured = "json_schema"
        [models]
        default = "sim:m1"
        strong = "sim:m2"
        fast = "sim:m3"
        other = "simb:m2"
        [seats.alpha]
        model = "sim:m1"
        fallback = ["sim:m2"]
        [chair]
        model = "sim:m2"
        fallback = []
        [rosters.board]
        seats = [{name = "cfo", lens = "cash", stance = "Who pays?", style = "dry", model = "sim:m1"}]
        [search]
        provider = "tavily"
        [budget]
        max_cost = 1.00
    """)
    settings = configs.load()
    assert settings.models == {"default": "sim:m1", "strong": "sim:m2", "fast": "sim:m3", "other": "simb:m2"}
    assert settings.seats["alpha"].fallback == ("sim:m2",)
    assert (settings.chair.model, settings.chair.fallback) == ("sim:m2", ())
    assert settings.rosters["board"]["seats"][0]["lens"] == "cash"
    assert (settings.search["provider"], settings.search["max_results"]) == ("tavily", 5)
    assert settings.budget["max_cost"] == 1.0
    assert settings.providers["sim"].api_key_env == "SIM_API_KEY"


def test_vendor_defaults_to_the_provider_name(configs: ConfigFolder) -> None:
    configs.write(SIM)
    sim = configs.load().providers["sim"]
    assert (sim.vendor, sim.wire, sim.max_connections, sim.structured) == ("sim", "openai", 16, "json_schema")


def test_built_in_providers_exist_without_a_file(configs: ConfigFolder) -> None:
    settings = configs.load()
    assert list(settings.providers) == ["anthropic", "openai", "google", "openrouter", "ollama"]
    assert [settings.providers[name].wire for name in ("anthropic", "openai", "google")] == [
        "anthropic",
        "openai-responses",
        "google",
    ]
    assert settings.providers["openai"].token_field == "max_completion_tokens"
    assert settings.report_dir is None
    assert not settings.is_set("providers.ollama")


def test_empty_table_configures_a_provider(configs: ConfigFolder) -> None:
    configs.write("[providers.ollama]")
    assert configs.load().is_set("providers.ollama")


@pytest.mark.behaviour("00-config-base-url")
@pytest.mark.parametrize("text", ["[providers.sim]", "[providers.sim]\nwire = 'openai'\napi_key_env = 'SIM_API_KEY'"])
def test_provider_without_base_url_is_a_one_line_error(configs: ConfigFolder, text: str) -> None:
    path = configs.write(text)
    refusal = configs.refusal()
    assert refusal.startswith(f"{path}: [providers.sim] has no base_url")
    assert "\n" not in refusal


def test_first_set_key_variable_of_a_vendor_is_used(configs: ConfigFolder) -> None:
    assert configs.load().providers["google"].api_key_env == "GEMINI_API_KEY"
    configs.env["GOOGLE_API_KEY"] = "k"
    assert configs.load().providers["google"].api_key_env == "GOOGLE_API_KEY"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("http://box:9000/", "http://box:9000/v1"),
        ("https://box.example", "https://box.example/v1"),
    ],
)
def test_ollama_host_sets_the_base_url(configs: ConfigFolder, host: str, url: str) -> None:
    configs.env["OLLAMA_HOST"] = host
    settings = configs.load()
    assert settings.providers["ollama"].base_url == url
    assert settings.is_set("providers.ollama")


def test_configured_ollama_url_overrides_ollama_host(configs: ConfigFolder) -> None:
    configs.env["OLLAMA_HOST"] = "0.0.0.0"
    configs.write('[providers.ollama]\nbase_url = "http://box:11434/v1"')
    assert configs.load().providers["ollama"].base_url == "http://box:11434/v1"


@pytest.mark.behaviour("00-config-seat-flag")
def test_a_seat_flag_changes_the_model_and_keeps_the_configured_fallback(configs: ConfigFolder) -> None:
    configs.write('[seats.alpha]\nmodel = "sim:m1"\nfallback = ["sim:m2"]')
    alpha = configs.load(flags={"seats": {"alpha": "sim:m9"}}).seats["alpha"]
    assert (alpha.model, alpha.fallback) == ("sim:m9", ("sim:m2",))


def test_a_seat_flag_can_name_the_chair(configs: ConfigFolder) -> None:
    settings = configs.load(flags={"seats": {"chair": "sim:m9"}, "max_cost": 0.5})
    assert settings.chair.model == "sim:m9"
    assert settings.budget["max_cost"] == 0.5
    assert str(settings.origins["chair.model"]) == "flag --seat"
    assert settings.is_set_by_flag("chair.model", SEAT_FLAG)
    assert not settings.is_set_by_flag("timeout", SEAT_FLAG)


def test_unset_and_unrelated_flags_change_nothing(configs: ConfigFolder) -> None:
    assert configs.load(flags={"timeout": None, "verbose": True, "seats": {}}) == configs.load()


class TestProjectFile:
    def test_nearest_file_up_to_the_repository_root_is_used(self, configs: ConfigFolder) -> None:
        configs.write("timeout = 1", "../council.toml")
        (configs.project / ".git").mkdir()
        deep = configs.project / "a" / "b"
        deep.mkdir(parents=True)
        assert load_settings(deep, configs.env).timeout is None
        configs.write("timeout = 2")
        assert load_settings(deep, configs.env).timeout == 2
        configs.write("timeout = 3", "a/council.toml")
        assert load_settings(deep, configs.env).timeout == 3

    @pytest.mark.behaviour("13-config-outside-git")
    def test_outside_a_repository_the_search_ends_at_the_home_folder(self, configs: ConfigFolder) -> None:
        deep = configs.project / "a" / "b"
        deep.mkdir(parents=True)
        configs.write("timeout = 1", "../council.toml")
        home = {**configs.env, "HOME": str(configs.project)}
        assert load_settings(deep, home).timeout is None
        configs.write("timeout = 2")
        assert load_settings(deep, home).timeout == 2
        configs.write("timeout = 3", "a/council.toml")
        assert load_settings(deep, home).timeout == 3

    @pytest.mark.behaviour("13-config-outside-git")
    def test_outside_the_home_folder_all_parents_are_searched(self, configs: ConfigFolder) -> None:
        configs.write("timeout = 1", "../council.toml")
        deep = configs.project / "a" / "b"
        deep.mkdir(parents=True)
        assert load_settings(deep, {**configs.env, "HOME": str(deep / "c")}).timeout == 1

    @pytest.mark.behaviour("13-config-outside-git")
    def test_a_home_folder_behind_a_link_ends_the_search(self, configs: ConfigFolder) -> None:
        configs.write("timeout = 1", "../council.toml")
        link = configs.project.parent / "home"
        link.symlink_to(configs.project)
        assert load_settings(configs.project, {**configs.env, "HOME": str(link)}).timeout is None

    @pytest.mark.behaviour("13-config-outside-git")
    @pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
    @pytest.mark.parametrize("name", ["council.toml", "pyproject.toml"])
    def test_files_of_other_users_are_ignored(self, configs: ConfigFolder, name: str) -> None:
        configs.write("timeout = 1", "../council.toml")
        path = configs.write("[tool.council]\ntimeout = 2" if name == "pyproject.toml" else "timeout = 2", name)
        assert load_settings(configs.project, configs.env).timeout == 2
        os.chown(path, 12345, -1)
        settings = load_settings(configs.project, configs.env)
        assert (settings.timeout, settings.ignored_file) == (1, path if name == "council.toml" else None)
        settings = load_settings(configs.project, configs.env, config=path)
        assert (settings.timeout, settings.ignored_file) == (2, None)  # named by the user

    def test_pyproject_is_used_without_council_toml(self, configs: ConfigFolder) -> None:
        configs.write("[tool.council]\ntimeout = 5", "pyproject.toml")
        assert configs.load().timeout == 5
        configs.write("timeout = 6")
        assert configs.load().timeout == 6

    def test_pyproject_without_our_table_is_skipped(self, configs: ConfigFolder) -> None:
        (configs.project / ".git").mkdir()
        configs.write("timeout = 7")
        configs.write("this is = = not TOML", "sub/pyproject.toml")
        assert load_settings(configs.project / "sub", configs.env).timeout == 7

    @pytest.mark.behaviour("00-config-file-replaces")
    def test_named_file_replaces_the_project_file_only(self, configs: ConfigFolder) -> None:
        configs.write_user('report_dir = "mine"')
        configs.write("timeout = 5\n[budget]\nmax_cost = 1")
        configs.env["COUNCIL_CONFIG"] = str(configs.write("timeout = 6", "by-variable.toml"))
        assert configs.load().timeout == 6
        settings = configs.load(config=configs.write("timeout = 7", "by-flag.toml"))
        assert (settings.timeout, "max_cost" in settings.budget, settings.report_dir) == (7, False, "mine")

    def test_a_named_file_that_is_missing_is_an_error(self, configs: ConfigFolder) -> None:
        assert "nowhere.toml" in configs.refusal(config=Path("nowhere.toml"))
        configs.env["COUNCIL_CONFIG"] = "elsewhere.toml"
        assert "elsewhere.toml" in configs.refusal()


MISTAKES = [
    ("timeuot = 3", '"timeuot"', '"timeout"'),
    ("[provider.sim]", '"provider"', '"providers"'),
    ("[providers.sim]\nwires = 'openai'", '"providers.sim.wires"', '"providers.sim.wire"'),
    ("[seats.alpha]\nmodell = 'x:y'", '"seats.alpha.modell"', '"seats.alpha.model"'),
    ("[rosters.b]\nseats = [{nam = 'x'}]", '"rosters.b.seats.nam"', '"rosters.b.seats.name"'),
    ("[general]\ndeliberat = false", '"general.deliberat"', '"general.deliberate"'),
]


@pytest.mark.behaviour("00-config-unknown-key")
@pytest.mark.parametrize(("text", "wrong", "right"), MISTAKES)
def test_unknown_key_error_suggests_the_closest_key(configs: ConfigFolder, text: str, wrong: str, right: str) -> None:
    path = configs.write(text)
    said = configs.refusal()
    assert str(path) in said
    assert f"unknown key {wrong}" in said
    assert f"did you mean {right}" in said


@pytest.mark.behaviour("00-config-unknown-key")
def test_an_unknown_key_in_the_users_file_names_that_file(configs: ConfigFolder) -> None:
    path = configs.write_user("tiemout = 3")
    assert str(path) in configs.refusal()


WRONG = [
    ("timeout = 'soon'", '"timeout" is "soon"'),
    ("timeout = true", '"timeout" is "True"'),
    ("timeout = 0", "above 0"),
    ("timeout = inf", "above 0"),
    ("chair = 'sim:m1'", "must be a table"),
    ("[seats.alpha]\nfallback = 'sim:m1'", "a list of members"),
    ("[seats.chair]\nmodel = 'sim:m1'", "write [chair]"),
    ("[seats.'a b']\nmodel = 'sim:m1'", "letters, digits"),
    ("[providers.sim]\nwire = 'grpc'", "one of openai, openai-responses, anthropic, google"),
    ("[providers.sim]\nbase_url = '127.0.0.1'", "begins with http"),
    ("[providers.sim]\nbase_url = 'http://127.0.0.1:99999/v1'", "a valid host and port"),
    ("[providers.sim]\nbase_url = 'http://[::1/v1'", "a valid host and port"),
    ("[providers.sim]\nbase_url = 'http://:8080/v1'", "a valid host and port"),
    ("[prices.'sim:m1']\ninput = '1.0'", 'is the string "1.0"'),
    ("[providers.sim]\nmax_connections = 0", "from 1 to 1000"),
    ("[providers.local]", "is a reserved name"),
    ("[providers.'*']", "letters, digits"),
    ("[rosters.b]\nseats = 3", "a list of tables"),
    ("[search]\nmax_results = 11", "from 1 to 10"),
    ("[search]\nprovider = 'bing'", "one of tavily, brave, searxng, files"),
    ("a = = b", "not valid TOML"),
]


@pytest.mark.behaviour("00-config-wrong-value")
@pytest.mark.parametrize(("text", "words"), WRONG)
def test_invalid_value_is_a_one_line_error(configs: ConfigFolder, text: str, words: str) -> None:
    path = configs.write(text)
    said = configs.refusal()
    assert words in said
    assert str(path) in said
    assert "\n" not in said


@pytest.mark.behaviour("00-config-wrong-value")
@pytest.mark.parametrize(
    ("line", "accepted", "refused", "words"),
    [
        ("[providers.openai]\nmax_connections = {}", (1, 1000), (0, 1001), "from 1 to 1000"),
        ("packet_tokens = {}", (1000, 1_000_000), (999, 1_000_001), "from 1000 to 1000000"),
        ("[search]\nmax_results = {}", (1, 10), (0, 11), "from 1 to 10"),
        ("[store]\nkeep_days = {}", (1, 36_500), (0, 36_501), "from 1 to 36500"),
        ("[store]\nlease_seconds = {}", (1, 3600), (0.9, 3600.1), "from 1 to 3600"),
        ("[providers.openai]\nrate = {}", (0.001,), (0,), "above 0"),
        ("[providers.openai]\nbackoff = {}", (0,), (-0.001,), "0 or more"),
        ("[budget]\nmax_cost = {}", (0,), (-0.001,), "0 or more"),
        ("[budget]\nconfirm_above = {}", (0, "false"), (-0.001, "true"), "0 or more, or false"),
        ("[prices.'sim:m1']\ninput = {}\noutput = 1", (0,), (-0.001,), "0 or more"),
    ],
)
def test_a_number_is_accepted_up_to_the_limits_that_its_error_names(
    configs: ConfigFolder, line: str, accepted: tuple[Any, ...], refused: tuple[Any, ...], words: str
) -> None:
    for value in accepted:
        configs.write_user(line.format(value))
        configs.load()
    for value in refused:
        configs.write_user(line.format(value))
        assert words in configs.refusal()


def test_file_that_is_not_text_is_refused(configs: ConfigFolder) -> None:
    (configs.project / "council.toml").write_bytes(b"\xff\xfe\x00")
    assert "cannot read the configuration file" in configs.refusal()


SECRETS = [
    "[providers.sim]\napi_key = 'sk-verysecret'",
    "[search]\nsearchApiKey = 'sk-verysecret'",
    "[providers.sim]\napi_key_env = 'sk-verysecret'",
    "[providers.sim]\nbase_url = 'http://me:sk-verysecret@host/v1'",
    "token = 'sk-verysecret'",
]


@pytest.mark.behaviour("00-config-no-secrets")
@pytest.mark.parametrize("text", SECRETS)
def test_secret_in_a_file_is_refused_and_not_printed(configs: ConfigFolder, text: str) -> None:
    configs.write(text)
    said = configs.refusal()
    assert "verysecret" not in said
    assert "key" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [("COUNCIL_TIMEOUT", "soon"), ("COUNCIL_EXPLORER_TIMEOUT", "-1"), ("COUNCIL_JUDGE_COUNT", "2.5")],
)
def test_invalid_variable_is_named_in_the_error(configs: ConfigFolder, name: str, value: str) -> None:
    configs.env[name] = value
    said = configs.refusal()
    assert name in said
    assert f'"{value}"' in said


@pytest.mark.behaviour("002-environment-variables")
def test_judges_variables_have_defaults_and_can_be_set(configs: ConfigFolder) -> None:
    assert dict(configs.load().variables) == {
        "COUNCIL_CLAUDE_MODEL": "sonnet",
        "COUNCIL_CODEX_MODEL": "gpt-5.3-codex",
        "COUNCIL_EXPLORER_MODEL": "sonnet",
        "COUNCIL_EXPLORER_TIMEOUT": "60",
        "COUNCIL_R2_TIMEOUT": "90",
    }
    configs.env |= {"COUNCIL_CLAUDE_MODEL": "opus", "COUNCIL_JUDGE_COUNT": "4", "COUNCIL_R2_TIMEOUT": ""}
    settings = configs.load()
    assert (settings.variables["COUNCIL_CLAUDE_MODEL"], settings.variables["COUNCIL_JUDGE_COUNT"]) == ("opus", "4")
    assert settings.is_set("variables.COUNCIL_CLAUDE_MODEL")
    assert not settings.is_set("variables.COUNCIL_R2_TIMEOUT")


@pytest.mark.behaviour("00-timeout-reasoning")
def test_reasoning_members_get_longer_unless_a_timeout_is_set(configs: ConfigFolder) -> None:
    assert (configs.load().seat_timeout(), configs.load().seat_timeout(reasoning=True)) == (120, 300)
    fast = configs.load(flags={"profile": "fast"})
    assert (fast.seat_timeout(), fast.seat_timeout(reasoning=True)) == (60, 300)
    assert configs.load(flags={"timeout": 40}).seat_timeout(reasoning=True) == 40
    configs.env["COUNCIL_TIMEOUT"] = "50"
    assert configs.load().seat_timeout(reasoning=True) == 50


@pytest.mark.behaviour("00-timeout-everywhere")
def test_a_timeout_replaces_those_of_phases_unless_their_variable_is_set(configs: ConfigFolder) -> None:
    assert configs.load().phase_timeouts() == {"explorer": 60, "r2": 90}
    assert configs.load(flags={"profile": "fast"}).phase_timeouts() == {"explorer": 60, "r2": 90}
    assert configs.load(flags={"timeout": 1500}).phase_timeouts() == {}
    configs.write("timeout = 200")
    assert configs.load().phase_timeouts() == {}
    configs.env["COUNCIL_R2_TIMEOUT"] = "75"
    assert configs.load(flags={"timeout": 1500}).phase_timeouts() == {"r2": 75}


@pytest.mark.behaviour("40-thinking-members-have-300-seconds")
def test_only_a_timeout_that_the_user_set_is_not_extended_for_a_member_that_thinks(configs: ConfigFolder) -> None:
    found = configs.load().phase_timeouts()
    assert extend_timeout(found["r2"], thinks=True) == 300
    configs.env["COUNCIL_R2_TIMEOUT"] = "75"
    assert extend_timeout(configs.load().phase_timeouts()["r2"], thinks=True) == 75
    assert configs.load().member_timeout("openai:gpt-5.2") == 300
    assert configs.load(flags={"effort": "high"}).member_timeout("sim:m1") == 300
    assert configs.load(flags={"timeout": 40, "effort": "high"}).member_timeout("sim:m1") == 40
    assert configs.load().member_timeout("human") == 3600


def test_an_unknown_profile_lists_the_known_ones(configs: ConfigFolder) -> None:
    said = configs.refusal(flags={"profile": "cheap"})
    assert '"cheap"' in said
    assert "thorough, balanced, fast" in said


@pytest.mark.behaviour("00-config-origin")
def test_every_value_is_listed_with_its_origin(configs: ConfigFolder) -> None:
    path = configs.write(SIM + '[seats.alpha]\nmodel = "sim:m1"')
    rows = {key: (value, origin) for key, value, origin in flatten(configs.load(flags={"seats": {"beta": "sim:m2"}}))}
    assert rows["providers.sim.base_url"] == ("http://127.0.0.1:8080/v1", str(path))
    assert rows["seats.alpha.model"] == ("sim:m1", str(path))
    assert rows["seats.beta.model"] == ("sim:m2", "flag --seat")
    assert rows["timeout"] == (120, "built-in")
    assert rows["general.deliberate"] == (True, "built-in")
    assert "providers.sim" not in rows


def test_folders_follow_their_variables(tmp_path: Path) -> None:
    own, shared = {"COUNCIL_DATA": str(tmp_path), "COUNCIL_CACHE": str(tmp_path)}, str(tmp_path / "x")
    assert data_folder(own) == cache_folder(own) == tmp_path
    assert data_folder({"XDG_DATA_HOME": shared}) == tmp_path / "x" / "council"
    assert cache_folder({"XDG_CACHE_HOME": shared}) == tmp_path / "x" / "council"
    assert config_folder({"XDG_CONFIG_HOME": shared}) == tmp_path / "x" / "council"
    assert data_folder({}).name == "council"


@pytest.mark.parametrize(
    ("member", "sent"),
    [
        ("anthropic:claude-opus-4.6", "claude-opus-4-6"),
        ("anthropic:sonnet", "claude-sonnet-5-5"),
        ("openrouter:gpt-5.2", "openai/gpt-5.2"),
        ("openrouter:meta-llama/llama-4", "meta-llama/llama-4"),
        ("sim:gpt-5.2", "gpt-5.2"),
        ("sim:m1", "m1"),
        ("ollama:qwen3:8b", "qwen3:8b"),
    ],
)
def test_known_model_is_sent_with_its_providers_id(member: str, sent: str) -> None:
    assert model_id(member) == sent


def test_reading_settings_imports_nothing_heavy() -> None:
    code = "import sys, council.settings; print(*{'pydantic', 'aiohttp', 'platformdirs', 'difflib'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == ""


def test_every_provider_key_is_documented() -> None:
    told = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert [key for key in PROVIDER_KEYS if f"`{key}`" not in told] == []
