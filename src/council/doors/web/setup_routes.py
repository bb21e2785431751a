"""Routes with which the owner sets up keys and search from the page, on the machine itself.

A key is in the body of one request only: it is tested without cost, stored as `council keys set` stores it, and part of
no response, log or event.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.requests import Request

from council.doors.web import models
from council.doors.web.access import AppStateDep, UserDep
from council.doors.web.app_state import AppState
from council.doors.web.responses import ApiResponse, Forbidden
from council.doors.web.schemas import KeyRequest, SearchRequest, example_responses
from council.errors import UsageError
from council.runs.service import Convener
from council.runs.setup import check_key, check_search, list_searches, write_values
from council.runs.tokens import User
from council.settings import Provider
from council.settings.key_storage import find_storage_problem, store_key, stored_key_names
from council.text_cleanup import single_line
from council.types import Json

setup_router = APIRouter(prefix="/api/setup", tags=["setup"])
FORWARDED_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
MAX_KEY_CHARS = 4096
MAX_DETAIL_CHARS = 300
EXAMPLE_ROW = {"name": "anthropic", "variable": "ANTHROPIC_API_KEY", "takes": "key", "found": "keyring"}
EXAMPLE_SETUP = {
    "refused": None,
    "storage_problem": None,
    "vendors": [EXAMPLE_ROW],
    "search": [{"name": "searxng", "variable": None, "takes": "address", "found": ""}],
}
EXAMPLE_RESULT = {"name": "anthropic", "variable": "ANTHROPIC_API_KEY", "tested": True, "detail": "9 models"}


def find_refusal(request: Request, user: User) -> str:
    """Return why this request may not set anything up, or ""."""
    if user.name:
        return "keys and search can only be set up by the owner of the server: use the token of the server"
    if not _is_local(request):
        return (
            "keys and search can only be set up on the machine of the server itself, through its own address: "
            "open the address that `council serve` printed there, or run `council keys set NAME`"
        )
    return ""


def _is_local(request: Request) -> bool:
    """Return whether a request came over loopback and no proxy."""
    peer, host = request.client.host if request.client else "", urlsplit(f"//{request.headers['host']}").hostname or ""
    is_forwarded = any(name in request.headers for name in FORWARDED_HEADERS)
    return is_loopback(peer) and (host == "localhost" or is_loopback(host)) and not is_forwarded


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _require_allowed(request: Request, user: User) -> None:
    if refusal := find_refusal(request, user):
        raise Forbidden(f"{refusal}, nothing was stored")


@setup_router.get("", response_model=models.Setup, responses=example_responses(EXAMPLE_SETUP))
async def get_setup(request: Request, app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """List what can be set up from the page, and where each key was found. It has no key, and nothing for others than
    the owner on this machine.
    """
    if refusal := find_refusal(request, user):
        return ApiResponse({"refused": refusal, "storage_problem": None, "vendors": [], "search": []})
    async with _open_own(app_state, {}) as convener:
        vendors = [
            _describe(name, provider.api_key_env, app_state.owner.env)
            for name, provider in _list_vendors(convener.settings.providers).items()
        ]
        own_search = str(convener.settings.search.get("base_url") or "")
    search = [
        _describe(name, variable, app_state.owner.env, own_search if not variable else "")
        for name, variable in list_searches().items()
    ]
    problem = await asyncio.to_thread(find_storage_problem) or None
    return ApiResponse({"refused": None, "storage_problem": problem, "vendors": vendors, "search": search})


@setup_router.post(
    "/key", response_model=models.SetupResult, responses=example_responses(EXAMPLE_RESULT, has_body=True)
)
async def set_up_key(body: KeyRequest, request: Request, app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """Test the API key of a vendor by listing its models, and store it in the system keyring."""
    _require_allowed(request, user)
    key = _read_key(body.key.get_secret_value())
    async with _open_own(app_state, {}) as convener:
        providers = _list_vendors(convener.settings.providers)
    if body.name not in providers:
        raise _unknown_name("vendor with a key", providers)
    variable = providers[body.name].api_key_env
    _refuse_environment(variable, app_state.owner.env)
    async with _open_own(app_state, {variable: key}) as convener:
        source = await check_key(convener, convener.settings.providers[body.name])
    detail = _mask(source.detail, key)
    if source.state not in ("works", "untested"):
        raise UsageError(f"{body.name}: {detail}; nothing was stored", field="key")
    await asyncio.to_thread(store_key, variable, key, app_state.owner.env)  # a keyring may ask its user
    return ApiResponse({"name": body.name, "variable": variable, "tested": source.state == "works", "detail": detail})


@setup_router.post(
    "/search", response_model=models.SetupResult, responses=example_responses(EXAMPLE_RESULT, has_body=True)
)
async def set_up_search(body: SearchRequest, request: Request, app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """Test a search provider where that is free, and store its key in the system keyring, or its address in the user's
    configuration file.
    """
    _require_allowed(request, user)
    known = list_searches()
    if body.name not in known:
        raise _unknown_name("search provider", known)
    variable = known[body.name]
    key = _read_key(body.key.get_secret_value()) if variable else ""
    async with _open_own(app_state, {}) as convener:
        settings = convener.settings
    if variable:
        _refuse_environment(variable, app_state.owner.env)
    try:
        choice = body.name if variable else f"{body.name}:{body.address.strip()}"
        address, detail = await check_search(choice, settings, {**app_state.owner.env, variable: key})
    except UsageError as error:
        raise UsageError(_mask(str(error), key), field="key" if variable else "address") from None
    if variable:
        await asyncio.to_thread(store_key, variable, key, app_state.owner.env)
    if not variable:
        write_values({"search.provider": body.name, "search.base_url": address}, app_state.owner.env)
    elif settings.search.get("provider") not in (None, body.name):
        write_values({"search.provider": body.name, "search.base_url": None}, app_state.owner.env)
    return ApiResponse(
        {
            "name": body.name,
            "variable": variable or None,
            "tested": bool(detail),
            "detail": _mask(detail, key) or "not tested, because it has no free request",
        }
    )


@asynccontextmanager
async def _open_own(app_state: AppState, keys: Mapping[str, str]) -> AsyncIterator[Convener]:
    """Yield a convener with the user's own settings and these keys: no project decides where a new key is sent."""
    env, store = {**app_state.owner.env, **keys}, app_state.shared_convener.store
    convener = Convener(app_state.empty_folder, env, config=app_state.owner.config, store=store)
    try:
        yield convener
    finally:
        await convener.close()


