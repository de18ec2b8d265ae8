"""Calculates how many connections the HTTP server can hold, from the number of file descriptors
that the process can open."""

import contextlib
import resource

RESERVED_DESCRIPTORS = 128
"""Number of descriptors for the store, its snapshots, logs, pipes to commands, and the listening
socket."""
MOST_DESCRIPTORS = 65_536
LEAST_CONNECTIONS = 8


def raise_descriptor_limit() -> None:
    """Raises the soft limit of this process to its hard limit, but to at most MOST_DESCRIPTORS."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # macOS refuses a number above its own limit, which `getrlimit` does not report. The soft
        # limit then stays as it is.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """Returns the number of client connections for which there are descriptors.

    Half of the descriptors are left for models, because each request may need a connection to a
    model.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, MOST_DESCRIPTORS)
    return max(LEAST_CONNECTIONS, (limit - RESERVED_DESCRIPTORS) // 2)
