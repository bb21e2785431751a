"""Convening: `council [FLAGS] [ask|validate|brainstorm|research] WORDS…`, the main job."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.words import BUILT, COMMON, owned_flags

KINDS: dict[str, Any] = {"int": int, "float": float, "str": str}
USAGE = """Convene several language models around one question; get one answer that says how far to trust it.

\b
council "Should we …?"                     deliberate and answer
council "adversarial council: A or B?"     stress-test an answer
council --dry-run "…"                      show the plan, spend nothing
council runs · resume · replay · report    past councils
council models · doctor · config           who can sit, and why not
"""


def convening() -> click.Command:
    parameters = [click.Argument(["words"], nargs=-1), *(_option(flag) for flag in (*COMMON, *owned_flags()))]
    return Convening(
        "council",
        params=parameters,
        callback=convene,
        help=USAGE,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


class Convening(click.Command):
    """Help in sections: the flags of every council, then those of single protocols, then the commands."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("council", "[FLAGS] [ask|validate|brainstorm|research] WORDS…")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {parameter.name: parameter.get_help_record(ctx) for parameter in self.get_params(ctx)}
        with formatter.section("Flags"):
            formatter.write_dl(
                [row for name, row in rows.items() if row and name in {flag["name"] for flag in COMMON} | {"help"}]
            )
        for protocol in dict.fromkeys(flag["owners"][0] for flag in owned_flags()):
            with formatter.section(f"Flags of {protocol}"):
                own = [flag["name"] for flag in owned_flags() if flag["owners"][0] == protocol]
                formatter.write_dl([row for name, row in rows.items() if row and name in own])
        with formatter.section("Commands"):
            formatter.write_dl([(f"council {word}", what) for word, what in BUILT.items()])


def _option(flag: dict[str, Any]) -> click.Option:
    names = [*([flag["short"]] if "short" in flag else []), flag["flag"], flag["name"]]
    if flag["kind"] == "bool":
        return click.Option(names, is_flag=True, default=False, help=flag["help"])
    if flag["kind"] == "many":
        return click.Option(names, multiple=True, metavar=flag["metavar"], help=flag["help"])
    kind = click.Choice(flag["choices"], case_sensitive=False) if flag["kind"] == "choice" else KINDS[flag["kind"]]
    return click.Option(names, type=kind, default=None, metavar=flag.get("metavar"), help=flag["help"])


def convene(words: tuple[str, ...], **given: Any) -> int:
    if not words:
        return _short_usage()
    from council.doors.cli.drive import Drive

    owned = {flag["name"]: given[flag["name"]] for flag in owned_flags() if given[flag["name"]] not in (None, False)}
    drive = Drive.from_flags(given, profile=owned.get("profile"))
    protocol = _one_protocol(given["protocol"], given["mode"])
    return drive.convene(list(words), owned, protocol=protocol, verbose=given["verbose"], dry_run=given["dry_run"])


def _one_protocol(protocol: str | None, mode: str | None) -> str | None:
    if protocol and mode and protocol != mode:
        raise click.UsageError(
            f'--protocol says "{protocol}" and --mode says "{mode}": they are one flag, give it once'
        )
    return protocol or mode


def _short_usage() -> int:
    click.echo('council "your question"        convenes a council; council --help tells the rest', err=True)
    return 2
