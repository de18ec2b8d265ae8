"""The verdict names the files whose content decides what a command does."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("bash -x x.sh a.txt", ["x.sh"]),
        ("./deploy.sh --now", ["deploy.sh"]),
        ("sudo -u bob nohup ./x &", ["x"]),
        ("python3 -u tool.py --flag", ["tool.py"]),
        ("node -r ./setup.js x.js", ["setup.js", "x.js"]),
        ("node -r dotenv x.js", ["x.js"]),
        ("source env.sh && . ./rc", ["env.sh", "rc"]),
        ("~/bin/x; $HOME/y; /opt/app/z", ["~/bin/x", "~/y", "/opt/app/z"]),
        ("./~/x", ["./~/x"]),
        ("bash --rcfile rc -i", ["rc"]),
        ("awk -f a.awk b; sed -f c.sed d; make -f e.mk", ["a.awk", "c.sed", "e.mk"]),
        (
            "php -f a.php; vim -S b.vim; gdb -x c d; java -jar e.jar",
            ["a.php", "b.vim", "c", "e.jar"],
        ),
        ("deno run --allow-net a.ts; go run main.go", ["a.ts", "main.go"]),
        ("psql -f a.sql", ["a.sql"]),
        ("find . -name '*.sh' -exec ./check {} +", ["check"]),
        ("f=./x.sh; run() { $f; }; run", ["x.sh"]),
        ("for f in a.sh b.sh; do sh $f; done", ["a.sh", "b.sh"]),
    ],
)
def test_a_script_file_is_named(command: str, scripts: list[str]) -> None:
    assert list(judge(command).scripts) == scripts


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("cd sub && ./x", ["sub/x"]),
        ("cd /srv && cd app && ../x", ["/srv/x"]),
        ("(cd sub && ./x); ./y", ["sub/x", "y"]),
        ("env -C sub ./x; sudo -D sub ./y", ["sub/x", "sub/y"]),
        ("cd sub; ./x", ["sub/x", "x"]),
        ("cd sub || ./x", ["sub/x", "x"]),
        ("! cd sub && ./x", ["sub/x", "x"]),
        ("false && cd sub; ./x", ["sub/x", "x"]),
        ("if test -d sub; then cd sub; fi; ./x", ["sub/x", "x"]),
        ("pushd sub && popd && ./x", ["x"]),
        ("bash -c 'cd sub && ./x'", ["sub/x"]),
    ],
)
def test_the_path_of_a_script_takes_the_working_directory_into_account(
    command: str, scripts: list[str]
) -> None:
    assert list(judge(command).scripts) == scripts


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("sh < x.sh", ["x.sh"]),
        ("cat x.sh | sudo bash", ["x.sh"]),
        ("bash <(cat x.sh)", ["x.sh"]),
        ('eval "$(cat x.sh)"', ["x.sh"]),
        ("python3 < x.py", ["x.py"]),
        ("ssh host bash -s < x.sh", ["x.sh"]),
        ("echo ls >> x.sh && bash x.sh", ["x.sh"]),
    ],
)
def test_a_file_that_reaches_a_shell_is_named_and_needs_approval(
    command: str, scripts: list[str]
) -> None:
    verdict = judge(command)
    assert (verdict.outcome, list(verdict.scripts)) == ("ask", scripts)


@pytest.mark.parametrize(
    "command",
    ["cp a.sh b.sh && ./b.sh", "mv a.sh d/; sh d/a.sh", "ln -s a.sh b; ln -s b c; ./c",
     "echo ls > b.sh; cp a.sh b.sh; sh b.sh"],
)  # fmt: skip
def test_a_copied_script_is_named_by_its_original_path(command: str) -> None:
    assert judge(command).scripts == ("a.sh",)


@pytest.mark.parametrize(
    "command",
    ["ls x.sh", "cat x.sh | grep a", "/usr/bin/ls", "echo ls > x.sh && sh x.sh", "pytest x.py",
     "ssh host ./x.sh", "docker exec box ./x.sh", "bash -c 'ls' x.sh", "bash -n x.sh"],
)  # fmt: skip
def test_other_files_are_not_named(command: str) -> None:
    assert judge(command).scripts == ()


@pytest.mark.parametrize(
    "command",
    ["bash $x", "bash *.sh", 'cd "$x" && ./y', '"$x"/y', 'node "$x"', "popd; ./x",
     "su - bob -c ./x",
     "find . -execdir ./x {} +", "while true; do cd sub; done; ./x", "python tools/$x.py"],
)  # fmt: skip
def test_a_script_whose_path_is_not_known_needs_approval(command: str) -> None:
    verdict = judge(command)
    assert (verdict.outcome, verdict.scripts) == ("ask", ())
    assert verdict.reason == "runs a script whose name is known only when the command runs"
