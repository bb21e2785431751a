"""Error responses: map a status, vendor codes and a message to a kind of the fault table."""

from __future__ import annotations

import json
import math
import re
import time
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from council.types import Json

KIND_BY_STATUS = {401: "auth", 402: "quota", 403: "auth", 404: "model", 405: "endpoint", 407: "auth", 408: "overload", 413: "size", 429: "rate", 498: "overload",
         502: "cut", 503: "overload", 504: "cut", 520: "cut", 521: "overload", 522: "overload", 523: "overload",
         524: "cut", 529: "overload"}  # fmt: skip
QUOTA_CODES = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "billing_error",
    "enforced_spend_limit_reached",
    "budget_exceeded",
}
REFUSAL_CODES = {
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "bio_policy",
    "misalignment_policy_violation",
}
FLAGGED_PROMPT_CODE = "invalid_prompt"  # a refusal if the message says so
FLAGGED_PROMPT_MESSAGE = re.compile(r"flagged|polic(y|ies)", re.I)
# Errors inside a stream have no status: the status that their code has elsewhere.
STATUS_BY_CODE = {
    "authentication_error": 401, "invalid_api_key": 401, "permission_error": 403, "model_not_found": 404, "not_found_error": 404,
    "rate_limit_error": 429, "rate_limit_exceeded": 429, "insufficient_quota": 429, "resource_exhausted": 429,
    "context_length_exceeded": 400, "tool_use_failed": 400, "json_validate_failed": 400, "server_error": 500, "internal": 500, "api_error": 500,
    "unavailable": 503, "overloaded_error": 529, "invalid_request_error": 400, "invalid_argument": 400,
}  # fmt: skip
QUOTA_MESSAGE = re.compile(
    r"billing|current quota|credit balance|(insufficient|not enough|no|out of) (credit|balance|fund)|payment"
    r"|(spend|usage) limits?\b",
    re.I,
)
THROTTLING_MESSAGE = re.compile(
    r"per[ -](minute|second|hour|day)|rate.?limit|throttl|too many requests|(try again|retry) in|please wait|\b[rt]pm\b",
    re.I,
)
TOO_LONG_MESSAGE = re.compile(
    r"context.?(length|window|size|limit)|maximum (context|prompt|input)|reduce the length|too many tokens"
    r"|(prompt|input|message|request|payload|body)\w* .{0,60}too (long|large)"
    r"|(input|prompt)\w* .{0,60}exceed|exceeds? the (maximum )?(number of )?(input )?tokens|tokens.{0,60}must be <=",
    re.I,
)
OUTPUT_SIZE_MESSAGE = re.compile(r"(completion|output) tokens|max_(completion_)?tokens", re.I)
UNKNOWN_MODEL_MESSAGE = re.compile(
    r"model.{0,80}(not found|does not exist|not exist|unknown|decommissioned|has been (deprecated|retired))|(unknown|no such|invalid) model",
    re.I,
)
UNKNOWN_MODEL_CODES = {"model_not_found", "model_decommissioned"}
# The URL is wrong, not the model name.
WRONG_URL_MESSAGE = re.compile(
    r"\W*(404\W*)?((page|file|route|path|url|resource)\W+)?not found\W*|.*\b(invalid url|requested url|cannot post)\b.*",
    re.I | re.S,
)
INVALID_KEY_MESSAGE = re.compile(
    r"api.?key.{0,40}(invalid|not valid|incorrect|missing|expired)|(invalid|incorrect|missing|expired).{0,20}api.?key"
    r"|^no connected db\b",  # LiteLLM without a database: the key is not its master key
    re.I,
)
INVALID_KEY_CODES = {"api_key_invalid", "invalid_api_key", "no_db_connection"}
REJECTED_ANSWER_CODES = {"tool_use_failed", "json_validate_failed"}  # the vendor rejects what its model wrote
HTML_TAG = re.compile(r"<[^<>]*>")
HTML_HIDDEN = re.compile(r"<(script|style|head)\b", re.I)  # elements whose content is not shown
MAX_MESSAGE_CHARS = 4000  # of a message: the patterns above take quadratic time for some texts


class ErrorResponse(NamedTuple):
    codes: frozenset[str]
    message: str
    retry_after: float | None = None  # seconds, if the body states them
    is_html: bool = False  # the body is HTML


