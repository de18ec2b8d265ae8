"""Checks the configured models for `hermes doctor`. Each endpoint is asked for its list of models;
no model is called."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from hermes.core.models.catalog import LOCAL
from hermes.core.models.download import SMOLLM2
from hermes.core.models.local import EMBEDDED, check_installed, server_options
from hermes.core.models.model_discovery import ModelDiscovery
from hermes.core.models.resolver import ConfiguredModels
from hermes.text.redact import redact_tokens
from hermes.text.spelling import did_you_mean
from hermes.types.checks import Check, CheckJob, known_checks
from hermes.types.errors import ConfigError, HermesError, RateLimited, Rejected
from hermes.types.profile import ModelChoice

ANSWER_SECONDS = 3.0
"""Longest time in seconds for an endpoint to return its list of models."""


def model_jobs(models: ConfiguredModels, discovery: ModelDiscovery) -> Iterator[CheckJob]:
    """Yields the checks of the main model, the auxiliary model and each fallback. The checks are
    not run yet."""
    choices: dict[str, Callable[[], Sequence[ModelChoice | None]]] = {
        "model": lambda: [models.main()],
        "auxiliary": lambda: [models.auxiliary()] if models.has_auxiliary else [],
        "fallback": models.fallbacks,
    }
    for name, choose in choices.items():
        try:
            found = choose()
        except ConfigError as error:
            hint = "correct the settings of the model, or choose one with `hermes model`"
            yield known_checks(Check(name=name, level="error", text=str(error), hint=hint))
            continue
        for choice in found:
            if choice is None:
                hint = "`hermes model` says how to choose one"
                text = "no model is configured"
                yield known_checks(Check(name=name, level="error", text=text, hint=hint))
            elif choice.provider == LOCAL:
                yield known_checks(check_local(name, choice, models.config.models))
            else:
                yield CheckJob(
                    name=name,
                    run=partial(check_endpoint, name, choice, discovery),
                    seconds=ANSWER_SECONDS,
                    late=f"{_title(choice)} did not answer within {ANSWER_SECONDS:g} s",
                    hint="check the network and the address of the model",
                )


async def check_endpoint(
    name: str, choice: ModelChoice, discovery: ModelDiscovery
) -> tuple[Check, ...]:
    """Requests the list of models, and looks for the chosen model in it."""
    begun, title = time.monotonic(), _title(choice)
    try:
        listed = [one.id for one in await discovery.fetch(choice)]
    except (RateLimited, Rejected) as error:
        # If the list can't be read, calls of the model may still work, so the check reports only a
        # warning. Some endpoints have no list of models. And a provider that requests a pause
        # accepts calls again after the pause.
        hint = "`hermes model test` calls the model once"
        return (Check(name=name, level="warning", text=f"{title}: {error}", hint=hint),)
    except HermesError as error:
        hint = "`hermes model` shows the address and the source of the key"
        return (Check(name=name, level="error", text=f"{title}: {error}", hint=hint),)
    if listed and choice.model not in listed:
        text = f"{choice.provider} does not list {choice.model!r}"
        text += did_you_mean(choice.model, listed, 0.4)
        hint = "`hermes model list` shows its models; `hermes model test` calls the model once"
        return (Check(name=name, level="warning", text=text, hint=hint),)
    key = f", key from {choice.key_place}" if choice.api_key and choice.key_place else ""
    took = 1000 * (time.monotonic() - begun)
    return (Check(name=name, level="ok", text=f"{title} answers ({took:.0f} ms){key}"),)


def check_local(name: str, choice: ModelChoice, models: Path) -> Check:
    """Checks that the package and the file of a local model exist."""
    try:
        check_installed()
        if choice.model == EMBEDDED and not SMOLLM2.is_downloaded(models):
            text = f"{choice.model} is not downloaded yet: it is downloaded at its first use"
            return Check(name=name, level="ok", text=text)
        server_options(choice, models)
    except ConfigError as error:
        hint = "install what is missing, or choose another model with `hermes model`"
        return Check(name=name, level="error", text=str(error), hint=hint)
    return Check(name=name, level="ok", text=f"{choice.model}, which runs on this machine")


def _title(choice: ModelChoice) -> str:
    return f"{choice.model} ({choice.provider}, {redact_tokens(choice.base_url)})"
