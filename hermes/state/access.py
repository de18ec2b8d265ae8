"""People who were admitted by pairing."""

from hermes.types.identity import PersonId
from hermes.types.store import Work


def load_paired() -> Work[dict[tuple[str, str], PersonId]]:
    """Returns the people who were paired. A key is a pair of platform and user id."""
    rows = yield "select platform, user_id, person from access", ()
    return {(platform, user): PersonId(person) for platform, user, person in rows}
