"""The settings for approvals become a policy, and the names of Hermes Agent are understood."""

from pathlib import Path

import pytest

from hermes.settings import load
from hermes.settings.sources import ConfigProblems
from hermes.types.approvals import ApprovalPolicy
from hermes.types.identity import PersonId


def policy_of(home: Path, text: str) -> ApprovalPolicy:
    (home / "config.yaml").write_text(f"approvals: {{{text}}}\n")
    return load(home, {}).approvals.policy("docker")


def test_by_default_dangerous_actions_need_approval_and_never_run_unattended(
    tmp_path: Path,
) -> None:
    assert load(tmp_path, {}).approvals.policy("sandbox") == ApprovalPolicy(
        mode="auto", taint=True, seconds=3600.0, unattended="deny"
    )


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("mode: off", ApprovalPolicy(mode="off")),
        ("mode: ask", ApprovalPolicy(mode="ask")),
        ("mode: manual", ApprovalPolicy(mode="ask")),
        ("mode: smart", ApprovalPolicy(mode="auto")),
        ("backend_modes: {docker: off}", ApprovalPolicy(mode="off")),
        ("mode: ask, backend_modes: {docker: auto}", ApprovalPolicy(mode="auto")),
        ("mode: ask, backend_modes: {local: 'off'}", ApprovalPolicy(mode="ask")),
        ("timeout: 60", ApprovalPolicy(seconds=60.0)),
        ("cron_mode: approve", ApprovalPolicy(unattended="allow")),
        ("unattended: allow", ApprovalPolicy(unattended="allow")),
        ("untrusted_content: false", ApprovalPolicy(taint=False)),
        ("approvers: ['telegram:7']", ApprovalPolicy(approvers=(PersonId("telegram:7"),))),
    ],
)
def test_each_setting_changes_the_policy(tmp_path: Path, text: str, policy: ApprovalPolicy) -> None:
    assert policy_of(tmp_path, text) == policy


def test_an_unknown_mode_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblems):
        policy_of(tmp_path, "mode: sometimes")
    with pytest.raises(ConfigProblems):
        policy_of(tmp_path, "backend_modes: {docker: sometimes}")