def parse_error_body(body: bytes, default: str = "", *, is_upstream: bool = False) -> ErrorResponse:
    """Parse an error body in any of the common shapes."""
    text = body.decode(errors="replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ErrorResponse(frozenset(), strip_html(text) or default, is_html=text.lstrip()[:1] == "<")
    return parse_error_json(value, default, is_upstream=is_upstream)


def strip_html(text: str) -> str:
    """Return the visible text of a page, without tags. Linear in time, because the page is not trusted."""
    visible, at, unclosed = list[str](), 0, set[str]()
    for opening in HTML_HIDDEN.finditer(text):
        name = opening[1].lower()
        if opening.start() < at or name in unclosed:
            continue
        if closing := re.compile(f"</{name}", re.I).search(text, opening.end()):
            visible.append(text[at : opening.start()])
            at = closing.start()
        else:
            unclosed.add(name)
    return HTML_TAG.sub(" ", " ".join([*visible, text[at:]])).strip()[:MAX_MESSAGE_CHARS]


def parse_error_json(value: Any, default: str = "", *, is_upstream: bool = False) -> ErrorResponse:
    """Parse an error object. `is_upstream`: it is inside a router's error."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict) and value.get("error"):
        value = value["error"]
    if not isinstance(value, dict):
        return ErrorResponse(frozenset(), str(value or default)[:MAX_MESSAGE_CHARS])
    codes = {str(value[name]) for name in ("code", "type", "status", "status_code") if value.get(name)}
    retry_after: float | None = None
    for detail in iter_error_details(value):
        codes |= {str(detail[name]) for name in ("error_code", "reason", "quotaId") if detail.get(name)}
        if retry_after is None:
            retry_after = parse_seconds(str(detail.get("retryDelay", "")).removesuffix("s"))
    message = str(value.get("message") or value.get("detail") or default or value)[:MAX_MESSAGE_CHARS]
    error = ErrorResponse(frozenset(code.lower() for code in codes), message, retry_after)
    metadata = value.get("metadata")
    return _add_upstream_error(error, metadata) if isinstance(metadata, dict) and not is_upstream else error


def _add_upstream_error(error: ErrorResponse, metadata: Json) -> ErrorResponse:
    """Return a router's error with that of the vendor behind it, which is in its `metadata`."""
    codes = error.codes | (frozenset(["content_policy_violation"]) if metadata.get("flagged_input") else frozenset())
    if not (raw := metadata.get("raw")):
        return error._replace(codes=codes)
    if isinstance(raw, str):
        upstream = parse_error_body(raw.encode(errors="replace"), is_upstream=True)
    else:
        upstream = parse_error_json(raw, is_upstream=True)
    by = f" ({name})" if isinstance(name := metadata.get("provider_name"), str) and name else ""
    message = f"{error.message}{by}: {upstream.message}"[:MAX_MESSAGE_CHARS] if upstream.message else error.message
    after = upstream.retry_after if error.retry_after is None else error.retry_after
    return ErrorResponse(codes | upstream.codes, message, after)


def is_refusal(error: ErrorResponse) -> bool:
    """Return whether a content filter or a usage policy caused the error."""
    is_flagged = FLAGGED_PROMPT_CODE in error.codes and FLAGGED_PROMPT_MESSAGE.search(error.message)
    return bool(error.codes & REFUSAL_CODES or is_flagged)


def classify_stream_error(error: ErrorResponse, *, has_output: bool = False) -> str:
    """Return the fault kind of an error in a stream; "cut" if its codes do not tell, or if there was output already."""
    if has_output and not error.codes & REJECTED_ANSWER_CODES:
        return "cut"
    numbers = sorted(int(code) for code in error.codes if re.fullmatch(r"[45]\d\d", code))
    statuses = numbers or [status for code, status in STATUS_BY_CODE.items() if code in error.codes]
    return classify_error(statuses[0], error, error.retry_after) if statuses else "cut"


def iter_error_details(error: Any) -> list[Any]:
    """Return the detail objects of an error, including nested violations."""
    details = error.get("details")
    objects = [item for item in (details if isinstance(details, list) else [details]) if isinstance(item, dict)]
    nested = [item.get("violations") for item in objects]
    return objects + [row for rows in nested if isinstance(rows, list) for row in rows if isinstance(row, dict)]


def classify_error(status: int, error: ErrorResponse, retry_after: float | None) -> str:
    """Return the fault kind. Codes take precedence over messages, and throttling messages over other messages."""
    if status in (400, 402, 403, 429) and is_out_of_quota(status, error, retry_after):
        return "quota"
    if status in (400, 413, 422):
        return classify_bad_request(error, KIND_BY_STATUS.get(status, "parameter"))
    is_wrong_url = error.is_html or WRONG_URL_MESSAGE.fullmatch(error.message)
    if status == 404 and is_wrong_url and not error.codes & UNKNOWN_MODEL_CODES:
        return "endpoint"
    return KIND_BY_STATUS.get(status) or ("server" if status >= 500 else "parameter" if status >= 400 else "endpoint")


def is_out_of_quota(status: int, error: ErrorResponse, retry_after: float | None) -> bool:
    if error.codes & QUOTA_CODES or any("perday" in code for code in error.codes):  # daily limit: too long to wait
        return True
    # Some vendors mention quota and billing in rate-limit errors, but then they state how long to wait.
    is_throttled = status == 429 and (retry_after is not None or THROTTLING_MESSAGE.search(error.message))
    return bool(QUOTA_MESSAGE.search(error.message)) and not is_throttled


def classify_bad_request(error: ErrorResponse, default: str) -> str:
    message = error.message
    if THROTTLING_MESSAGE.search(message):
        return "rate"
    is_too_long = TOO_LONG_MESSAGE.search(message) and (
        not OUTPUT_SIZE_MESSAGE.search(message) or "context" in message.lower()
    )
    if is_too_long or error.codes & {"context_length_exceeded", "exceed_context_size_error"}:
        return "size"
    if error.codes & UNKNOWN_MODEL_CODES or UNKNOWN_MODEL_MESSAGE.search(message):
        return "model"
    return "auth" if error.codes & INVALID_KEY_CODES or INVALID_KEY_MESSAGE.search(message) else default


def parse_retry_after(value: str | None, milliseconds: str | None = None) -> float | None:
    """Parse the wait in seconds from seconds, milliseconds or an HTTP date. Return None if it is invalid."""
    if (exact := parse_seconds(milliseconds)) is not None:
        return exact / 1000
    if (plain := parse_seconds(value)) is not None:
        return plain
    try:
        return max(0.0, parsedate_to_datetime(value or "").timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def parse_seconds(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
