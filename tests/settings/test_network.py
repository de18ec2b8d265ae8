"""The setting `terminal.network`."""

from pathlib import Path

import pytest

from hermes.settings import load
from hermes.settings.network import network_policy
from hermes.types.errors import ConfigError
from hermes.types.execution import NetworkPolicy


def policy_of(home: Path, text: str) -> NetworkPolicy:
    (home / "config.yaml").write_text(f"terminal: {{network: {text}}}\n")
    return network_policy(load(home, {}).terminal)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("none", NetworkPolicy()),
        ("[]", NetworkPolicy()),
        ("open", NetworkPolicy(mode="open")),
        ("example.org", NetworkPolicy(mode="hosts", hosts=("example.org",))),
        (
            "[Example.org, '*.example.net']",
            NetworkPolicy(mode="hosts", hosts=("example.org", "*.example.net")),
        ),
        ("['2606:4700::1']", NetworkPolicy(mode="hosts", hosts=("2606:4700::1",))),
    ],
)
def test_the_setting_is_a_mode_or_a_list_of_hosts(
    tmp_path: Path, text: str, policy: NetworkPolicy
) -> None:
    assert policy_of(tmp_path, text) == policy


def test_without_the_setting_there_is_no_network(tmp_path: Path) -> None:
    assert network_policy(load(tmp_path, {}).terminal) == NetworkPolicy(mode="none")


def test_a_variable_lists_hosts_with_commas(tmp_path: Path) -> None:
    settings = load(tmp_path, {"TERMINAL_NETWORK": "a.example, b.example"})
    assert network_policy(settings.terminal).hosts == ("a.example", "b.example")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("[https://example.org/simple]", "write 'example.org'"),
        ("['example.org:443']", "write 'example.org'"),
        ("['*']", "such as 'example.org'"),
        ("['a.*.org']", "such as 'example.org'"),
        ("[open, example.org]", "'open' can't be in a list"),
    ],
)
def test_other_values_are_refused_with_advice(tmp_path: Path, text: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=r"terminal\.network") as raised:
        policy_of(tmp_path, text)
    assert advice in str(raised.value)
