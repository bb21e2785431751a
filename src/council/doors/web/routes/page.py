"""The page, and the session it opens with the token from its URL."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from council.doors.web.answers import Answer, error
from council.doors.web.bodies import Token
from council.doors.web.examples import shown
from council.doors.web.guard import Guard

FOLDER = Path(__file__).parents[1] / "page"
router = APIRouter()


@router.get("/", include_in_schema=False)
async def page() -> Response:
    index = FOLDER / "index.html"
    return (
        FileResponse(index)
        if index.is_file()
        else PlainTextResponse("The page is not installed; the API is under /api/.\n")
    )


@router.post("/api/session", tags=["session"], responses=shown({"session": "open"}, 415))
async def session(told: Token, request: Request) -> Answer:
    """Exchange the token for an HttpOnly cookie."""
    guard: Guard = request.app.state.guard
    if not guard.knows(told.token):
        return error(401, "wrong token: open the address that `council serve` printed")
    answer = Answer({"session": "open"})
    answer.set_cookie(guard.cookie, guard.token, path="/", httponly=True, samesite="strict")
    return answer
