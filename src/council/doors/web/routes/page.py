"""The page, and the session it opens with the token from its URL."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from council.doors.web.answers import ApiResponse, error_response
from council.doors.web.bodies import SessionRequest
from council.doors.web.examples import example_responses
from council.doors.web.guard import Guard

PAGE_FOLDER = Path(__file__).parents[1] / "page"
router = APIRouter()


@router.get("/", include_in_schema=False)
async def get_page() -> Response:
    index = PAGE_FOLDER / "index.html"
    return (
        FileResponse(index)
        if index.is_file()
        else PlainTextResponse("The page is not installed; the API is under /api/.\n")
    )


@router.post("/api/session", tags=["session"], responses=example_responses({"session": "open"}, 415))
async def open_session(body: SessionRequest, request: Request) -> ApiResponse:
    """Exchange the token for an HttpOnly cookie."""
    guard: Guard = request.app.state.guard
    if not guard.is_token_valid(body.token):
        return error_response(401, "wrong token: open the address that `council serve` printed")
    answer = ApiResponse({"session": "open"})
    answer.set_cookie(guard.cookie, guard.token, path="/", httponly=True, samesite="strict")
    return answer
