"""Caches the model lists of providers, in one file per provider."""

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import msgspec

from hermes.state.paths import write_private
from hermes.text.redact import redact_tokens
from hermes.types.messages import AttachmentKind
from hermes.types.profile import ModelChoice, Price
from hermes.types.value import Value


class ListedModel(Value):
    """A model in a provider's list."""

    id: str
    context_length: int | None = None
    price: Price | None = None
    attachments: tuple[AttachmentKind, ...] | None = None
    """Kinds of attachments that the model accepts; None if the list does not say."""


class CachedList(Value):
    base_url: str
    """The address that the list came from, without a password. The list is valid only for this
    address."""
    asked_at: float
    models: tuple[ListedModel, ...]


class ModelCache:
    """The cached model lists in one folder. The methods use only the provider and the address of
    the parameter `endpoint`, not its model."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def last(self, endpoint: ModelChoice) -> CachedList | None:
        """Returns the endpoint's list that was cached last, however old it is; None if no list is
        cached."""
        path = self._path(endpoint)
        try:
            found = _read(path, path.stat().st_mtime_ns)
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.base_url == redact_tokens(endpoint.base_url) else None

    def current(self, endpoint: ModelChoice, age: float) -> CachedList | None:
        """Returns the endpoint's cached list if it is younger than `age` seconds, and None
        otherwise."""
        last = self.last(endpoint)
        return last if last and 0 <= self._clock() - last.asked_at < age else None

    def find(self, choice: ModelChoice) -> ListedModel | None:
        """Returns the chosen model from the list of its provider, or None if it is not listed."""
        last = self.last(choice)
        models = last.models if last else ()
        return next((one for one in models if one.id == choice.model), None)

    def save(self, endpoint: ModelChoice, models: tuple[ListedModel, ...]) -> CachedList:
        fresh = CachedList(
            base_url=redact_tokens(endpoint.base_url), asked_at=self._clock(), models=models
        )
        write_private(self._path(endpoint), msgspec.json.encode(fresh).decode())
        return fresh

    def _path(self, endpoint: ModelChoice) -> Path:
        return self._folder / f"{endpoint.provider}.json"


@lru_cache(maxsize=16)
def _read(path: Path, _written_at: int) -> CachedList:
    return msgspec.json.decode(path.read_bytes(), type=CachedList)
