"""Member registry: creates members by name on first use and shares them between seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from council.errors import ConfigError
from council.members.base import Member
from council.members.human import HUMAN, Desk, Human
from council.settings import Provider, Settings, catalogue, is_reasoning, model_id, split_member
from council.types import Json

WIRES = {
    "openai": "council.members.wires.openai:OpenAIMember",
    "anthropic": "council.members.wires.anthropic:AnthropicMember",
    "google": "council.members.wires.google:GoogleMember",
}
LONG_THOUGHT = 300.0  # first_byte timeout of reasoning models, unless configured
SPECIAL = {
    "local": "council.members.local:LocalMember",
    "scripted": "council.members.scripted:Scripted",
    "cli": "council.members.command:CommandMember",
    "pai": "council.members.bridge:named",
}


class Members:
    def __init__(self, settings: Settings, env: Mapping[str, str], cache: Path) -> None:
        self.settings = settings
        self.env = env
        self.cache = cache
        self._known: dict[str, Member] = {}

    def __call__(self, name: str) -> Member:
        if name not in self._known:
            self._known[name] = self._make(name)
        return self._known[name]

    def add(self, member: Member) -> None:
        """Register a custom member under its name."""
        self._known[member.name] = member

    def at(self, desk: Desk) -> Callable[[str], Member]:
        """Return the registry's lookup with the human members of one run."""
        person = Human(desk)
        return lambda name: person if name == HUMAN else self(name)

    async def close(self) -> None:
        for member in self._known.values():
            await member.close()
        self._known.clear()

    def _make(self, name: str) -> Member:
        kind, _ = split_member(name)
        if kind == "local":
            return _load(SPECIAL[kind])(name, cache=self.cache, env=self.env)  # type: ignore[no-any-return]
        if kind == HUMAN:
            return Human()
        if kind == "scripted":
            return _load(SPECIAL[kind])(name)  # type: ignore[no-any-return]
        if kind == "cli":
            return self._on_command(name)
        if kind == "pai":
            return _load(SPECIAL[kind])(name, env=self.env)  # type: ignore[no-any-return]
        if kind in self.settings.providers:
            return self._on_wire(name, self.settings.providers[kind])
        for entry in entry_points(group="council.members"):
            if entry.name == kind:
                return entry.load()(name)  # type: ignore[no-any-return]
        raise ConfigError(f'unknown member "{name}": use provider:model, cli:…, pai:…, local:…, human or scripted:…')

    def _on_command(self, name: str) -> Member:
        agent = name.split(":")[1]
        clocks = self.settings.commands.get(agent, {})
        made: Member = _load(SPECIAL["cli"])(
            name, env=self.env, vendor=catalogue().commands.get(agent, agent), **clocks
        )
        return made

    def _on_wire(self, name: str, provider: Provider) -> Member:
        if provider.via == "pai":
            key = self.env.get(provider.api_key_env) or None
            return _load("council.members.bridge:routed")(name, provider, key=key)  # type: ignore[no-any-return]
        known = catalogue().find(split_member(name)[1])
        more: Json = {"token_field": provider.token_field} if provider.wire == "openai" else {}
        more |= {"thinks": known.reasoning, "efforts": known.efforts} if known else {}
        made: Member = _load(WIRES[provider.wire])(
            name, base_url=provider.base_url, model=model_id(name), api_key=self.env.get(provider.api_key_env) or None,
            vendor=provider.vendor, structured=provider.structured, connect=provider.connect,
            first_byte=self._first_byte(name, provider), idle=provider.idle,
            max_connections=provider.max_connections, backoff=provider.backoff, **more,
        )  # fmt: skip
        return made

    def _first_byte(self, name: str, provider: Provider) -> float:
        by_hand = self.settings.given(f"providers.{provider.name}.first_byte")
        return LONG_THOUGHT if is_reasoning(name) and not by_hand else provider.first_byte


def _load(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
