"""Fake secrets, one of each kind. Generated at run time, so that no file of this project contains one."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Iterable

WORDY = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"


def some(letters: str, n: int, salt: str) -> str:
    """Return random letters with at least one digit, the same in every run."""
    dice = random.Random(salt)
    made = [dice.choice(letters) for _ in range(n)]
    made[dice.randrange(n)] = "7"
    return "".join(made)


def _key(prefix: str, letters: str, n: int, suffix: str = "") -> str:
    return prefix + some(letters, n, prefix) + suffix


def pem(kind: str = "RSA ") -> str:
    body = "\n".join(some(WORDY + "+/", 64, f"{kind}{n}") for n in range(6))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


# The text around each secret, and the part that must never be shown.
SECRETS: dict[str, tuple[str, str]] = {
    name: (line.format(secret), secret)
    for name, line, secret in [
        ("aws", "key = {}", _key("AKIA", UPPER, 16)),
        ("aws-secret", 'aws_secret_access_key = "{}"', some(WORDY + "+/", 40, "aws")),
        ("github", "token {}", _key("ghp_", WORDY, 36)),
        ("github-fine", "use {} here", _key("github_pat_", WORDY, 70)),
        ("gitlab", "{}", _key("glpat-", WORDY, 20)),
        ("slack", 'bot("{}")', _key("xoxb-", WORDY, 40)),
        ("slack-webhook", "curl https://{}", _key("hooks.slack.com/services/", WORDY, 40)),
        ("stripe", "stripe.api = '{}'", _key("sk_live_", WORDY, 24)),
        ("google", "maps?key={}", _key("AIza", WORDY, 35)),
        ("google-oauth", "{}", _key("GOCSPX-", WORDY, 28)),
        ("openai", "OpenAI({})", _key("sk-", WORDY, 48)),
        ("openai-project", "{}", _key("sk-proj-", WORDY, 60)),
        ("anthropic", "x-api-key: {}", _key("sk-ant-api03-", WORDY, 90)),
        ("huggingface", "login {}", _key("hf_", WORDY, 34)),
        ("groq", "{}", _key("gsk_", WORDY, 50)),
        ("npm", "//packages.host.org/:_authToken={}", _key("npm_", WORDY, 36)),
        ("pypi", "password = {}", _key("pypi-", WORDY, 80)),
        ("docker", "{}", _key("dckr_pat_", WORDY, 27)),
        ("sendgrid", "{}", _key("SG.", WORDY, 22, "." + some(WORDY, 43, "sg"))),
        ("twilio", "sid {}", _key("SK", HEX, 32)),
        ("digitalocean", "{}", _key("dop_v1_", HEX, 64)),
        ("shopify", "{}", _key("shpat_", HEX, 32)),
        ("databricks", "{}", _key("dapi", HEX, 32)),
        ("vault", "{}", _key("hvs.", WORDY, 40)),
        ("telegram", "{}", "123987456:AA" + some(WORDY, 33, "telegram")),
        ("age", "{}", _key("AGE-SECRET-KEY-1", UPPER, 58)),
        ("azure", "DefaultEndpoints;{};x", _key("AccountKey=", WORDY, 86, "==")),
        ("jwt", "cookie={}", f"eyJ{some(WORDY, 30, 'a')}.eyJ{some(WORDY, 40, 'b')}.{some(WORDY, 43, 'c')}"),
        ("url", "db = 'postgres://app:{}@db.internal:5432/app'", some(WORDY, 18, "url")),
        ("bearer", "Authorization: Bearer {}", some(WORDY, 40, "bearer")),
        ("assigned", 'client_secret: "{}"', some(WORDY, 32, "assigned")),
        ("password", 'db_password = "{}"', "Tr0ub4dor&" + some(WORDY, 3, "pw")),
        (
            "docker-auth",
            '{{"auths": {{"registry.io": {{"auth": "{}"}}}}}}',
            base64.b64encode(b"ada:correct-horse").decode(),
        ),
        ("curl", "curl -sS -u ada:{} https://host.org", "hunter2!"),
        ("curl-user", "curl --user 'ada:{}' https://host.org", "letmein9"),
        ("mysql", "mysqldump -h db -uroot -p{} app", "hunter2!"),
        ("patterned", "{}", "sk-proj-" + "a1b2" * 10),
        ("patterned-letters", "{}", "sk-proj-" + "abcd" * 10),
        ("patterned-slack", "{}", "-".join(["xoxb", "123456789012", "1234567890123", "abcdefghijklmnopqrstuvwx"])),
        ("env-style", "SIGNING_KEY={}", some(HEX, 40, "env")),
    ]
}
SECRETS["private-key"] = (pem(), pem().split("\n")[2])


def secrets_for(way: str, ways: Iterable[str], share: int) -> list[tuple[str, tuple[str, str]]]:
    """Return every secret for the first way into a packet, and one in `share` for each other one: all share one
    filter.
    """
    every, place = list(SECRETS.items()), list(ways).index(way)
    return every[place % share :: share] if place else every
