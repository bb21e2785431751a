"""Detection and masking of secrets, and text that only resembles them."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.packet.secret_filter import find_secrets, line_number, mask_secrets, redact_text
from tests.packet.fake_secrets import HEX, SECRETS, WORDY, pem, some


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


@pytest.mark.behaviour("packet-content-rules")
@pytest.mark.parametrize(
    "text",
    [
        'api_key = "changeme"', 'password = "changeme123!A"', 'token = "${GITHUB_TOKEN}"', "TOKEN=$(cat token)",
        'secret = "{{ vault_secret_value_01 }}"', "export OPENAI_API_KEY=sk-...", 'key = "sk-xxxxxxxxxxxxxxxxxxxxxxxx"',
        "ANTHROPIC_API_KEY=sk-ant-your-key-here-please-0", "AKIAIOSFODNN7EXAMPLE", 'password = "Password123!"',
        "postgres://user:password@localhost/db", "postgres://app:${DB_PASSWORD}@db/app", "redis://guest:guest@host",
        "https://user:<password>@host/path", 'token = os.environ["TOKEN_2024_VALUE"]', "token = tokens[index1].value",
        "secret_name: projects/1234/secrets/db-main-01", "password_hash = '5f4dcc3b5aa765d61d8327deb882cf99'",
        "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----", "private_key: ed25519.Ed25519PrivateKey",
        "The token-bucket algorithm refills 10 tokens a second.", 'raise Error("password: at least 12 characters")',
        "curl -u user:password https://host", "curl -u $USER:$PASS https://host", "curl -u user:<password> x", "sudo -u ada:staff ls",
        "mysql -u root -p app", "mysql -p$PASS", "docker run --name mysql -p3306:3306 mysql:8", "mkdir -pdeep/folder", "mysql -ppassword",
        '"auth": "required"', '"auth": "authentication"', "gsk_render_node_get_opaque_bounds", "sk-estimator-doc-link-container", "xoxb-your-token-goes-right-here",
        "sk-proj-" + "A" * 40, "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad", 'token_url = "https://login.host.org/oauth2/v2/token"',
    ],
)  # fmt: skip
def test_text_that_only_resembles_a_secret_is_not_one(text: str) -> None:
    assert find_secrets(text) == []


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


def test_masking_again_changes_nothing() -> None:
    once = redact_text("\n".join(line for line, _ in SECRETS.values()))
    assert redact_text(once) == once


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
     "curl -u a:" * 30_000, "mysql -p " * 33_000, '"auth": "' * 33_000],
)  # fmt: skip
def test_300_kilobytes_are_scanned_without_delay(text: str) -> None:
    started = time.thread_time()  # CPU time of this thread only
    find_secrets(text)
    assert time.thread_time() - started < 3
