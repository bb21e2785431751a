"""Member registry: creates members by name on first use and shares them between seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from council.errors import ConfigError
from council.members.base import Member
from council.members.human import HUMAN, HumanInput, HumanMember
from council.settings import Provider, Settings
from council.settings.catalogue import catalogue, is_reasoning, model_id, split_member
from council.types import Json

WIRE_CLASSES = {
    "openai": "council.members.wires.openai:OpenAIMember",
    "anthropic": "council.members.wires.anthropic:AnthropicMember",
    "google": "council.members.wires.google:GoogleMember",
}
REASONING_FIRST_BYTE_S = 300.0  # first_byte timeout of reasoning models, unless configured
SPECIAL_CLASSES = {
    "local": "council.members.local:LocalMember",
    "scripted": "council.members.scripted:Scripted",
    "cli": "council.members.cli_agent:CliAgentMember",
    "pai": "council.members.bridge:make_pai_member",
}


class MemberRegistry:
    def __init__(self, settings: Settings, env: Mapping[str, str], cache: Path) -> None:
        self.settings = settings
        self.env = env
        self.cache = cache
        self._members: dict[str, Member] = {}

    def __call__(self, name: str) -> Member:
        if name not in self._members:
            self._members[name] = self._make(name)
        return self._members[name]

    def add(self, member: Member) -> None:
        """Register a custom member under its name."""
        self._members[member.name] = member

    def with_human_input(self, human_input: HumanInput) -> Callable[[str], Member]:
        """Return the registry's lookup with the human members of one run."""
        person = HumanMember(human_input)
        return lambda name: person if name == HUMAN else self(name)

    async def close(self) -> None:
        for member in self._members.values():
            await member.close()
        self._members.clear()

    def _make(self, name: str) -> Member:
        kind, _ = split_member(name)
        if kind == "local":
            return _load_attribute(SPECIAL_CLASSES[kind])(name, cache=self.cache, env=self.env)  # type: ignore[no-any-return]
        if kind == HUMAN:
            return HumanMember()
        if kind == "scripted":
            return _load_attribute(SPECIAL_CLASSES[kind])(name)  # type: ignore[no-any-return]
        if kind == "cli":
            return self._make_cli_agent(name)
        if kind == "pai":
            return _load_attribute(SPECIAL_CLASSES[kind])(name, env=self.env)  # type: ignore[no-any-return]
        if kind in self.settings.providers:
            return self._make_wire_member(name, self.settings.providers[kind])
        for entry in entry_points(group="council.members"):
            if entry.name == kind:
                return entry.load()(name)  # type: ignore[no-any-return]
        raise ConfigError(f'unknown member "{name}": use provider:model, cli:…, pai:…, local:…, human or scripted:…')

    def _make_cli_agent(self, name: str) -> Member:
        agent = name.split(":")[1]
        clocks = self.settings.commands.get(agent, {})
        made: Member = _load_attribute(SPECIAL_CLASSES["cli"])(
            name, env=self.env, vendor=catalogue().commands.get(agent, agent), **clocks
        )
        return made

    def _make_wire_member(self, name: str, provider: Provider) -> Member:
        if provider.via == "pai":
            key = self.env.get(provider.api_key_env) or None
            return _load_attribute("council.members.bridge:make_provider_member")(name, provider, key=key)  # type: ignore[no-any-return]
        known = catalogue().find(split_member(name)[1])
        more: Json = {"token_field": provider.token_field} if provider.wire == "openai" else {}
        more |= {"thinks": known.reasoning, "efforts": known.efforts} if known else {}
        made: Member = _load_attribute(WIRE_CLASSES[provider.wire])(
            name, base_url=provider.base_url, model=model_id(name), api_key=self.env.get(provider.api_key_env) or None,
            vendor=provider.vendor, structured=provider.structured, connect=provider.connect,
            first_byte=self._first_byte_timeout(name, provider), idle=provider.idle,
            max_connections=provider.max_connections, backoff=provider.backoff, **more,
        )  # fmt: skip
        return made

    def _first_byte_timeout(self, name: str, provider: Provider) -> float:
        by_hand = self.settings.is_set(f"providers.{provider.name}.first_byte")
        return REASONING_FIRST_BYTE_S if is_reasoning(name) and not by_hand else provider.first_byte


def _load_attribute(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
