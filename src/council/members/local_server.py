"""The embedded model's own process: llama.cpp behind a loopback port, until its parent is gone.

It stands apart because llama.cpp holds Python's lock while it loads and while it stops, and can abort on a bad file. It
is run as a plain script and imports nothing of ours. What it is to do comes as one line of JSON on standard input, so
that the key shows in no process list; the end of standard input, also when the parent is killed, is its own end.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    wanted = json.loads(sys.stdin.buffer.readline())
    try:
        server = start(**wanted)
    except Exception as error:
        told = {"error": str(error)}
    else:
        told = {"address": server.listening_address}
    os.write(1, json.dumps(told).encode() + b"\n")
    sys.stdin.buffer.read()
    os._exit(0)  # no orderly stop: nothing here is worth the seconds it takes


def start(path: str, key: str, threads: int, seats: int, context: int) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel = context * seats, seats
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_batch = params.n_ubatch = 64  # as fast as 2048 on few threads, and a closed connection is noticed at once
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.warmup = params.ui = params.endpoint_slots = False
    params.cache_ram_mib = 0
    params.model_alias = {Path(path).name}  # else answers would carry the whole path
    params.verbosity = -1
    # A tiny model at a low temperature falls into loops; these keep it out of them without making it ramble.
    params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.05, 64
    params.sampling.dry_multiplier, params.sampling.dry_allowed_length = 0.8, 4
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
