"""Routes for attachments that are uploaded before a run is started."""

from __future__ import annotations

import asyncio
import base64
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from council.doors import limits
from council.doors.web import models
from council.doors.web.access import AppStateDep, UserDep
from council.doors.web.responses import ApiResponse
from council.doors.web.schemas import EXAMPLE_UPLOAD, Attachment, Responses, example_responses
from council.doors.web.uploads import ID_PATTERN
from council.types import Json

upload_router = APIRouter(prefix="/api/attachments", tags=["starting"])
UploadId = Annotated[str, Path(pattern=ID_PATTERN)]


def _with_unknown(responses: Responses) -> Responses:
    """Describe 404 as that of an attachment."""
    responses[404]["description"] = "Unknown attachment"
    example: Json = responses[404]["content"]["application/json"]["example"]
    example["error"] |= {"code": "unknown_attachment", "message": "unknown attachment"}
    return responses


@upload_router.post(
    "",
    status_code=201,
    response_model=models.Upload,
    responses=example_responses(EXAMPLE_UPLOAD, status=201, has_body=True),
)
async def upload_attachment(body: Attachment, app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """Keep an attachment for a day, for the field `uploads` of a run. Only its sender can read it."""
    content = limits.read_inline(body.name, body.text, body.data)
    kept = content.encode("utf-8", "replace") if isinstance(content, str) else content
    return ApiResponse(await asyncio.to_thread(app_state.uploads.save, user.name, body.name, kept), 201)


@upload_router.get("", response_model=list[models.Upload], responses=example_responses([EXAMPLE_UPLOAD]))
async def get_attachments(app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """List the attachments that the sender has uploaded and no run has taken, oldest first."""
    return ApiResponse(await asyncio.to_thread(app_state.uploads.find_all, user.name))


@upload_router.get(
    "/{id}",
    response_model=models.UploadContent,
    responses=_with_unknown(example_responses({**EXAMPLE_UPLOAD, "data": "MS4gTW92ZSB0aGUgYXJjaGl2ZS4="}, 404)),
)
async def get_attachment(id: UploadId, app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """Return an uploaded attachment with its content."""
    upload, content = await asyncio.to_thread(app_state.uploads.read, user.name, id)
    return ApiResponse({**upload, "data": base64.b64encode(content).decode()})


@upload_router.delete("/{id}", status_code=204, responses=_with_unknown(example_responses(None, 404, status=204)))
async def delete_attachment(id: UploadId, app_state: AppStateDep, user: UserDep) -> Response:
    """Remove an uploaded attachment."""
    await asyncio.to_thread(app_state.uploads.read, user.name, id)
    await asyncio.to_thread(app_state.uploads.remove, user.name, [id])
    return Response(status_code=204)
