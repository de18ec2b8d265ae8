"""Every quick test in this folder also runs on a store that runs each transaction twice."""

from hermes.testing.every_store import pytest_generate_tests, store_kind

__all__ = ["pytest_generate_tests", "store_kind"]
