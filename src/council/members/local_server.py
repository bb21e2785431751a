"""Server process of the embedded model: llama.cpp on a loopback port, until the parent exits.

It is a separate process because llama.cpp holds the GIL while it loads and stops, and can abort on a bad file. It runs
as a plain script without imports from this package. The configuration is one line of JSON on standard input, so the key
does not appear in process lists. The process exits at end of file, also if the parent is killed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    config = json.loads(sys.stdin.buffer.readline())
    try:
        # The number of a file in memory, by which a slot gets the state of another one. Only Linux has them.
        state_file = str(os.memfd_create("slot")) if hasattr(os, "memfd_create") else ""
        server = start_server(**config, state_file=state_file)
    except Exception as error:
        response = {"error": str(error)}
    else:
        response = {"address": server.listening_address, "state_file": state_file}
    os.write(1, json.dumps(response).encode() + b"\n")
    sys.stdin.buffer.read()
    os._exit(0)  # an orderly shutdown takes seconds and saves nothing


def start_server(path: str, key: str, threads: int, seats: int, context: int, state_file: str) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel = context * seats, seats
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_batch = params.n_ubatch = 64  # as fast as 2048 on few threads, and a closed connection is noticed at once
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.warmup = params.ui = params.endpoint_slots = False
    params.cache_ram_mib = 0
    if state_file:
        params.slot_save_path = "/proc/self/fd/"
    params.model_alias = {Path(path).name}  # otherwise answers contain the full path
    params.verbosity = -1
    # A tiny model loops at low temperatures; these penalties prevent it without making it ramble.
    params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.05, 64
    params.sampling.dry_multiplier, params.sampling.dry_allowed_length = 0.8, 4
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
