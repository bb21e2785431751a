"""Error responses: map a status, vendor codes and a message to a kind of the fault table."""

from __future__ import annotations

import json
import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from council.foreign import one_line as one_line

KINDS = {401: "auth", 402: "quota", 403: "auth", 404: "model", 405: "endpoint", 407: "auth", 408: "overload", 413: "size", 429: "rate",
         502: "cut", 503: "overload", 504: "cut", 520: "cut", 521: "overload", 522: "overload", 523: "overload",
         524: "cut", 529: "overload"}  # fmt: skip
NO_MONEY_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance",
                  "billing_error", "enforced_spend_limit_reached"}  # fmt: skip
REFUSING_CODES = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
NO_MONEY = re.compile(
    r"billing|current quota|credit balance|(insufficient|not enough|no|out of) (credit|balance|fund)|payment"
    r"|(spend|usage) limits?\b",
    re.I,
)
THROTTLED = re.compile(
    r"per[ -](minute|second|hour|day)|rate.?limit|throttl|too many requests|(try again|retry) in|please wait|\b[rt]pm\b",
    re.I,
)
TOO_LONG = re.compile(
    r"context.?(length|window|size|limit)|maximum (context|prompt|input)|reduce the length|too many tokens"
    r"|(prompt|input|message|request|payload|body)\w* .{0,60}too (long|large)"
    r"|(input|prompt)\w* .{0,60}exceed|exceeds? the (maximum )?(number of )?(input )?tokens|tokens.{0,60}must be <=",
    re.I,
)
OUTPUT_SIZE = re.compile(r"(completion|output) tokens|max_(completion_)?tokens", re.I)
NO_MODEL = re.compile(r"model.{0,80}(not found|does not exist|not exist|unknown)|(unknown|no such|invalid) model", re.I)
# The URL is wrong, not the model name.
NO_PLACE = re.compile(
    r"\W*(404\W*)?((page|file|route|path|url|resource)\W+)?not found\W*|.*\b(invalid url|requested url|cannot post)\b.*",
    re.I | re.S,
)
NO_KEY = re.compile(
    r"api.?key.{0,40}(invalid|not valid|incorrect|missing)|(invalid|incorrect|missing).{0,20}api.?key", re.I
)
TAGS = re.compile(r"<(script|style|head)\b.*?</\1>|<[^>]*>", re.I | re.S)


class Complaint(NamedTuple):
    """Parsed error body."""

    codes: frozenset[str]
    message: str
    waits: float | None = None  # seconds, if the body states them
    page: bool = False  # the body is HTML


def complaint(body: bytes, otherwise: str = "") -> Complaint:
    """Parse an error body in any of the common shapes."""
    text = body.decode(errors="replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return Complaint(frozenset(), TAGS.sub(" ", text).strip() or otherwise, page=text.lstrip()[:1] == "<")
    return complaint_in(found, otherwise)


def complaint_in(found: Any, otherwise: str = "") -> Complaint:
    if isinstance(found, list) and found:
        found = found[0]
    if isinstance(found, dict) and found.get("error"):
        found = found["error"]
    if not isinstance(found, dict):
        return Complaint(frozenset(), str(found or otherwise))
    codes = {str(found[name]) for name in ("code", "type", "status") if found.get(name)}
    waits: float | None = None
    for detail in details_of(found):
        codes |= {str(detail[name]) for name in ("error_code", "reason", "quotaId") if detail.get(name)}
        waits = seconds(str(detail.get("retryDelay", "")).removesuffix("s")) if waits is None else waits
    message = str(found.get("message") or found.get("detail") or otherwise or found)
    return Complaint(frozenset(code.lower() for code in codes), message, waits)


def details_of(error: Any) -> list[Any]:
    """Return the detail objects of an error, including nested violations."""
    details = error.get("details")
    objects = [item for item in (details if isinstance(details, list) else [details]) if isinstance(item, dict)]
    nested = [item.get("violations") for item in objects]
    return objects + [row for rows in nested if isinstance(rows, list) for row in rows if isinstance(row, dict)]


def kind_of(status: int, said: Complaint, waits: float | None) -> str:
    """Return the fault kind. Codes take precedence over messages, and throttling messages over other messages."""
    if status in (400, 402, 403, 429) and out_of_money(status, said, waits):
        return "quota"
    if status in (400, 413, 422):
        return kind_of_bad_request(said, KINDS.get(status, "parameter"))
    if status == 404 and "model_not_found" not in said.codes and (said.page or NO_PLACE.fullmatch(said.message)):
        return "endpoint"
    return KINDS.get(status) or ("server" if status >= 500 else "parameter" if status >= 400 else "endpoint")


def out_of_money(status: int, said: Complaint, waits: float | None) -> bool:
    if said.codes & NO_MONEY_CODES or any("perday" in code for code in said.codes):  # daily limit: too long to wait
        return True
    # Some vendors mention quota and billing in rate-limit errors, but then they state how long to wait.
    is_throttled = status == 429 and (waits is not None or THROTTLED.search(said.message))
    return bool(NO_MONEY.search(said.message)) and not is_throttled


def kind_of_bad_request(said: Complaint, otherwise: str) -> str:
    message = said.message
    if THROTTLED.search(message):
        return "rate"
    if "context_length_exceeded" in said.codes or "exceed_context_size_error" in said.codes:
        return "size"
    if TOO_LONG.search(message) and (not OUTPUT_SIZE.search(message) or "context" in message.lower()):
        return "size"
    if "model_not_found" in said.codes or NO_MODEL.search(message):
        return "model"
    return "auth" if "api_key_invalid" in said.codes or NO_KEY.search(message) else otherwise


def retry_after(value: str | None, milliseconds: str | None = None) -> float | None:
    """Parse the wait in seconds from seconds, milliseconds or an HTTP date. Return None if it is invalid."""
    exact = seconds(milliseconds)
    if exact is not None:
        return exact / 1000
    plain = seconds(value)
    return plain if plain is not None else until(value)


def seconds(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def until(date: str | None) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date or "").timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
