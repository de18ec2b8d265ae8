"""Makes Markdown tables."""

from collections.abc import Iterable, Iterator


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        cells = [" ".join(cell.replace("|", r"\|").split()) for cell in row]
        yield f"| {' | '.join(cells)} |"
