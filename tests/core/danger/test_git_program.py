"""Git commands are judged by the work that they could lose and the commands that they run."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("git push", "run"),
        ("git push -f", "ask"),
        ("git push origin +a", "ask"),
        ("git push origin :a", "ask"),
        ("git push -n -f", "run"),
        ("git push $x", "ask"),
        ('git push origin "$x"', "run"),
        ("git reset", "run"),
        ("git reset --hard", "ask"),
        ("git reset $x", "ask"),
        ("git clean -n", "run"),
        ("git clean -f", "ask"),
        ("git checkout a", "run"),
        ("git checkout -- a", "ask"),
        ("git checkout -f a", "ask"),
        ("git checkout -B a", "ask"),
        ("git restore a", "ask"),
        ("git restore --staged a", "run"),
        ("git switch a", "run"),
        ("git switch -f a", "ask"),
        ("git branch -d a", "run"),
        ("git branch -D a", "ask"),
        ("git tag a", "run"),
        ("git tag -d a", "ask"),
        ("git stash", "run"),
        ("git stash drop", "ask"),
        ("git filter-branch --tree-filter ls", "ask"),
        ("git gc", "run"),
        ("git gc --prune=now", "ask"),
        ("git update-ref -d a", "ask"),
        ("git rm a", "run"),
        ("git rm -r a", "ask"),
        ("git worktree remove -f a", "ask"),
        ("git submodule deinit -f a", "ask"),
        ("git push --help", "run"),
        ("git --version", "run"),
        ("git", "run"),
        ("git config --global credential.helper '!x'", "ask"),
        ("git config credential.helper store", "run"),
    ],
)
def test_a_git_command_that_could_lose_work_needs_approval(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ('git -c core.pager="rm -r a" log', "ask"),
        ("git -c core.pager=cat log", "run"),
        ('git -c alias.x="!rm -r a" x', "ask"),
        ('git -c alias.x="push -f" x', "ask"),
        ("git -c credential.helper=store fetch", "run"),
        ("git config user.name x", "run"),
        ("git config core.hooksPath x", "ask"),
        ("git config --get core.hooksPath", "run"),
        ("git config core.editor vim", "run"),
        ("git config core.fsmonitor x", "ask"),
        ('git config --global alias.x "!ls"', "ask"),
        ("git config --unset-all x", "ask"),
        ("git config -f /etc/gitconfig a.b c", "ask"),
        ('git rebase -x "rm -r a" b', "ask"),
        ("git bisect run rm -r a", "ask"),
        ('git submodule foreach "rm -r a"', "ask"),
        ("git submodule foreach git pull", "run"),
        ('git clone -c core.sshCommand="rm -r a" u', "ask"),
        ('git fetch --upload-pack "rm -r a"', "ask"),
        ('git clone "ext::rm -r a"', "ask"),
        ('git push --receive-pack "rm -r a"', "ask"),
        ("git config set user.name x", "run"),
    ],
)
def test_commands_in_settings_are_evaluated(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
