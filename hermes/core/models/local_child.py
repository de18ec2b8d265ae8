"""The child process of a local model: runs llama.cpp's server until stdin ends."""

import os
import sys

import msgspec

from hermes.types.value import Value

LISTENING = "listening on "
"""Beginning of the line with the address; every other line comes from llama.cpp."""
ERRORS_ONLY = 1
CACHED_MEGABYTES = 256
"""Cache for other conversations; llama.cpp's own default is eight gigabytes."""


class ServerOptions(Value):
    """The model to serve, as the first line of stdin."""

    path: str
    context: int
    key: str
    """Requests without it are refused."""
    threads: int = 1
    tiny: bool = False
    """Whether the model is so small that it repeats itself without a penalty."""

    def __repr__(self) -> str:
        return f"ServerOptions(path={self.path!r}, context={self.context})"


def main() -> None:
    """Serves on a free port. The parent holds stdin, so that we end when it ends."""
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
        # For requests that say nothing else.
        params.n_predict = 512
        params.sampling.temp, params.sampling.top_p = 0.2, 0.9
        params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.1, 256
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        # llama.cpp has said why.
        sys.exit(1)
    os.write(1, f"{LISTENING}{server.listening_address}\n".encode())
    sys.stdin.buffer.read()
    # Its own end waits for answers that nobody will read.
    os._exit(0)


if __name__ == "__main__":
    main()
