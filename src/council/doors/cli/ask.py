"""The main command: `council [FLAGS] [ask|validate|brainstorm|research] WORDS…`."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.given import OneOf, Whole, Wish, piped
from council.doors.cli.words import BUILT, COMMON, owned_flags

KINDS: dict[str, Any] = {"int": Whole(), "float": float, "str": str}
USAGE = """Ask several language models one question and get one answer that says how far to trust it.

\b
council "Should we …?"                     deliberate and answer
council "adversarial council: A or B?"     stress-test an answer
council validate recent                    judges review recent changes: PASS, WARN or FAIL
council --dry-run "…"                      show the plan, spend nothing
council runs · resume · replay · report    past runs
council models · doctor · config           available models and settings
"""


def convening() -> click.Command:
    version = click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
    )
    parameters = [click.Argument(["words"], nargs=-1), *(_option(flag) for flag in (*COMMON, *owned_flags())), version]
    return Convening(
        "council",
        params=parameters,
        callback=convene,
        help=USAGE,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


class Convening(click.Command):
    """Command whose help lists common flags, protocol flags and management commands."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("council", "[FLAGS] [ask|validate|brainstorm|research] WORDS…")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {parameter.name: parameter.get_help_record(ctx) for parameter in self.get_params(ctx)}
        with formatter.section("Flags"):
            formatter.write_dl(
                [
                    row
                    for name, row in rows.items()
                    if row and name in {flag["name"] for flag in COMMON} | {"help", "version"}
                ]
            )
        for protocol in dict.fromkeys(flag["owners"][0] for flag in owned_flags()):
            with formatter.section(f"Flags of {protocol}"):
                own = [flag["name"] for flag in owned_flags() if flag["owners"][0] == protocol]
                formatter.write_dl([row for name, row in rows.items() if row and name in own])
        with formatter.section("Commands"):
            formatter.write_dl([(f"council {word}", text) for word, text in BUILT.items()])


def _version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"council {version('council')}")
        context.exit()


def _option(flag: dict[str, Any]) -> click.Option:
    names = [*([flag["short"]] if "short" in flag else []), flag["flag"], flag["name"]]
    if flag["kind"] == "bool":
        return click.Option(names, is_flag=True, default=False, help=flag["help"])
    if flag["kind"] == "many":
        return click.Option(names, multiple=True, metavar=flag["metavar"], help=flag["help"])
    kind = OneOf(flag["choices"], case_sensitive=False) if flag["kind"] == "choice" else KINDS[flag["kind"]]
    return click.Option(names, type=kind, default=None, metavar=flag.get("metavar"), help=flag["help"])


def convene(words: tuple[str, ...], **params: Any) -> int:
    from council.doors.cli.drive import Drive

    wish = wish_from(words, params)
    drive = Drive.from_flags(params, profile=wish.owned.get("profile"))
    if params["detach"] and not params["dry_run"]:
        from council.doors.cli.detached import detach

        return detach(drive, wish)
    return drive.convene(wish, dry_run=params["dry_run"])


def show_packet(words: tuple[str, ...], **params: Any) -> int:
    from council.doors.cli.drive import Drive

    wish = wish_from(words, params)
    return Drive.from_flags(params, profile=wish.owned.get("profile")).packet(wish)


def packet_command() -> click.Command:
    """Build `council packet`, which takes the same arguments as asking a question."""
    parameters = [click.Argument(["words"], nargs=-1), *(_option(flag) for flag in (*COMMON, *owned_flags()))]
    return click.Command("packet", params=parameters, callback=show_packet, help=BUILT["packet"])


def wish_from(words: tuple[str, ...], params: dict[str, Any]) -> Wish:
    values = ((flag["name"], params[flag["name"]]) for flag in owned_flags())
    owned = {name: value for name, value in values if value is not None and value is not False}  # keep 0
    material = {
        "spec": params["spec"], "decisions": tuple(params["decision"]), "base": params["base"], "match": not params["no_match"],
        "redact": params["redact"], "skip_secrets": params["skip_secrets"], "stdin": piped(words),
    }  # fmt: skip
    protocol = _one_protocol(params["protocol"], params["mode"])
    return Wish(
        list(words),
        owned,
        protocol,
        params["verbose"],
        params["strict"],
        params["fail_on"],
        material,
        params["continued"],
    )


def _one_protocol(protocol: str | None, mode: str | None) -> str | None:
    if protocol and mode and protocol != mode:
        raise click.UsageError(
            f'--protocol "{protocol}" and --mode "{mode}" conflict: --mode is an alias of --protocol, give one of them'
        )
    return protocol or mode
