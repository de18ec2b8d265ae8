"""People: the roles that decide which commands a person may use."""

import enum


class Role(enum.IntEnum):
    """The role of a person. A higher role includes the rights of the lower roles."""

    USER = 1
    ADMIN = 2
    OWNER = 3
