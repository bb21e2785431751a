"""Runs as MCP resources: `council://runs/RUN` is the report in Markdown, `council://runs/RUN.json` the same as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import anyio
import mcp_types as types
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from council.doors import limits
from council.doors.mcp.elicitation import Context
from council.doors.mcp.tools import name_tools
from council.doors.mcp.tools_impl import CouncilTools, run_status
from council.errors import UnknownRun
from council.render.formats import render_as
from council.runs.history import filter_evaluations
from council.settings.schema import quote_value
from council.store.interface import OPEN_STATUSES, RunRow
from council.text_cleanup import single_line

MAX_LISTED = 50  # newest runs; the others are read by their addresses
MAX_SUBSCRIPTIONS = 50  # of one stream
ADDRESS = re.compile(r"council://runs/(?P<run>[0-9a-z]{1,80})(?P<json>\.json)?")
MARKDOWN, JSON = "text/markdown", "application/json"
TEMPLATES = [
    types.ResourceTemplate(
        name="report",
        title="Report of a run",
        uri_template="council://runs/{run}",
        mime_type=MARKDOWN,
        description="The report as Markdown; of a run that has not ended, one line about its state.",
    ),
    types.ResourceTemplate(
        name="report-json",
        title="Report of a run as JSON",
        uri_template="council://runs/{run}.json",
        mime_type=JSON,
        description="What council_result returns; of a run that has not ended, what council_wait returns.",
    ),
]


class RunResources:
    """The runs of the folders that a client may read."""

    def __init__(self, council_tools: CouncilTools) -> None:
        self.tools = council_tools

    async def list_newest(self, roots: Sequence[Path]) -> list[types.Resource]:
        found: list[types.Resource] = []
        async for run in self.tools.shared_convener.iter_runs(**filter_evaluations(False)):
            if limits.is_within(Path(run["folder"]), roots):
                found.append(_describe_run(run))
            if len(found) == MAX_LISTED:
                break
        return found

    async def read(self, uri: str, roots: Sequence[Path]) -> types.TextResourceContents:
        run, is_json = await self._find_run(uri, roots)
        minutes, status = await self.tools.load_minutes(run)
        if status not in OPEN_STATUSES:
            text = json.dumps(await self.tools.read_result(run), ensure_ascii=False) if is_json else ""
            text = text or name_tools(render_as(minutes, "md"))
        else:
            state = run_status(minutes, status)
            text = json.dumps(state, ensure_ascii=False) if is_json else f"{state['line']}\n"
        return types.TextResourceContents(uri=uri, mime_type=JSON if is_json else MARKDOWN, text=text)

    async def _find_run(self, uri: str, roots: Sequence[Path]) -> tuple[str, bool]:
        """Return the run of an address that the client may read, and whether JSON is asked for."""
        found = ADDRESS.fullmatch(uri)
        if not found:
            raise UnknownRun(f"no resource {quote_value(uri)}: use council://runs/RUN or council://runs/RUN.json")
        return await self.tools.resolve_run(found["run"], roots), bool(found["json"])

    # Subscriptions

    async def listen(self, context: Context, wanted: types.SubscriptionFilter, roots: Sequence[Path]) -> NoReturn:
        """Tell the client when each of the runs that it names has ended. It ends when the client leaves."""
        request = context.request_id
        meta = {SUBSCRIPTION_ID_META_KEY: request}
        runs: dict[str, str] = {}
        for uri in (wanted.resource_subscriptions or [])[:MAX_SUBSCRIPTIONS]:
            try:
                runs[uri], _ = await self._find_run(uri, roots)
            except UnknownRun:
                continue  # the acknowledgement leaves it out
        accepted = types.SubscriptionFilter(resource_subscriptions=list(runs) or None)
        await context.session.send_notification(
            types.SubscriptionsAcknowledgedNotification(
                params=types.SubscriptionsAcknowledgedNotificationParams(notifications=accepted, _meta=meta)
            ),
            related_request_id=request,
        )

        async def announce_end(uri: str, run: str) -> None:
            async for _ in self.tools.shared_convener.follow(run, 0):
                pass
            await context.session.send_notification(
                types.ResourceUpdatedNotification(params=types.ResourceUpdatedNotificationParams(uri=uri, _meta=meta)),
                related_request_id=request,
            )

        async with anyio.create_task_group() as group:
            for uri, run in runs.items():
                group.start_soon(announce_end, uri, run)
            await anyio.sleep_forever()  # a client reads an end of the stream as a lost connection
        raise AssertionError


def _describe_run(run: RunRow) -> types.Resource:
    trust = f", trust {run['trust']}" if run["trust"] else ""
    return types.Resource(
        uri=f"council://runs/{run['run']}",
        name=run["name"],
        title=single_line(run["title"] or run["question"], 120),
        description=f"{run['protocol'] or 'council'}: {run['status']}{trust}",
        mime_type=MARKDOWN,
        annotations=types.Annotations(last_modified=datetime.fromtimestamp(run["created"], UTC).isoformat()),
    )
