"""The interface through which the commands use the application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from pathlib import Path

    from hermes.control.gateway import Gateway
    from hermes.control.messenger import ChatMessenger
    from hermes.settings import Settings
    from hermes.types.checks import Check
    from hermes.types.commands import SlashCommand
    from hermes.types.context_files import ContextFiles
    from hermes.types.danger import Verdict
    from hermes.types.deployment import GatewayRegistration, RunningGateway, StoreNode
    from hermes.types.messages import AssistantMessage, Origin, Sampling
    from hermes.types.offers import ModelOffers, ModelResolver
    from hermes.types.platforms import AnyPlatform
    from hermes.types.profile import ModelChoice
    from hermes.types.protocols import Emit
    from hermes.types.sandboxes import HomeSandboxes
    from hermes.types.store import Store
    from hermes.types.store_copy import CopyResult, CopyStep
    from hermes.types.turns import Prompt


class Runtime(Protocol):
    """The application, as `hermes.__main__` passes it to the commands."""

    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        """Opens a gateway on the home's store. When the block ends, the gateway drains: running
        turns can finish."""
        ...

    def open_store(self, settings: Settings) -> AbstractAsyncContextManager[Store]:
        """Opens the home's store for reading or for a small change. A gateway may run at the same
        time."""
        ...

    def open_messenger(self, settings: Settings) -> AbstractAsyncContextManager[ChatMessenger]:
        """Opens the home's store to queue messages for chats. A running gateway sends the
        messages."""
        ...

    async def copy_store(
        self, settings: Settings, to: str, report: Callable[[CopyStep], None]
    ) -> CopyResult:
        """Copies the home's store. `to` is the address of a database, the path of a new file, or
        `sqlite`.

        Raises CopyRefused if the store is in use or the target contains other data.
        """
        ...

    async def store_nodes(self, settings: Settings) -> Sequence[StoreNode]:
        """Returns the processes that share the home's store. The result is empty if only this
        machine can use the store."""
        ...

    def commands(self) -> Sequence[SlashCommand]:
        """Returns the slash commands, including those of plugins."""
        ...

    def platforms(self) -> Sequence[AnyPlatform]:
        """Returns the installed chat platforms."""
        ...

    def register_gateway(self, run: Path) -> AbstractContextManager[GatewayRegistration]:
        """Lists this process in the home's `run` folder as a gateway until the block ends."""
        ...

    def running_gateways(self, run: Path) -> list[RunningGateway]:
        """Returns the running gateways that are listed in the `run` folder, ordered by port."""
        ...

    def delete_session_files(self, settings: Settings, session: str) -> None:
        """Deletes the files of a session that was deleted."""
        ...

    def has_room(self, settings: Settings) -> bool:
        """Returns whether the disk of the home has enough free space to start the gateway."""
        ...

    def write_private(self, path: Path, text: str) -> None:
        """Replaces the content of a file that only its owner can read."""
        ...

    async def check(self, settings: Settings) -> Sequence[str]:
        """Returns warnings about the settings. Raises ConfigError if an agent could not work
        with them.

        The home is not changed.
        """
        ...

    def open_sandboxes(self, settings: Settings) -> AbstractAsyncContextManager[HomeSandboxes]:
        """Opens the sandboxes of all agents of the home. A gateway may use them at the same
        time."""
        ...

    async def diagnose(self, home: Path, environ: Mapping[str, str]) -> Sequence[Check]:
        """Checks the home and all parts of Hermes for `hermes doctor`. Nothing is changed, and no
        result contains a secret."""
        ...

    async def new_prompt(self, settings: Settings, platform: str, origin: Origin) -> Prompt:
        """Returns the system prompt that the owner's next conversation would have if it began from
        this origin."""
        ...

    async def run_housekeeping(self, settings: Settings) -> None:
        """Takes snapshots of the store and updates the lists of models, until cancelled."""
        ...

    def api_key(self, settings: Settings) -> str:
        """Returns the key of the API's clients. Generates and stores a key if none is
        configured."""
        ...

    def secrets(self, settings: Settings) -> frozenset[str]:
        """Returns the secrets of every hosted agent, which must not be logged."""
        ...

    def unused_data(self, settings: Settings) -> str:
        """Describes the data that Hermes Agent, another program, has left in the home. Hermes does
        not use this data. Returns an empty text if the home has no such data."""
        ...

    def context_files(self, settings: Settings) -> ContextFiles:
        """Returns the list of the context files that the agent of this home has written. The owner
        can allow or block each file."""
        ...

    def judge_command(self, command: str) -> Verdict:
        """Returns whether a shell command may run on this machine without approval."""
        ...

    def models(self, settings: Settings) -> ModelResolver:
        """Returns the configured models."""
        ...

    def offers(self, settings: Settings) -> ModelOffers:
        """Returns the providers and models that can be configured."""
        ...

    def model_problem(self, settings: Settings) -> Callable[[str], str | None]:
        """Returns a function that tells why a `provider/model` can't be called with these settings.
        The function returns None if the model can be called, and "" if the provider is unknown or
        the reason is not for clients."""
        ...

    def ignored_options(
        self, settings: Settings
    ) -> Callable[[str | None, Sampling], Collection[str]]:
        """Returns a function that names the options that a model does not support. Its first
        argument is a `provider/model`, or None for the model in the settings."""
        ...

    async def refresh_models(
        self, settings: Settings, endpoint: ModelChoice, *, fresh: bool
    ) -> None:
        """Requests the list of models from a provider, at most once a day unless `fresh` is
        true."""
        ...

    async def call_model(
        self, settings: Settings, choice: ModelChoice, text: str, emit: Emit
    ) -> AssistantMessage:
        """Sends one question to a model, without tools and without retries."""
        ...

    async def download_model(self, settings: Settings, progress: Callable[[int, int], None]) -> str:
        """Downloads the embedded model if necessary. Returns its name for `model.default`."""
        ...
