"""Vendors of a test that must not be asked: keys and a configuration as `council init` writes it, and a server that
records calls.

Requests to the vendors' own addresses reach the server as their proxy, others by the base URLs of the configuration.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEYS = (
    "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "TAVILY_API_KEY", "BRAVE_SEARCH_API_KEY",
    "MISTRAL_API_KEY", "GROQ_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY",
)  # fmt: skip
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy")
CONFIGURATION = """\
[models]
default = "anthropic:claude-opus-4.6"
fast = "openai:gpt-5-mini"
[providers.google]
base_url = "{address}/v1"
[providers.own]
wire = "openai"
base_url = "{address}/v1"
[seats.alpha]
model = "anthropic:claude-opus-4.6"
fallback = ["openrouter:openai/gpt-5.2"]
[seats.beta]
model = "openai:gpt-5.2"
[seats.gamma]
model = "own:model"
[seats.first]
model = "google:gemini-3-pro-preview"
[seats.one]
model = "openai:gpt-5.2"
[chair]
model = "anthropic:claude-opus-4.6"
fallback = ["openai:gpt-5.2"]
"""


class VendorTrap:
    """A server that answers nothing useful and keeps the first line of each request."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    line = connection.recv(4096).split(b"\r\n")[0].decode(errors="replace")
                    self.requests.append(line)
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                except OSError:
                    self.requests.append("a connection without a request")

    def close(self) -> None:
        self._listener.close()

    def variables(self) -> dict[str, str]:
        """Return keys of all vendors, and the server as the proxy of their addresses."""
        keys = {name: "-".join(["not", "a", "key", name.lower().replace("_", "-")]) for name in KEYS}
        return keys | self.proxies()

    def proxies(self) -> dict[str, str]:
        return {name: "" if name.upper() == "NO_PROXY" else self.address for name in PROXIES}

    def write_configuration(self, config_home: Path) -> None:
        path = config_home / "council" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CONFIGURATION.format(address=self.address), encoding="utf-8")


@contextmanager
def vendor_trap() -> Iterator[VendorTrap]:
    """Set the keys, the configuration and the proxies for this process and those that it starts.

    Fail if a vendor was asked.
    """
    trap = VendorTrap()
    before = dict(os.environ)
    os.environ.update(trap.variables())
    trap.write_configuration(Path(os.environ["XDG_CONFIG_HOME"]))
    try:
        yield trap
    finally:
        trap.close()
        os.environ.clear()
        os.environ.update(before)
    assert trap.requests == [], f"an example of the documentation asked a vendor: {trap.requests}"
