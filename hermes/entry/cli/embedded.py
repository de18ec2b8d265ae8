"""Offers the small demo model, which runs on this machine, and downloads it with a progress bar."""

import sys
from collections.abc import Mapping
from contextlib import suppress

import anyio
from msgspec.structs import replace

from hermes import settings as configuration
from hermes.entry.cli.progress_bar import ProgressBar
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import confirm
from hermes.settings import Settings
from hermes.settings.edit import set_value
from hermes.types.errors import ConfigError

OFFER = "No model is configured. Use the small embedded demo model ({size}, runs here, no tools)?"
MEGABYTE = 1_000_000


def offer(settings: Settings, runtime: Runtime) -> Settings:
    """Offers the embedded model. If the person accepts, downloads it and returns settings that use
    it.

    If the person declines, or if stdin is not a terminal, raises a ConfigError that says how to
    configure a model.
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
    """Returns settings that use the embedded model, if no other model can be used; otherwise
    returns the settings unchanged.

    The choice is saved, so that `hermes chat` uses the same model as the gateway. The choice is not
    saved if the configuration names another model, which can't be used yet, or if config.yaml can't
    be written.
    """
    models = runtime.models(settings)
    choice = models.main()
    if choice is not None and not models.is_demo(choice):
        return settings
    model = fetch(settings, runtime)
    if choice is None and not settings.model.default:
        with suppress(OSError, ConfigError):
            set_value("model.provider", "local", settings.home.root)
    named = {"HERMES_INFERENCE_PROVIDER": "local", "HERMES_MODEL": model}
    return configuration.load(settings.home.root, {**environ, **named})


def fetch(settings: Settings, runtime: Runtime) -> str:
    """Downloads the embedded model if necessary, with a progress bar on stderr. Returns its
    name."""
    bar = ProgressBar(sys.stderr, "embedded model", _megabytes)
    try:
        return anyio.run(runtime.download_model, settings, bar)
    finally:
        bar.close()


def _megabytes(done: int, total: int) -> str:
    return f"{done / MEGABYTE:3.0f} of {total / MEGABYTE:.0f} MB"
