"""The small demo model that runs on this machine: the offer, and the download with a bar."""

import sys
from collections.abc import Mapping

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
    """Settings with the embedded model, downloaded and saved, if the person agrees to it.

    ConfigError says how to configure a model if they do not, or if nobody sits at the terminal.
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
    """Settings with the embedded model for this process, if no other is configured."""
    models = runtime.models(settings)
    choice = models.main()
    if choice is not None and not models.is_demo(choice):
        return settings
    model = fetch(settings, runtime)
    named = {"HERMES_INFERENCE_PROVIDER": "local", "HERMES_MODEL": model}
    return configuration.load(settings.home.root, {**environ, **named})


def fetch(settings: Settings, runtime: Runtime) -> str:
    """Downloads the embedded model if it is not here, with a bar on stderr; its name."""
    bar = ProgressBar(sys.stderr, "embedded model", _megabytes)
    try:
        return anyio.run(runtime.download_model, settings, bar)
    finally:
        bar.close()


def _megabytes(done: int, total: int) -> str:
    return f"{done / MEGABYTE:3.0f} of {total / MEGABYTE:.0f} MB"
