"""Member registry: creates members by name on first use and shares them between seats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypedDict

from council.errors import ConfigError, CouncilError, describe_error, is_interrupt
from council.extensions import MEMBERS, WIRES, Added
from council.members.base import Member, MemberContext, MemberFactory, Progress
from council.members.guard import check_member, close_member, make_ready
from council.members.human import HUMAN, HumanInput, HumanMember
from council.settings import Provider, Settings
from council.settings.catalogue import find_traits, model_id, split_member
from council.settings.member_lookup import list_inputs


class MemberRegistry:
    def __init__(self, settings: Settings, env: Mapping[str, str], cache: Path, folder: Path = Path()) -> None:
        self.context = MemberContext(settings, env, cache, folder)
        self._members: dict[str, Member] = {}
        self._unavailable: dict[str, Member] = {}  # those that could not be made ready
        self._connecting: set[asyncio.Task[None]] = set()
        self.wrap: Callable[[Member], Member] = lambda member: member  # of each member that is made by its name

    def __call__(self, name: str) -> Member:
        if unavailable := self._unavailable.get(name):
            return unavailable
        if name not in self._members:
            self._members[name] = self.wrap(_make_member(name, self.context))
        return self._members[name]

    def add(self, member: Member) -> None:
        try:
            self._members[member.name] = check_member(member)
        except Exception as error:
            raise ConfigError(
                f"the member {type(member).__name__} cannot be used ({describe_error(error)}): fix its attributes"
            ) from error

    async def make_ready(self, name: str, progress: Progress) -> None:
        """Download or start what a member needs. If its code fails, its requests fail until it is made ready again."""
        self._unavailable.pop(name, None)
        member = self(name)
        if (ready := await make_ready(member, progress)) is not member:
            self._unavailable[name] = ready

    def with_human_input(self, human_input: HumanInput) -> Callable[[str], Member]:
        return lambda name: HumanMember(human_input) if name == HUMAN else self(name)

    def connect_ahead(self, names: Iterable[str]) -> None:
        """Open connections in the background, so that the first requests of these members need not wait."""
        for name in dict.fromkeys(names):
            if connect := getattr(self(name), "connect_ahead", None):
                task = asyncio.ensure_future(connect())
                self._connecting.add(task)
                task.add_done_callback(self._connecting.discard)

    async def close(self) -> None:
        for task in list(self._connecting):
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        for member in self._members.values():
            await close_member(member)
        self._members.clear()
        self._unavailable.clear()


def _make_member(name: str, context: MemberContext) -> Member:
    """Make a member: a shipped kind, a configured provider, or a member of an installed package."""
    kind, _ = split_member(name)
    if kind in MEMBERS.shipped:
        member: Member = MEMBERS.load(kind)(name, context)
        return member
    if provider := context.settings.providers.get(kind):
        return _make_provider_member(name, provider, context)
    if added := MEMBERS.added.get(kind):
        return _make_added_member(name, added, context)
    raise ConfigError(f'unknown member "{name}": use provider:model, cli:…, pai:…, local:…, human or scripted:…')


def _make_added_member(name: str, added: Added, context: MemberContext) -> Member:
    factory: MemberFactory = added.load(MEMBERS.what)
    try:
        return check_member(factory(name, context))
    except CouncilError:
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise added.error(MEMBERS.what, error) from error


class WireTraits(TypedDict, total=False):
    """What a wire needs to know of a model and of its endpoint."""

    thinks: bool
    efforts: Sequence[str]
    prompt_cache: bool


def _make_provider_member(name: str, provider: Provider, context: MemberContext) -> Member:
    key = context.env.get(provider.api_key_env) or None
    if provider.via == "pai":
        from council.members.bridge import make_provider_member

        return make_provider_member(name, provider, key=key, find_inputs=partial(list_inputs, name, context.settings))
    model = find_traits(split_member(name)[1])
    traits: WireTraits = {"thinks": model.reasoning, "efforts": model.efforts} if model else {}
    if provider.prompt_cache:  # wires of packages need not know it
        traits["prompt_cache"] = True
    member: Member = WIRES.load(provider.wire)(
        name,
        base_url=provider.base_url,
        model=model_id(name),
        api_key=key,
        vendor=provider.vendor,
        structured=provider.structured,
        connect=provider.connect,
        token_field=provider.token_field,
        first_byte=provider.first_byte,
        idle=provider.idle,
        max_connections=provider.max_connections,
        backoff=provider.backoff,
        find_inputs=partial(list_inputs, name, context.settings),
        **traits,
    )
    if endpoint := getattr(member, "endpoint", None):  # wires of packages may have none
        endpoint.key_name = provider.api_key_env
    return member