def _list_vendors(providers: Mapping[str, Provider]) -> dict[str, Provider]:
    return {name: provider for name, provider in providers.items() if provider.api_key_env}


def _describe(name: str, variable: str, env: Mapping[str, str], address: str = "") -> Json:
    if variable and env.get(variable, "").strip():
        found = "environment"
    elif variable and variable in stored_key_names(env):
        found = "keyring"
    else:
        found = "settings" if address else ""
    return {"name": name, "variable": variable or None, "takes": "key" if variable else "address", "found": found}


def _unknown_name(what: str, known: Iterable[str]) -> UsageError:
    """Return an error that does not repeat the name, because it may be a key."""
    return UsageError(f"the name is no {what}, nothing was stored: available are {', '.join(known)}", field="name")


def _read_key(text: str) -> str:
    key = text.strip()
    if not key or len(key.split()) > 1 or len(key) > MAX_KEY_CHARS or not key.isascii():
        raise UsageError("this is not one key without spaces, nothing was stored: copy it again", field="key")
    return key


def _refuse_environment(variable: str, env: Mapping[str, str]) -> None:
    if env.get(variable, "").strip():
        raise UsageError(
            f"{variable} is set in the environment of the server and takes precedence, nothing was stored: change it there",
            field="name",
        )


def _mask(text: str, key: str) -> str:
    return single_line(text.replace(key, "***") if key else text, MAX_DETAIL_CHARS)
