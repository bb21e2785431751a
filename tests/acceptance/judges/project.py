"""Content of the fixture repository."""

from __future__ import annotations

JWT = """import base64
import json


def decode(token):
    head, body, signature = token.split(".")
    return json.loads(base64.b64decode(body))


def check(token, key):
    claims = decode(token)
    return claims
"""
CUSTOM = """perspectives:
  - name: security-auditor
    focus: Find where trust is given away
  - name: performance-critic
    focus: Find what does not scale
"""
FILES = {
    "README.md": "# Shop\n\nSells things.\n",
    "PLAN.md": "# Plan\n\n1. Migrate the database.\n",
    "docs/ARCHITECTURE.md": "# Architecture\n\nOne process.\n",
    "src/auth/jwt.py": JWT,
    "src/auth/middleware.py": "def guard(request):\n    return request.user is not None\n",
    "src/api/routes.py": "def routes():\n    return ['/orders']\n",
    "src/app.py": "import sys\n\nprint(sys.argv)\n",
    ".agents/perspectives/api-review.yaml": CUSTOM,
    ".agents/perspectives/custom.yaml": CUSTOM,
}
