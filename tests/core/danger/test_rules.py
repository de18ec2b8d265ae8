"""Simple programs are judged by the table of rules."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("systemctl status a", "run"),
        ("systemctl -q stop a", "ask"),
        ("systemctl --help", "run"),
        ("docker ps", "run"),
        ("docker --context x rm a", "ask"),
        ("docker rm -h", "run"),
        ("kubectl get a", "run"),
        ("kubectl -n a delete b", "ask"),
        ("kubectl delete a --dry-run=client", "run"),
        ("kubectl delete a --dry-run=none", "ask"),
        ("gcloud a b delete c", "ask"),
        ("gcloud a list", "run"),
        ("aws ec2 terminate-instances", "ask"),
        ("aws ec2 describe-instances", "run"),
        ("mkfs.ext4 /dev/sda", "never"),
        ("mkfs.ext4 disk.img", "run"),
        ("wipefs /dev/sda", "run"),
        ("wipefs -a /dev/sda", "never"),
        ("fdisk -l /dev/sdb", "run"),
        ("shutdown -c", "ask"),
        ("shutdown now", "never"),
        ("reboot --help", "run"),
        ("crontab -l", "run"),
        ("crontab f", "ask"),
        ("sysctl a", "run"),
        ("sysctl a=b", "ask"),
        ("iptables -L", "run"),
        ("iptables -A INPUT", "ask"),
        ("apt install a", "run"),
        ("apt remove a", "ask"),
        ("apt remove -s a", "run"),
        ("sort -o /etc/x a", "ask"),
        ('sort --compress-program="rm -r a" b', "ask"),
        ("gcc -o a a.c", "run"),
        ("gcc -o /usr/bin/a a.c", "ask"),
        ('man -P "rm -r a" ls', "ask"),
        ("terraform plan", "run"),
        ("terraform -chdir=a destroy", "ask"),
        ('zip a b -TT "rm -r c"', "ask"),
        ("nginx -s stop", "ask"),
        ("nginx -t", "run"),
        ("sudoedit /etc/x", "ask"),
        ("cmd /c 'del /s x'", "ask"),
    ],
)
def test_programs_are_judged_by_the_table(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
