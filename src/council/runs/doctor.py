"""Diagnosis of members: configured, installed, key or login present, answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, NotRequired, TypedDict

from council import protocols
from council.errors import ConfigError, CouncilError, Fault, SearchNotEnabled, UsageError, message_for, word_for
from council.extensions import FORMATS, MEMBERS, SEARCH, WIRES, Added, installed
from council.flags import PROTOCOL_GROUP, flag_table
from council.members.guard import make_ready, prepare_request, probe_member, send_request
from council.money import PriceObject, cost
from council.planning.plan import Material
from council.protocols.options import describe_options
from council.runs.run_context import OTEL_ENDPOINTS, has_otel
from council.runs.service import Convener
from council.runs.track_record import TrackRecordObject, list_seats, summarize_records
from council.search import resolve_search, search_needs
from council.settings import Provider
from council.settings import member_lookup as lookup
from council.settings.catalogue import catalogue, split_member
from council.settings.config_files import find_command
from council.settings.key_storage import load_key, stored_key_names
from council.settings.network import find_key_leaks
from council.store.interface import DecisionOutcome, SeatOutcome
from council.text_cleanup import single_line
from council.types import Ask, JsonSchema, Usage

if TYPE_CHECKING:
    from council.engine.plan_object import CostEstimate, PlanCalls, PlanPhase

TYPICAL_QUESTION = "How should we roll out feature flags in our three services?"
TEST_TIMEOUT_S = 60.0  # seconds to answer the test prompt
OTEL_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
OTEL_VARIABLES = ("OTEL_TRACES_EXPORTER", *OTEL_ENDPOINTS, *OTEL_PROTOCOLS)
TEST_PROMPT = Ask("doctor", ({"role": "user", "content": "Reply with the one word: ready"},), max_tokens=512)


class MemberState(TypedDict):
    """What is known of a member, and whether the settings name or seat it."""

    state: str
    configured: bool
    installed: bool
    key: bool  # whether its key or login is present
    answered: bool | None  # None: it was not asked
    detail: str
    next: str  # what to do about it
    cost: NotRequired[float | None]  # dollars of the test prompt
    seconds: NotRequired[float]  # until its answer to the test prompt


class DoctorRow(MemberState):
    """A row of `council doctor`: a member, and whether it can be used."""

    member: str
    vendor: str
    endpoint: str
    context: int | None  # tokens of its context window


class SeatPreview(TypedDict):
    """A seat of the next plain question."""

    seat: str
    member: str
    vendor: str
    fallbacks: list[str]
    used: NotRequired[str | None]  # the member that answers now, by the test prompt; None if all failed


class SeatingPreview(TypedDict):
    """The seats of the next plain question."""

    protocol: str | None  # None if the question would be refused
    seats: list[SeatPreview]
    families: int
    notices: list[str]


class Retirement(TypedDict):
    """When a model is retired, and what follows it."""

    date: str | None
    successor: str | None
    is_over: bool


class MemberLife(TypedDict):
    """The line that a model is the newest of, and its retirement."""

    line: str | None
    retired: Retirement | None


class ListedMember(TypedDict):
    """A member, and what it needs before it can be used."""

    member: str
    vendor: str
    available: bool
    needs: str


class MemberRow(ListedMember, MemberLife):
    """A row of `council models`."""

    context: int | None  # tokens of its context window
    price: NotRequired[PriceObject | None]
    record: NotRequired[TrackRecordObject]


class SearchProviderRow(TypedDict):
    """A search provider, and what it needs before it can be used."""

    provider: str
    package: str
    needs: str
    error: str


class ExtensionRow(TypedDict):
    """An entry point of an installed package, and why it cannot be used."""

    kind: str
    name: str
    package: str
    error: str


class ProtocolRow(TypedDict):
    """A protocol, and why it cannot run."""

    name: str
    package: str
    summary: str
    purpose: str
    use: str
    tasks: list[str]
    options: JsonSchema
    seats: list[str]
    phases: list[PlanPhase]
    calls: PlanCalls | None
    cost: CostEstimate | None
    example: str
    note: str


async def diagnose(convener: Convener, *, deep: bool = False, seats: SeatingPreview | None = None) -> list[DoctorRow]:
    """Return a row for each configured or seated member, each other provider, each command-line agent and the embedded
    model.

    `deep` sends a one-word prompt to each configured or seated member, which may cost money. `seats` is
    `preview_seating`.
    """
    members = _list_wanted(convener, seats or await preview_seating(convener))
    providers = [_check_provider(convener, provider, members) for provider in convener.settings.providers.values()]
    agents = [check_agent(convener, agent, members) for agent in catalogue().commands]
    rows = [row for rows in await asyncio.gather(*providers, *agents) for row in rows]
    rows += [await _check_bridge(convener, member) for member in members if member.startswith("pai:")]
    added = [prefix for prefix in MEMBERS.added if prefix not in convener.settings.providers]
    rows += [row for prefix in added for row in await _check_added(convener, prefix, members)]
    rows.append(await check_local(convener, members))
    if deep:
        await asyncio.gather(*(_test_member(convener, row) for row in rows if row["member"] in members and row["key"]))
    return rows


def _list_wanted(convener: Convener, preview: SeatingPreview) -> list[str]:
    """Return the members that the settings name or that would be seated now, without duplicates."""
    settings = convener.settings
    seats = (*settings.seats.values(), settings.chair)
    named = [*settings.models.values(), *(seat.model for seat in seats if seat.model)]
    named += [member for seat in seats for member in seat.fallback or ()]
    sitting = [place["member"] for place in preview["seats"]]
    return list(dict.fromkeys([*_resolve_members(convener, named), *sitting]))


def _resolve_members(convener: Convener, members: Iterable[str]) -> Iterable[str]:
    for member in members:
        try:
            yield lookup.resolve_member(member, convener.settings, convener.env)
        except ConfigError:  # reported by the seating
            continue


def _build_row(convener: Convener, member: str, vendor: str, endpoint: str, state: MemberState) -> DoctorRow:
    context = convener.context_window(member) if split_member(member)[1] else None
    return {"member": member, "vendor": vendor, "endpoint": endpoint, "context": context, **state}


def _build_state(
    state: str,
    configured: bool,
    *,
    installed: bool = True,
    key: bool = False,
    answered: bool | None = None,
    detail: str = "",
    next: str = "",
) -> MemberState:
    return {
        "state": state,
        "configured": configured,
        "installed": installed,
        "key": key,
        "answered": answered,
        "detail": detail,
        "next": next,
    }


# Providers


async def _check_provider(convener: Convener, provider: Provider, members: list[str]) -> list[DoctorRow]:
    named = [member for member in members if split_member(member)[0] == provider.name]
    probed = named or [pick_example(provider)]
    states = await asyncio.gather(*(_probe_provider(convener, provider, member, bool(named)) for member in probed))
    return [
        _build_row(convener, member, provider.vendor, provider.base_url, state)
        for member, state in zip(named or [f"{provider.name}:"], states, strict=True)
    ]


async def _probe_provider(convener: Convener, provider: Provider, member: str, named: bool) -> MemberState:
    is_configured = named or convener.settings.is_set(f"providers.{provider.name}")
    if provider.via == "pai" and find_spec("pydantic_ai") is None:
        fix = "pip install 'model-council[pai]'"
        return _build_state("not installed", is_configured, installed=False, next=fix)
    if not lookup.is_available(provider, convener.settings, convener.env):
        need = provider.api_key_env or ("OLLAMA_HOST" if provider.name == "ollama" else f"[providers.{provider.name}]")
        keep = f", or `council keys set {need}`" if provider.api_key_env else ""
        return _build_state("not configured", is_configured, next=f"set {need}{keep}")
    try:
        answer = await probe_member(convener.members(member))
    except CouncilError as error:
        what, fix = f"did not answer: {error}", "check the key, base_url and the network"
        return _build_state("configured", True, key=True, answered=False, detail=what, next=fix)
    detail = answer if named else ", ".join(answer.split(", ")[:2])  # an example model need not exist
    return _build_state("answered", True, key=True, answered=True, detail=detail)


def pick_example(provider: Provider) -> str:
    """Return a member to probe a provider with: a model from the catalogue, else "any"."""
    listed = [model.name for model in catalogue().models.values() if provider.name in model.ids]
    return f"{provider.name}:{listed[0] if listed else 'any'}"


# Others


async def check_agent(convener: Convener, agent: str, members: list[str]) -> list[DoctorRow]:
    named = [member for member in members if member.split(":")[:2] == ["cli", agent]]
    vendor, path = catalogue().commands[agent], str(find_command(agent, convener.env) or "")
    return [
        _build_row(convener, member, vendor, path, await _probe_agent(convener, member, path, bool(named)))
        for member in named or [f"cli:{agent}"]
    ]


async def _probe_agent(convener: Convener, member: str, path: str, named: bool) -> MemberState:
    if not path:
        fix = f"install {member.split(':')[1]} and log in"
        return _build_state("not installed", named, installed=False, next=fix)
    try:
        answer = await probe_member(convener.members(member))
    except CouncilError as error:
        return _build_state("installed", named, detail=str(error))
    return _build_state("logged in", named, key=True, detail=answer, next=_word_seating(member, named))


def _word_seating(member: str, named: bool) -> str:
    return "" if named else f"seat it by name: --seat alpha={member}"


async def _check_bridge(convener: Convener, member: str) -> DoctorRow:
    try:
        answer = await probe_member(convener.members(member))
        state = _build_state("installed", True, key=True, detail=answer)
    except CouncilError as error:
        is_installed = find_spec("pydantic_ai") is not None
        state = _build_state("configured", True, installed=is_installed, detail=str(error))
    return _build_row(convener, member, member.split(":")[1], "through pydantic-ai", state)


async def _check_added(convener: Convener, prefix: str, members: list[str]) -> list[DoctorRow]:
    """Check the members of an installed package: those that are wanted, else its first model."""
    named, vendor = [member for member in members if split_member(member)[0] == prefix], prefix
    with suppress(ConfigError):  # a broken package
        vendor = lookup.added_vendor(prefix)
    package = f"package {MEMBERS.added[prefix].package}"
    return [
        _build_row(convener, one, vendor, package, await _probe_added(convener, prefix, one, bool(named)))
        for one in named or [f"{prefix}:"]
    ]


async def _probe_added(convener: Convener, prefix: str, member: str, named: bool) -> MemberState:
    try:
        if key := lookup.missing_added_key(prefix, convener.env):
            return _build_state("not configured", named, next=f"set {key}, or `council keys set {key}`")
        probed = member if named else f"{prefix}:{next(iter(lookup.added_models(prefix)), 'any')}"
        answer = await probe_member(convener.members(probed))
    except ConfigError as error:  # a broken package
        return _build_state("not installed", named, installed=False, detail=str(error))
    except CouncilError as error:
        return _build_state("configured", named, key=True, answered=False, detail=f"did not answer: {error}")
    return _build_state("installed", named, key=True, detail=answer, next=_word_seating(probed, named))


async def check_local(convener: Convener, members: list[str]) -> DoctorRow:
    member = next((name for name in members if name.startswith("local:")), lookup.LOCAL_CANDIDATE.member)
    state = await _probe_local(convener, member, member in members)
    row = _build_row(convener, member, "local", "a separate process on this machine", state)
    if row["installed"]:
        row["context"] = getattr(convener.members(member), "context", None)
    return row


async def _probe_local(convener: Convener, member: str, named: bool) -> MemberState:
    if find_spec("xllamacpp") is None:
        fix = "pip install 'model-council[local]'"
        return _build_state("not installed", named, installed=False, key=True, next=fix)
    try:
        answer = await probe_member(convener.members(member))
    except CouncilError as error:
        problem, _, fix = str(error).rpartition(": ")
        return _build_state("installed", named, detail=problem, next=fix)
    return _build_state("installed", named, key=True, detail=answer)  # the weights are present, but it was not asked


# Test prompt


async def _test_member(convener: Convener, row: DoctorRow) -> None:
    """Send the test prompt, and record the result and its cost in the row."""
    started = time.monotonic()
    try:
        async with asyncio.timeout(TEST_TIMEOUT_S):
            usage = await _send_test_prompt(convener, row["member"])
    except (CouncilError, TimeoutError) as error:
        why = str(error) or f"no answer within {TEST_TIMEOUT_S:g} s"
        row["state"], row["configured"], row["answered"] = "configured", True, False
        row["detail"] = f"did not answer: {why}"
        row["next"] = row["next"] or "see the error"
        return
    price = convener.price(row["member"])
    charged = cost(usage, price) if price and usage.known else None
    price_text = "of unknown cost" if charged is None else f"for ${charged:.6f}" if charged else "at no cost"
    row["state"], row["configured"], row["answered"] = "answered", True, True
    row["cost"] = charged
    row["seconds"] = round(time.monotonic() - started, 1)
    row["detail"] = f"answered in {row['seconds']:g} s {price_text}"
    row["next"] = ""


async def _send_test_prompt(convener: Convener, name: str) -> Usage:
    member = await make_ready(convener.members(name), lambda what, done, total: None)
    answer = await send_request(member, prepare_request(member, TEST_PROMPT), lambda piece: None)
    if not answer.text.strip() and answer.finish != "length":
        raise Fault("empty", "empty answer")
    return answer.usage


# Lists


def list_members(convener: Convener, *, prices: bool = False) -> list[MemberRow]:
    """Return every model of the catalogue, the settings and the lines, with its availability, life and price."""
    settings = replace(convener.settings, vendors=())
    ready = {candidate.member: candidate.vendor for candidate in lookup.available_members(settings, convener.env)}
    listed = [_build_member_row(member, vendor, "") for member, vendor in ready.items()]
    for model in catalogue().models.values():
        if not any(member.endswith(f":{model.name}") for member in ready):
            keys = [settings.providers[name].api_key_env or "OLLAMA_HOST" for name in model.ids]
            member = lookup.find_available_member(model, settings, convener.env) if "OLLAMA_HOST" not in keys else None
            listed.append(_build_member_row(member or model.name, model.vendor, "" if member else " or ".join(keys)))
    newest = {line: lookup.find_default_member(line, settings, convener.env) for line in catalogue().lines}
    shown = {row["member"] for row in listed}
    others = dict.fromkeys(member for member in newest.values() if member and member not in shown)
    listed += [_build_member_row(member, lookup.vendor_of(member, settings), "") for member in others]
    for agent, vendor in catalogue().commands.items():
        needs = "" if find_command(agent, convener.env) else f"{agent} on PATH"
        listed += [_build_member_row(f"cli:{agent}", vendor, needs)] if f"cli:{agent}" not in ready else []
    listed += [row for row in _list_added_members(convener) if row["member"] not in ready]
    local_needs = "" if find_spec("xllamacpp") else "model-council[local]"
    listed.append(_build_member_row(lookup.LOCAL_CANDIDATE.member, "local", local_needs))
    rows = [_add_life(row, newest, convener) for row in listed]
    return [{**row, "price": _lookup_price(convener, row["member"])} for row in rows] if prices else rows


def _add_life(row: ListedMember, newest: Mapping[str, str | None], convener: Convener) -> MemberRow:
    life = _describe_life(row["member"], newest, convener)
    return {
        "member": row["member"],
        "vendor": row["vendor"],
        "available": row["available"],
        "needs": row["needs"],
        "context": convener.context_window(_qualify_member(row["member"])),
        "line": life["line"],
        "retired": life["retired"],
    }


def _describe_life(member: str, newest: Mapping[str, str | None], convener: Convener) -> MemberLife:
    """Return the line that a model is the newest of, and its retirement."""
    line = next((name for name, one in newest.items() if one == member), None)
    if line is None and not split_member(member)[0]:  # without a key, the catalogue decides
        line = next((one.name for one in catalogue().lines.values() if one.snapshot == member), None)
    retired: Retirement | None = None
    if found := lookup.find_retirement(_qualify_member(member), convener.settings, convener.env):
        retired = {"date": found.date or None, "successor": found.successor or None, "is_over": found.is_over}
    return {"line": line, "retired": retired}


def add_records(rows: Iterable[MemberRow], outcomes: Iterable[DecisionOutcome]) -> None:
    """Add the track record of each member to its row, with those of the perspectives it had."""
    seats = list_seats(outcomes)
    records = summarize_records(seats)
    for row in rows:
        if record := records.pop(row["member"], None):
            row["record"] = {**record.as_json(), "perspectives": _by_perspective(seats, row["member"])}


def _by_perspective(seats: Iterable[SeatOutcome], member: str) -> dict[str, TrackRecordObject]:
    own = [seat for seat in seats if seat["member"] == member]
    return {name: record.as_json() for name, record in summarize_records(own, "perspective").items()}


def _list_added_members(convener: Convener) -> Iterable[ListedMember]:
    """Yield the models that installed packages list. A broken package has one row with the error."""
    for prefix in MEMBERS.added:
        try:
            needs, vendor, models = (
                lookup.missing_added_key(prefix, convener.env),
                lookup.added_vendor(prefix),
                lookup.added_models(prefix),
            )
        except ConfigError as error:
            needs, vendor, models = str(error), prefix, ()
        yield from (_build_member_row(f"{prefix}:{model}", vendor, needs) for model in models or ("",))


def list_search_providers(convener: Convener) -> list[SearchProviderRow]:
    """Return every search provider with what it needs before it can be used, and its package."""
    return [_check_search_provider(name, convener) for name in SEARCH.names]


def _check_search_provider(name: str, convener: Convener) -> SearchProviderRow:
    package = SEARCH.added[name].package if name in SEARCH.added else ""
    row: SearchProviderRow = {"provider": name, "package": package, "needs": "", "error": ""}
    try:
        resolve_search(name, convener.settings, convener.env, convener.folder)
    except (SearchNotEnabled, UsageError) as error:
        if isinstance(error, ConfigError):
            row["error"] = str(error)
        else:
            row["needs"] = search_needs(name)
    return row


async def list_extensions(convener: Convener) -> list[ExtensionRow]:
    """Return every entry point of installed packages, and why it cannot be used. A protocol is rehearsed."""
    groups = [(point.group, point.what, point.shipped) for point in (MEMBERS, WIRES, SEARCH, FORMATS)]
    groups.append((PROTOCOL_GROUP, "protocol", protocols.SHIPPED_PROTOCOLS))
    return [
        {
            "kind": what,
            "name": name,
            "package": added.package,
            "error": await _find_error(convener, added, what, name in shipped),
        }
        for group, what, shipped in groups
        for name, added in installed(group).items()
    ]


async def _find_error(convener: Convener, added: Added, what: str, is_shipped: bool) -> str:
    if is_shipped:
        return f'not used: Council ships a {what} "{added.name}"'
    if problem := flag_table().problems.get(added.name) if added.group == PROTOCOL_GROUP else None:
        return problem
    try:
        added.load(what)
    except ConfigError as error:
        return str(error)
    if added.group == PROTOCOL_GROUP and (note := (await _describe_protocol(added.name, convener))["note"]):
        return f"cannot run: {note}"
    return ""


SAMPLE_TEXT = "One way, or the other."  # a review needs material
SAMPLE_QUESTION = "Which way should it be done?"  # names no file, to get a plan of each protocol


async def list_protocols(convener: Convener, name: str | None = None) -> list[ProtocolRow]:
    """Return each protocol: summary, package, tasks, seats, options as JSON schema, phases, and why it cannot run."""
    names = protocols.protocol_names() if name is None else [protocols.get_protocol(name).name]
    return [await _describe_protocol(protocol, convener) for protocol in names]


async def _describe_protocol(name: str, convener: Convener) -> ProtocolRow:
    row: ProtocolRow = {
        "name": name,
        "package": protocols.package_of(name),
        "summary": "",
        "purpose": "",
        "use": "",
        "tasks": ["ask"],
        "options": {},
        "seats": [],
        "phases": [],
        "calls": None,
        "cost": None,
        "example": f'council --protocol {name} "Your question"',
        "note": "",
    }
    try:
        protocol = protocols.get_protocol(name)
        row["purpose"], row["use"] = protocol.purpose, protocol.use
        row["example"] = protocol.example or row["example"]
        row["summary"], row["options"] = protocol.summary, describe_options(protocol.load_options())
        row["seats"], row["tasks"] = [seat.name for seat in protocol.seats], list(protocol.tasks)
        plan = await convener.plan([SAMPLE_QUESTION], protocol=name, material=Material(stdin=SAMPLE_TEXT), preview=True)
    except CouncilError as error:
        row["note"] = str(error)
        return row
    planned = plan.as_json()
    row["seats"] = [seat.name for seat in plan.roster.seats]
    row["phases"] = list(plan.phases)
    row["calls"], row["cost"] = planned["calls"], planned["cost"]
    row["note"] = word_for(plan.refusal, "cli")
    return row


def _build_member_row(member: str, vendor: str, needs: str) -> ListedMember:
    return {"member": member, "vendor": vendor, "available": not needs, "needs": needs}


def _qualify_member(member: str) -> str:
    """Return a bare model name with its preferred provider."""
    model = catalogue().find(member)
    return f"{next(iter(model.ids))}:{member}" if model else member


def _lookup_price(convener: Convener, member: str) -> PriceObject | None:
    price = convener.price(_qualify_member(member))
    return price.as_json() if price else None


async def preview_seating(convener: Convener) -> SeatingPreview:
    """Return the members of the next plain question, by its plan, with notices: first, why it would be refused."""
    try:
        plan = await convener.plan([TYPICAL_QUESTION], preview=True)
    except (ConfigError, UsageError) as error:  # the other rows show which members are available
        return {"protocol": None, "seats": [], "families": 0, "notices": [message_for(error, "cli")]}
    notices = list(plan.notices)
    try:
        convener.check_seats(plan)
    except CouncilError as error:
        notices.insert(0, f"the next question would be refused: {message_for(error, 'cli')}")
    chair = [plan.roster.chair] if plan.roster.chair else []
    places: list[SeatPreview] = [
        {"seat": seat.name, "member": seat.member, "vendor": seat.vendor, "fallbacks": list(seat.fallbacks)}
        for seat in (*plan.roster.seats, *chair)
    ]
    families = len({seat.vendor for seat in plan.roster.seats})
    return {"protocol": plan.protocol.name, "seats": places, "families": families, "notices": notices}


def add_used_members(seats: SeatingPreview, rows: Iterable[DoctorRow]) -> SeatingPreview:
    """Return the seats with the member that answers now (`used`): the fallback of one that failed; null if all did."""
    failed = {row["member"] for row in rows if row["answered"] is False}
    used = [
        next((name for name in (place["member"], *place["fallbacks"]) if name not in failed), None)
        for place in seats["seats"]
    ]
    places: list[SeatPreview] = [{**place, "used": name} for place, name in zip(seats["seats"], used, strict=True)]
    return {**seats, "seats": places}


def check_database(convener: Convener) -> list[str]:
    """Return why the shared database cannot be used, if there is one."""
    try:
        if convener.find_store().url:
            _ = convener.store
    except CouncilError as error:
        return [str(error)]
    return []


def list_warnings(convener: Convener) -> list[str]:
    """Warn about keys that may leak, keys that the keyring does not return, and variables of OpenTelemetry."""
    shut = [name for name in stored_key_names(convener.env) if not convener.env.get(name) and not load_key(name)]
    problem = "is stored in the system's keyring, which does not return it: unlock the keyring, or set"
    lines = [f"{name} {problem} {name}" for name in shut]
    return [*find_key_leaks(convener.settings), *lines, *list_otel_problems(convener.env)]


def list_otel_problems(env: Mapping[str, str]) -> list[str]:
    """Return the variables of OpenTelemetry with which no spans arrive."""
    given = {name: value for name in OTEL_VARIABLES if (value := env.get(name, "").strip())}
    if not given or env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    wanted = {
        "EXPORTER": (("otlp", "console", "none"), "otlp, console or none"),
        "ENDPOINT": (("http://", "https://"), "an address such as http://localhost:4318"),
        "PROTOCOL": (("http/protobuf", "grpc"), "http/protobuf or grpc"),
    }
    problems = []
    for name, value in given.items():
        allowed, fix = wanted[name.rpartition("_")[2]]
        if not value.startswith(allowed):
            problems.append(f'{name} "{single_line(value, 80)}" sends no spans: use {fix}')
    if "grpc" in given.values() and has_otel() and not find_spec("opentelemetry.exporter.otlp.proto.grpc"):
        problems.append(
            "spans are sent with http/protobuf instead of grpc: pip install opentelemetry-exporter-otlp-proto-grpc"
        )
    return problems
