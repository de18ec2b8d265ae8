"""The child process of a local model. It runs llama.cpp's server until stdin is closed."""

import os
import sys

import msgspec

from hermes.types.value import Value

LISTENING = "listening on "
"""Beginning of the output line that contains the address of the server. All other lines come from
llama.cpp."""
ERRORS_ONLY = 1
DEMO_ANSWER_TOKENS = 512
"""Longest answer of the demo model in tokens. Without a limit, an answer that repeats itself would
never end."""
CACHED_MEGABYTES = 256
"""Size of the prompt cache. The default of llama.cpp is eight gigabytes."""


class ServerOptions(Value):
    """The options of the child process, which it reads from the first line of stdin."""

    path: str
    context: int
    key: str
    """Requests without this key are refused."""
    threads: int = 1
    tiny: bool = False
    """Whether the model is so small that it needs a penalty for repetition."""

    def __repr__(self) -> str:
        return f"ServerOptions(path={self.path!r}, context={self.context})"


def main() -> None:
    """Serves on a free port until stdin is closed, which happens when the parent process ends."""
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerOptions)
    import xllamacpp  # type: ignore[import-untyped] # noqa: PLC0415  # only this process has it

    params = xllamacpp.CommonParams()
    params.model.path = options.path
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [options.key]
    params.n_ctx = options.context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = CACHED_MEGABYTES
    params.verbosity = ERRORS_ONLY
    if options.tiny:
        # Defaults for requests that do not set these options.
        params.n_predict = DEMO_ANSWER_TOKENS
        params.sampling.temp, params.sampling.top_p = 0.2, 0.9
        params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.1, 256
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        # llama.cpp has already printed the cause of the error.
        sys.exit(1)
    try:
        # If the parent process has ended while the model was being loaded, this write fails and the
        # process exits.
        os.write(1, f"{LISTENING}{server.listening_address}\n".encode())
        sys.stdin.buffer.read()
    finally:
        # A normal exit, or an exception, would wait for the running answers, which nobody reads any
        # more.
        os._exit(0)


if __name__ == "__main__":
    main()
