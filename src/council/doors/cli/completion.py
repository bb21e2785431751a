"""`council completion SHELL`: a script for bash, zsh or fish, made from the commands and flags themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from council import protocols
from council.doors.cli.ask import ask_command
from council.doors.cli.grammar import COMMAND_HELP, VERBS
from council.protocols.common.perspectives import list_presets

SHELLS = ("bash", "zsh", "fish")
SCRIPTS = Path(__file__).parents[2] / "data" / "completion"
ROSTERS = Path(__file__).parents[2] / "data" / "rosters"
WORDS = "+words"  # where a question has begun: its flags go on, no command follows
FILES, RUNS, ANY = "+files", "+runs", "+any"  # not words, but where they come from


@dataclass(frozen=True, slots=True)
class Flag:
    names: tuple[str, ...]  # as they are written, the long one last
    about: str
    values: str | None  # what may follow; None: nothing does


@dataclass(frozen=True, slots=True)
class Place:
    """How far the words have led: what may follow there, and the flags."""

    at: str
    follows: tuple[str, ...]
    flags: tuple[Flag, ...]


def completion_command() -> click.Command:
    shell = click.Argument(["shell"], type=click.Choice(SHELLS))

    @click.pass_context
    def completion(context: click.Context, /, shell: str) -> int:
        management = context.find_root().command
        assert isinstance(management, click.Group)
        click.echo(script(shell, management), nl=False)
        return 0

    return click.Command("completion", callback=completion, params=[shell], help=COMMAND_HELP["completion"])


def script(shell: str, management: click.Group) -> str:
    """What a shell has to read once; `management` are the commands beside convening."""
    text = (SCRIPTS / f"council.{shell}").read_text(encoding="utf-8")
    tell = _fish if shell == "fish" else _cases
    for name, filled in tell(places(management)).items():
        text = text.replace(f"@{name}@", filled)
    return text


# What there is to say


def places(management: click.Group) -> list[Place]:
    """Every place of the grammar, the beginning first."""
    begin = _flags(ask_command())
    commands = [place for word in COMMAND_HELP for place in _inside(management.commands[word], word)]
    return [Place("", (*VERBS, *COMMAND_HELP), begin), Place(WORDS, (), begin), *commands, *(Place(verb, (), begin) for verb in VERBS)]  # fmt: skip


def _inside(command: click.Command, at: str) -> Iterator[Place]:
    inner = command.commands if isinstance(command, click.Group) else {}
    arguments = [_argument(one, at) for one in command.params if isinstance(one, click.Argument)]
    yield Place(at, (*inner, *filter(None, arguments)), _flags(command))
    for name, one in inner.items():
        yield from _inside(one, f"{at} {name}")


def _argument(argument: click.Argument, at: str) -> str:
    if isinstance(argument.type, click.Choice):
        return " ".join(argument.type.choices)
    if argument.name == "run":
        return RUNS
    return " ".join(list_presets()) if at == "presets show" else ""


def _flags(command: click.Command) -> tuple[Flag, ...]:
    options = [one for one in command.params if isinstance(one, click.Option)]
    return (*map(_flag, options), Flag(("-h", "--help"), "Show what it takes.", None))


def _flag(option: click.Option) -> Flag:
    names = sorted(option.opts, key=len)
    return Flag(tuple(names), (option.help or "").partition(". ")[0].rstrip("."), None if option.is_flag else _values(names[-1], option))  # fmt: skip


def _values(name: str, option: click.Option) -> str:
    known: dict[str, Callable[[], Sequence[str]]] = {
        "--preset": list_presets,
        "--roster": lambda: [path.stem for path in sorted(ROSTERS.glob("*.toml"))],
        "--protocol": protocols.protocol_names,
        "--mode": protocols.protocol_names,
        "--perspectives-file": lambda: [FILES],
    }
    if isinstance(option.type, click.Choice):
        return " ".join(map(str, option.type.choices))
    if name in known:
        return " ".join(known[name]())
    return FILES if option.metavar in ("FILE", "DIR") else ANY


# How the shells are told


def _cases(there: list[Place]) -> dict[str, str]:
    """The branches of `case` that bash and zsh share."""
    values = {" | ".join(flag.names): flag.values for place in there for flag in place.flags if flag.values}
    return {
        "NEXT": _branches({place.at: [" ".join(place.follows)] for place in there if place.follows}),
        "FLAGS": _branches({place.at: [" ".join(name for flag in place.flags for name in flag.names)] for place in there}),
        "DESCRIBED": _branches({place.at: [_described(name, flag) for flag in place.flags for name in flag.names] for place in there}),
        "VALUES": "\n".join(f"    {names}) echo {_quoted(said)} ;;" for names, said in values.items()),
    }  # fmt: skip


def _branches(lines: dict[str, list[str]]) -> str:
    return "\n".join(
        f"    {_quoted(at)}) printf '%s\\n' {' '.join(map(_quoted, said))} ;;" for at, said in lines.items()
    )


def _described(name: str, flag: Flag) -> str:
    about = flag.about.replace(":", "\\:")
    return f"{name}:{about}"


def _fish(there: list[Place]) -> dict[str, str]:
    valued = dict.fromkeys(name for place in there for flag in place.flags if flag.values for name in flag.names)
    follows = {place.at: " ".join(place.follows) for place in there if place.follows}
    return {
        "NEXT": "\n".join(
            f"        case {_quoted(at)}\n            echo {_quoted(said)}" for at, said in follows.items()
        ),
        "VALUED": " ".join(valued),
        "COMPLETE": "\n".join(line for place in there for line in (*_fish_words(place), *_fish_flags(place))),
    }


def _fish_words(place: Place) -> Iterator[str]:
    for word in " ".join(place.follows).split():
        offered = "(__council_runs)" if word == RUNS else word
        about = f" -d {_quoted(COMMAND_HELP[word])}" if not place.at and word in COMMAND_HELP else ""
        yield f"complete -c council -f -n {_condition(place)} -a {_quoted(offered)}{about}"


def _fish_flags(place: Place) -> Iterator[str]:
    for flag in place.flags:
        names = " ".join(f"-s {name[1:]}" if len(name) == 2 else f"-l {name[2:]}" for name in flag.names)
        offered = {None: "", FILES: " -rF", ANY: " -x"}.get(flag.values, f" -xa {_quoted(flag.values or '')}")
        yield f"complete -c council -n {_condition(place)} {names}{offered} -d {_quoted(flag.about)}"


def _condition(place: Place) -> str:
    return _quoted(f'__council_at "{place.at}"')


def _quoted(text: str) -> str:
    """As one word of a shell; fish reads it the same way."""
    return "'" + text.replace("'", "’") + "'"
