"""Detection and masking of secrets, and text that only resembles them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.packet.files import has_secret_name, is_lock_file
from council.packet.secret_filter import (
    FINDERS,
    PromptRedactor,
    find_secrets,
    line_number,
    mask_secrets,
    redact_text,
    redact_value,
)
from council.packet.secret_scan import Scan
from tests.packet.fake_secrets import HEX, SECRETS, WORDY, pem, some
from tests.packet.secret_table import Row, load_look_alikes, load_secrets

ROOT = Path(__file__).parents[2]


@pytest.mark.behaviour("packet-content-rules")
@pytest.mark.parametrize("kind", SECRETS)
def test_a_planted_secret_is_found_on_its_line_and_masked(kind: str) -> None:
    line, secret = SECRETS[kind]
    text = f"first line\n\n{line}\nlast line\n"
    found = find_secrets(text)
    assert [line_number(text, one) for one in found] == [3]
    assert secret not in redact_text(text)
    assert "[redacted:" in redact_text(text)
    assert redact_text(text).startswith("first line\n\n") and redact_text(text).endswith("\nlast line\n")


def test_a_finder_finds_nothing_in_a_text_without_its_hints() -> None:
    texts = [row.text for row in (*SHAPES, *LOOK_ALIKES) if row.text]
    texts += [text.replace(" ", "\n") for text in texts]
    scans = [Scan(text) for text in texts]
    assert sum(scan.has(*hints) for scan in scans for hints, _ in FINDERS) > 100
    found = [(hints, scan.text) for scan in scans for hints, find in FINDERS if not scan.has(*hints) and [*find(scan)]]
    assert found == []


# The table in tests/data/secret_shapes.toml

SHAPES, LOOK_ALIKES = load_secrets(), load_look_alikes()
# Kinds of secrets that an earlier review of the filter named.
REVIEWED = {
    "base64-pem", "kubeconfig-client-key-data", "kubernetes-secret-data", "netrc-line", "dsn-libpq", "jdbc-query", "xml-element", "azure-sas",
    "azure-devops-token", "vault-token-file", "secrets-yaml-file", "example-in-github-token",
}  # fmt: skip


def is_refused(row: Row, wrap: Callable[[str], str] = str) -> bool:
    return has_secret_name(row.path) if row.path else bool(find_secrets(wrap(row.text)))


def show_in_diff(text: str, mark: str = "+") -> str:
    lines = "".join(f"{mark}{line}\n" for line in text.split("\n"))
    return f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,9 @@\n context\n{lines}"


@pytest.mark.behaviour("packet-secret-table")
def test_every_shape_of_the_table_is_refused_and_masked() -> None:
    assert len(SHAPES) >= 200 and {row.name for row in SHAPES if row.group == "review"} >= REVIEWED
    assert [row.name for row in SHAPES if not is_refused(row)] == []
    assert [
        row.name
        for row in SHAPES
        if any(line in redact_text(row.text) for secret in row.secrets for line in secret.split("\n"))
    ] == []


@pytest.mark.behaviour("packet-secret-table", "packet-content-rules")
def test_no_look_alike_of_the_table_is_refused() -> None:
    assert len(LOOK_ALIKES) >= 120
    assert [row.name for row in LOOK_ALIKES if is_refused(row)] == []


@pytest.mark.behaviour("packet-secret-table")
@pytest.mark.parametrize(
    ("wrap", "share"),
    [
        (show_in_diff, 1), (lambda text: show_in_diff(text, "-"), 1), (lambda text: show_in_diff(text, " "), 1),
        (lambda text: show_in_diff(text).replace("\n", "\r\n"), 1), (lambda text: text.replace("\n", "\r\n") + "\r\n", 1),
        (lambda text: "text: |\n" + "".join(f"    {line}\n" for line in text.split("\n")), 1),
        (lambda text: f"Use this:\n```\n{text}\n```\n", 1), (lambda text: "".join(f"# {line}\n" for line in text.split("\n")), 0.97),
        (lambda text: json.dumps({"text": text, "n": 1}), 0.97), (lambda text: json.dumps({"body": json.dumps({"text": text})}), 0.94),
    ],
    ids=["diff", "removed", "context", "CRLF diff", "CRLF", "YAML block", "Markdown", "comment", "JSON", "JSON in JSON"],
)  # fmt: skip
def test_the_table_holds_inside_other_formats(wrap: Callable[[str], str], share: float) -> None:
    rows = [row for row in SHAPES if not row.path]
    missed = [row.name for row in rows if not is_refused(row, wrap)]
    assert len(missed) <= (1 - share) * len(rows), missed
    assert [row.name for row in LOOK_ALIKES if is_refused(row, wrap)] == []


@pytest.mark.behaviour("packet-secret-table")
@pytest.mark.parametrize(
    "form",
    [
        "SERVICE={}", "service: {}", "service = '{}'", '{{"service": "{}"}}', "<service>{}</service>", 'Client("{}")',
        "https://host.org/?x={}", "run --x {} --y", "Use `{}`.", "a,{},b", "({})", "service:\n  {}\n", "x = (\n    '{}'\n)",
    ],
)  # fmt: skip
def test_a_key_with_a_known_format_is_found_in_every_syntax(form: str) -> None:
    keys = [row for row in SHAPES if row.secrets == (row.text,)]
    assert len(keys) > 80
    assert [row.name for row in keys if not find_secrets(form.format(row.text))] == []


@pytest.mark.behaviour("packet-secret-table")
def test_a_key_that_is_wrapped_at_the_end_of_a_line_is_masked_to_its_end() -> None:
    key = next(row.text for row in SHAPES if row.name == "openai-project")
    for wrapped in (
        f"{key[:76]}\n{key[76:]}\n",
        f"+{key[:70]}\n+    {key[70:140]}\n+    {key[140:]}\n",
        f'"{key[:80]}"\\\n"{key[80:]}"',
    ):
        shown = redact_text(wrapped)
        assert key[76:90] not in shown and key[-12:] not in shown, shown


@pytest.mark.behaviour("packet-secret-table")
def test_the_filter_does_not_refuse_this_repository() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    found = {}
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.suffix in (".png", ".woff2", ".svg", ".db", ".gz") or is_lock_file(name) or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if has_secret_name(name) or find_secrets(text):
            found[name] = [(secret.kind, line_number(text, secret)) for secret in find_secrets(text)]
    assert found == {}


@pytest.mark.behaviour("packet-content-rules")
@pytest.mark.parametrize("marks", ["", "+", "-", " "])
def test_a_key_block_is_masked_line_by_line_with_its_diff_marks(marks: str) -> None:
    lines = pem().split("\n")
    text = "\n".join(f"{marks}{line}" for line in ["before", *lines, "after"])
    shown = mask_secrets(text, find_secrets(text), margin=len(marks)).split("\n")
    assert shown == [f"{marks}before", *[f"{marks}[redacted:private key]"] * len(lines), f"{marks}after"]


@pytest.mark.parametrize("kind", ["", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_key_block_without_an_end_is_masked_to_its_last_line(kind: str) -> None:
    lines = pem(kind).split("\n")[:-1]
    text = "\n".join([*lines, "", "def code():", "    pass"])
    shown = redact_text(text)
    assert not any(line in shown for line in lines[1:])
    assert shown.endswith("def code():\n    pass")


def test_a_key_in_one_line_of_json_is_masked() -> None:
    line = pem("").replace("\n", "\\n")
    assert some(WORDY + "+/", 64, "2")[:30] not in redact_text(f'{{"private_key": "{line}"}}')


@pytest.mark.parametrize("kind", ["docker-auth", "curl", "mysql", "patterned-slack"])
def test_a_login_inside_json_is_masked(kind: str) -> None:
    line, secret = SECRETS[kind]
    assert secret not in redact_text(json.dumps({"text": f"first\n{line}\nlast"}))


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ('say("The user\'s password=", {}, "ends")', False),  # in quotes is what follows the string
        ('say("password=", {}, "ends")', False),
        ('say("a", password=",{}")', True),
        ("# isn't used: connect(password=',{}')", True),
        ("# it isn't used: connect(password='){}')", True),
        ("say('password=', {}, 'ends')", False),
    ],
)
def test_a_password_is_told_from_what_follows_a_string_that_ends_with_its_name(line: str, is_found: bool) -> None:
    assert bool(find_secrets(line.format("Kd9#" + "mQ2xW"))) is is_found


def test_masking_again_changes_nothing() -> None:
    once = redact_text("\n".join(line for line, _ in SECRETS.values()))
    assert redact_text(once) == once


def redact_prompt(redactor: PromptRedactor, prompt: str) -> str:
    return str(redactor.redact_messages([{"content": prompt}])[0]["content"])


@pytest.mark.behaviour("packet-asked-masked")
def test_prompts_with_the_same_start_are_redacted_as_if_each_was_alone() -> None:
    packet = "".join(f"{n}: {line}\nplain words of a file\n" for n, (line, _) in enumerate(SECRETS.values())) * 4
    redactor = PromptRedactor()
    for seat in ("alpha", "beta", "gamma"):
        for rest in (
            "",
            "\nthe answers\n",
            SECRETS["aws"][0],
            f"\n{pem()}\n{seat}\n",
            f"\n{pem() * 9}"[:-70] + 9 * seat,
        ):
            prompt = f"{packet}Your seat is {seat}.{rest}"
            assert redact_prompt(redactor, prompt) == redact_text(prompt)
    cut = packet[: len(packet) // 2]
    assert redact_prompt(redactor, cut) == redact_text(cut)


@pytest.mark.behaviour("packet-asked-masked")
@pytest.mark.parametrize("kind", sorted(SECRETS))
def test_a_secret_in_any_block_of_a_prompt_is_masked(kind: str) -> None:
    line, secret = SECRETS[kind]
    mark, words = "0123456789ab", "These words have no secret in them, and they are long enough.\n" * 2
    quotation = f"{words}<<<Alpha {mark}\n{{}}\n{mark}>>>\n{words}<<<{{}} {mark}\nBeta\n{mark}>>>\n{{}}"
    for place in range(3):
        prompt = quotation.format(*(line if n == place else "Gamma" for n in range(3)))
        assert redact_prompt(PromptRedactor(), prompt) == redact_text(prompt) and secret not in redact_prompt(
            PromptRedactor(), prompt
        )


REPEATED = "".join(["Xk29", "fLq8", "Zp4w"])


@pytest.mark.behaviour("packet-asked-masked")
def test_a_key_is_masked_wherever_it_is_repeated() -> None:
    plain, shown = f"The door opens with {REPEATED}.", f'password = "{REPEATED}"'
    assert redact_text(plain) == plain  # nothing shows that it is a key
    assert REPEATED not in redact_text(f"{plain}\n{shown}\n{plain}")
    assert REPEATED not in json.dumps(redact_value({"said": plain, "reply": {"findings": [shown, plain]}}))
    messages = [{"role": "system", "content": plain}, {"role": "user", "content": "words " * 1000 + plain + shown}]
    redacted = PromptRedactor().redact_messages(messages)
    assert REPEATED not in json.dumps(redacted) and redacted[0]["content"].startswith("The door opens with [redacted:")


def test_a_short_value_is_masked_only_where_it_is_a_secret() -> None:
    short = "".join(["ti", "ger", "7"])
    assert redact_text(f"password: {short}\na {short} runs").endswith(f"a {short} runs")


@pytest.mark.behaviour("packet-asked-masked")
def test_the_same_start_of_prompts_is_searched_once() -> None:
    packet = "".join(f"def function_{n}(key: str) -> str: return token_{n}\n" for n in range(20_000))
    redactor = PromptRedactor()
    spent = []
    for seat in range(9):
        started = time.thread_time()
        redact_prompt(redactor, f"{packet}\nYour seat is {seat}.")
        spent.append(time.thread_time() - started)
    assert min(spent[1:]) < spent[0] / 5


@given(st.text(max_size=300), st.sampled_from(sorted(SECRETS)), st.text(max_size=300))
@pytest.mark.behaviour("packet-scrub")
def test_known_key_is_masked_in_any_context(before: str, kind: str, after: str) -> None:
    line, secret = SECRETS[kind]
    assert secret not in redact_text(f"{before}\n{line}\n{after}")


@given(st.text(alphabet=st.characters(), max_size=2000))
def test_any_text_can_be_redacted(text: str) -> None:
    assert redact_text(redact_text(text)) == redact_text(text)


@pytest.mark.parametrize(
    "text",
    ["a" * 300_000, "password=" * 33_000, "-----BEGIN PRIVATE KEY-----\n" * 11_000, "://a:" * 60_000,
     "token: '" * 36_000, some(HEX, 10_000, "long") * 30, "eyJ" * 100_000, "sk-" * 100_000, "Authorization: Bearer " * 14_000,
     "curl -u a:" * 30_000, "mysql -p " * 33_000, '"auth": "' * 33_000, "kind: Secret\ndata:\n" * 15_000, "cookie: a=b; " * 23_000,
     "cookie=a=" * 33_000, "machine a login b " * 17_000, "host=a pwd={} ".format("tiger7") * 12_500, "curl --user x " * 21_000, 'token" , "' * 30_000,
     "password>" * 33_000, "secret \\\n" * 30_000, "LS0tLS1CRUdJTi" * 21_000, "a-" * 150_000, "sk-" + "a-1" * 100_000, '\\"' * 150_000,
     "{" + "\\\\" * 150_000, "azure " + "a2" * 150_000, "mnemonic: " + "word " * 60_000, "-----BEGIN PRIVATE KEY-----" + "A" * 280_000,
     "key = a.b" * 33_000, ":$6$" * 75_000, "pass: " * 50_000, '"kty" "d": "' * 25_000, 'password" { ' * 25_000, "Authorization=" * 21_000,
     ("MII" + "A" * 61 + "\n") * 4_600, "https://a:b@" * 25_000],
)  # fmt: skip
def test_300_kilobytes_of_a_hostile_text_are_scanned_without_delay(text: str) -> None:
    started = time.thread_time()  # CPU time of this thread only
    find_secrets(text)
    assert time.thread_time() - started < 3
