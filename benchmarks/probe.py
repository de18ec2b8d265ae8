"""Calls GET /health at a fixed pace from a process of its own, to measure the delay of the event
loop."""

import json
import select
import sys
import time
from http.client import HTTPConnection


def poll(port: int, every: float) -> list[tuple[float, float]]:
    """Calls GET /health until standard input ends. Returns the due time and the delay of each call.

    While the probe waits for a late answer, the next calls can't start. The delay of a call is
    counted from the time at which the call was due, so the delay includes this wait.
    """
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    seen: list[tuple[float, float]] = []
    due = time.perf_counter()
    while not select.select([sys.stdin], [], [], max(0.0, due - time.perf_counter()))[0]:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise ConnectionError(f"/health answered {answer.status}")
        seen.append((due, time.perf_counter() - due))
        due += every
    connection.close()
    return seen


if __name__ == "__main__":
    print(json.dumps(poll(int(sys.argv[1]), float(sys.argv[2]))))
