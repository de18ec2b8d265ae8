"""The small demo model that runs on this machine: offers it, and downloads it with a progress
bar."""

import sys
from collections.abc import Mapping
from typing import TextIO

import anyio
from msgspec.structs import replace

from hermes import settings as configuration
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import confirm
from hermes.settings import Settings
from hermes.settings.edit import set_value
from hermes.types.errors import ConfigError

OFFER = "No model is configured. Use the small embedded demo model ({size}, runs here, no tools)?"
BAR_WIDTH = 30
MEGABYTE = 1_000_000


def offer(settings: Settings, runtime: Runtime) -> Settings:
    """Offers the embedded model. If the person accepts, downloads it and returns settings that
    use it.

    Raises ConfigError, which says how to configure a model, if they decline or stdin is not a
    terminal.
    """
    present = sys.stdin.isatty() and sys.stderr.isatty()
    here = runtime.offers(settings).demo_is_downloaded()
    question = OFFER.format(size="downloaded already" if here else "93 MB")
    if not (present and confirm(question, default=True, err=True)):
        raise ConfigError(runtime.models(settings).advice)
    model = fetch(settings, runtime)
    root = settings.home.root
    set_value("model.provider", "local", root)
    if settings.model.default:
        set_value("model.default", model, root)
    return replace(configuration.load(root), workspace=settings.workspace)


def stand_in(settings: Settings, runtime: Runtime, environ: Mapping[str, str]) -> Settings:
    """Returns settings that use the embedded model in this process, if no other model is
    configured."""
    models = runtime.models(settings)
    choice = models.main()
    if choice is not None and not models.is_demo(choice):
        return settings
    model = fetch(settings, runtime)
    named = {"HERMES_INFERENCE_PROVIDER": "local", "HERMES_MODEL": model}
    return configuration.load(settings.home.root, {**environ, **named})


def fetch(settings: Settings, runtime: Runtime) -> str:
    """Downloads the embedded model if necessary, with a progress bar on stderr. Returns its
    name."""
    bar = Bar(sys.stderr)
    try:
        return anyio.run(runtime.download_model, settings, bar)
    finally:
        bar.close()


class Bar:
    """Shows the progress of a download: a bar on a terminal, otherwise a line for every tenth."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._shown = -1
        self._open = False

    def __call__(self, done: int, total: int) -> None:
        terminal = self._file.isatty()
        part = done * (100 if terminal else 10) // total
        if part <= self._shown:
            return
        self._shown = part
        size = f"{done / MEGABYTE:3.0f} of {total / MEGABYTE:.0f} MB"
        if terminal:
            filled = "█" * (done * BAR_WIDTH // total)
            self._write(f"\rembedded model ▕{filled:<{BAR_WIDTH}}▏ {size}")
            self._open = True
        else:
            self._write(f"embedded model: {size}\n")

    def close(self) -> None:
        """Ends the line of the bar, if there is one."""
        if self._open:
            self._write("\n")
            self._open = False

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()
