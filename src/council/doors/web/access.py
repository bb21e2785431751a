"""Access of users: what each scope allows, and the run, the sender and the key of a request as dependencies of the
routes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from fastapi import Depends, Header, Request
from pydantic import BaseModel

from council.doors.web.app_state import AppState
from council.doors.web.responses import Forbidden
from council.extensions import SEARCH
from council.planning.plan import Plan
from council.runs.tokens import User
from council.settings.catalogue import split_member
from council.settings.schema import quote_value
from council.store.interface import RequestKey

CHAT_OPERATIONS = frozenset(
    {
        "get_page",
        "get_page_file",
        "get_docs",
        "open_session",
        "get_protocols",
        "get_options",
        "get_members",
        "get_roots",
        "get_setup",
        "upload_attachment",
        "get_attachments",
        "get_attachment",
        "delete_attachment",
        "estimate_run",
        "start_run",
        "get_runs",
        "get_run",
        "get_report",
        "get_positions",
        "get_spend",
        "cancel_run",
        "get_asks",
        "answer_ask",
        "stream_run",
        "stream_runs",
        "list_models",
        "get_model",
        "create_chat_completion",
        "create_response",
        "get_response",
        "cancel_response",
    }
)
OPERATIONS = {
    "chat": CHAT_OPERATIONS,
    "runs": CHAT_OPERATIONS
    | {
        *(
            "get_attempts",
            "get_packet",
            "resume_run",
            "fork_run",
            "delete_run",
            "change_run",
            "delete_response",
            "record_outcome",
        ),
    },
}  # operations of each scope; any other is for admins
OWN_MATERIAL = ("council ", "attached/")  # begins the name of an earlier turn and of an attached file in the packet


def get_app_state(request: Request) -> AppState:
    app_state: AppState = request.app.state.app_state
    return app_state


def get_user(request: Request) -> User:
    user: User = request.state.user
    return user


AppStateDep = Annotated[AppState, Depends(get_app_state)]
UserDep = Annotated[User, Depends(get_user)]


def check_scope(request: Request, user: UserDep) -> None:
    """Raise Forbidden unless the scope of the token has the operation."""
    name = request.scope["route"].name
    if not user.sees_all and name not in OPERATIONS[user.scope]:
        raise Forbidden(f'the scope "{user.scope}" of this token does not allow this: ask the owner of the server')


async def resolve_run(run: str, app_state: AppStateDep, user: UserDep) -> str:
    return await app_state.resolve_run(run, user)


RunId = Annotated[str, Depends(resolve_run)]  # of the path; a run of another user is unknown

# Requests that clients repeat

KEY_HELP = "Any text. A request with the same key and the same content returns the earlier run, for at least a day; with other content it is refused."
KeyHeader = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=255, pattern="^[ -~]+$", description=KEY_HELP),
]


def make_key(request: Request, user: User, key: str | None, body: BaseModel | None) -> RequestKey | None:
    """Return the key of a request with the digest of its content."""
    if key is None:
        return None
    content = [request.method, request.url.path, body.model_dump(mode="json") if body else {}]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return RequestKey(user.name, key, digest)


# Runs of users


def check_fields(**fields: object) -> None:
    """Raise Forbidden if a field is set that only the owner of the server, or another scope, may set."""
    for name, value in fields.items():
        if value:
            raise Forbidden(f"this token cannot set {name}: omit it", field=name)


def check_members(members: list[str]) -> None:
    """Raise Forbidden for a program on the server as a member."""
    for member in members:
        if split_member(member)[0] == "cli":
            raise Forbidden(
                f"member {quote_value(member)} cannot be used with this token: use another member", field="seats"
            )


def check_plan(plan: Plan) -> None:
    """Raise Forbidden if the run would read files of the server or use programs on it."""
    check_members([*plan.roster.member_names])
    kind = str(plan.options.get("search") or "").partition(":")[0]
    if kind in SEARCH and getattr(SEARCH.load(kind), "argument", "") == "FOLDER":
        raise Forbidden("this token cannot search in files of the server: use another search", field="search")
    if plan.look:
        raise Forbidden("this token cannot let seats read files of the server: omit look", field="look")
    if plan.options.get("explorers"):
        raise Forbidden("this token cannot use explorers, which read files of the server: omit them", field="explorers")
    if any(not file.path.startswith(OWN_MATERIAL) for file in plan.packet.files):
        raise Forbidden("this token cannot use files of the server: send the text in the request", field="targets")
