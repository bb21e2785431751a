"""The main command: `council [FLAGS] [ask|validate|brainstorm|research] WORDS…`."""

from __future__ import annotations

from typing import Any

import click

from council.doors.cli.params import (
    COMMAND_HELP,
    COMMON_FLAGS,
    ChoiceParam,
    IntegerParam,
    NumberParam,
    ProtocolParam,
    RunRequest,
    complete_file,
    complete_member,
    complete_preset,
    complete_protocol,
    complete_roster,
    complete_run,
    protocol_flags,
    read_stdin,
)
from council.flags import flag_table
from council.version import __version__

PARAM_TYPES: dict[str, Any] = {
    "int": IntegerParam(),
    "float": NumberParam(),
    "str": str,
    "protocol": ProtocolParam(),
}
COMPLETERS: dict[str, Any] = {  # by flag; flags with the metavar FILE or DIR complete files
    "protocol": complete_protocol,
    "mode": complete_protocol,
    "preset": complete_preset,
    "roster": complete_roster,
    "continued": complete_run,
    "models": complete_member,
    "perspectives_file": complete_file,
}
HELP_TEXT = """Ask several language models one question and get one answer that says how far to trust it.

\b
council "Should we …?"                     deliberate and answer
council "adversarial council: A or B?"     stress-test an answer
council validate recent                    judges review recent changes: PASS, WARN or FAIL
council --dry-run "…"                      show the plan, spend nothing
council runs · resume · replay · report    past runs
council models · doctor · config           available models and settings
"""


def ask_command() -> click.Command:
    version = click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version.",
    )
    parameters = [
        click.Argument(["words"], nargs=-1, shell_complete=complete_file),
        *(_make_option(flag) for flag in (*COMMON_FLAGS, *protocol_flags())),
        version,
    ]
    return AskCommand(
        "council",
        params=parameters,
        callback=convene,
        help=HELP_TEXT,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


class AskCommand(click.Command):
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
                    if row and name in {flag["name"] for flag in COMMON_FLAGS} | {"help", "version"}
                ]
            )
        for protocol in dict.fromkeys(flag["owners"][0] for flag in protocol_flags()):
            with formatter.section(f"Flags of {protocol}"):
                own = [flag["name"] for flag in protocol_flags() if flag["owners"][0] == protocol]
                formatter.write_dl([row for name, row in rows.items() if row and name in own])
        if problems := flag_table().problems:
            with formatter.section("Protocols that cannot be used"):
                formatter.write_dl(list(problems.items()))
        with formatter.section("Commands"):
            formatter.write_dl([(f"council {word}", text) for word, text in COMMAND_HELP.items()])


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"council {__version__}")
        context.exit()


def _make_option(flag: dict[str, Any]) -> click.Option:
    names = [*([flag["short"]] if "short" in flag else []), flag["flag"], flag["name"]]
    if flag.get("negatable"):
        both = f"{flag['flag']}/--no-{flag['flag'][2:]}"
        return click.Option([both, flag["name"]], is_flag=True, default=None, help=flag["help"])
    if flag["kind"] == "bool":
        return click.Option(names, is_flag=True, default=False, help=flag["help"])
    if flag["kind"] == "many":
        many = COMPLETERS.get(flag["name"])
        return click.Option(names, multiple=True, metavar=flag["metavar"], help=flag["help"], shell_complete=many)
    completer = complete_file if flag.get("metavar") in ("FILE", "DIR") else COMPLETERS.get(flag["name"])
    kind = ChoiceParam(flag["choices"], case_sensitive=False) if flag["kind"] == "choice" else PARAM_TYPES[flag["kind"]]
    return click.Option(
        names, type=kind, default=None, metavar=flag.get("metavar"), help=flag["help"], shell_complete=completer
    )


def convene(words: tuple[str, ...], **params: Any) -> int:
    from council.doors.cli.runner import Runner

    wish = build_request(words, params)
    drive = Runner.from_flags(params, profile=wish.options.get("profile"))
    if params["detach"] and not params["dry_run"]:
        from council.doors.cli.run_commands import detach

        return detach(drive, wish)
    return drive.convene(wish, dry_run=params["dry_run"], detach=params["detach"])


def show_packet(words: tuple[str, ...], **params: Any) -> int:
    from council.doors.cli.runner import Runner

    wish = build_request(words, params)
    return Runner.from_flags(params, profile=wish.options.get("profile")).show_packet(wish)


def packet_command() -> click.Command:
    """Build `council packet`, which takes the same arguments as asking a question."""
    parameters = [
        click.Argument(["words"], nargs=-1, shell_complete=complete_file),
        *(_make_option(flag) for flag in (*COMMON_FLAGS, *protocol_flags())),
    ]
    return click.Command("packet", params=parameters, callback=show_packet, help=COMMAND_HELP["packet"])


def build_request(words: tuple[str, ...], params: dict[str, Any]) -> RunRequest:
    owned = {
        flag["name"]: value
        for flag in protocol_flags()
        if (value := params[flag["name"]]) is not None and (value is not False or flag.get("negatable"))  # keep 0
    }
    material = {
        "spec": params["spec"], "decisions": tuple(params["decision"]), "base": params["base"], "match": not params["no_match"],
        "redact": params["redact"], "skip_secrets": params["skip_secrets"], "stdin": read_stdin(words, ignore=params["no_stdin"]),
    }  # fmt: skip
    protocol = _choose_protocol(params["protocol"], params["mode"])
    return RunRequest(
        list(words),
        owned,
        protocol,
        params["verbose"],
        params["strict"],
        params["fail_on"],
        material,
        params["continued"],
    )


def _choose_protocol(protocol: str | None, mode: str | None) -> str | None:
    if protocol and mode and protocol != mode:
        raise click.UsageError(
            f'--protocol "{protocol}" and --mode "{mode}" conflict: --mode is an alias of --protocol, give one of them'
        )
    return protocol or mode
