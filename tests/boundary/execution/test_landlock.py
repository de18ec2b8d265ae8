"""Restrictions with Landlock, a security module of the Linux kernel.
`tests/testing/test_escapes.py` tries to bypass them."""

from hermes.boundary.execution.landlock import LOWEST_VERSION, landlock_version


def test_the_kernel_has_a_version_that_restricts_signals() -> None:
    assert landlock_version() >= LOWEST_VERSION
