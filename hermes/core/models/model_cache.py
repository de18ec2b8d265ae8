"""The lists of models that providers gave us, one file each."""

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import msgspec

from hermes.state.paths import write_private
from hermes.text.redact import hide
from hermes.types.profile import ModelChoice, Price
from hermes.types.value import Value


class Listed(Value):
    """A model, as its provider describes it."""

    id: str
    context_length: int | None = None
    price: Price | None = None


class ModelList(Value):
    base_url: str
    """Where it was asked for, without a password: another address has other models."""
    asked_at: float
    models: tuple[Listed, ...]


class Lists:
    """A folder of lists."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def kept(self, place: ModelChoice) -> ModelList | None:
        """The list that was last asked for at the place, however old."""
        path = self._path(place)
        try:
            found = _read(path, path.stat().st_mtime_ns)
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.base_url == hide(place.base_url) else None

    def current(self, place: ModelChoice, age: float) -> ModelList | None:
        """The list, if it is younger than so many seconds."""
        kept = self.kept(place)
        return kept if kept and 0 <= self._clock() - kept.asked_at < age else None

    def find(self, choice: ModelChoice) -> Listed | None:
        """The chosen model, where its provider's list has it."""
        kept = self.kept(choice)
        models = kept.models if kept else ()
        return next((one for one in models if one.id == choice.model), None)

    def keep(self, place: ModelChoice, models: tuple[Listed, ...]) -> ModelList:
        fresh = ModelList(base_url=hide(place.base_url), asked_at=self._clock(), models=models)
        write_private(self._path(place), msgspec.json.encode(fresh).decode())
        return fresh

    def _path(self, place: ModelChoice) -> Path:
        return self._folder / f"{place.provider}.json"


@lru_cache(maxsize=16)
def _read(path: Path, _written_at: int) -> ModelList:
    return msgspec.json.decode(path.read_bytes(), type=ModelList)
