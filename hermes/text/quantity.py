"""Formats a number together with its noun."""


def counted(number: int, noun: str) -> str:
    """Returns the number with the noun in the right form: `1 line`, `2 lines`, `2 entries`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"
