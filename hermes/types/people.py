"""The roles of people."""

import enum


class Role(enum.IntEnum):
    """The rights of a person. A role includes all rights of the roles below it."""

    USER = 1
    ADMIN = 2
    OWNER = 3
