"""What amlt prints: the job it names, the link to it, and nothing that is a secret."""

from __future__ import annotations

import pytest

from aj.backend.amlt.output import KEPT_LINES, Output


def of(*lines: str) -> Output:
    found = Output({})
    for line in lines:
        found.take(line)
    return found


@pytest.mark.rule("C-256", "A-192")
@pytest.mark.parametrize(
    ("line", "link"),
    [
        ("at https://ml.azure.com/runs/a_1?wsid=/s&tid=t.", "https://ml.azure.com/runs/a_1?wsid=/s&tid=t"),
        ("(https://portal.azure.com/#view/x)", "https://portal.azure.com/#view/x"),
        ("| https://ms.portal.azure.com/x |", "https://ms.portal.azure.com/x"),
        ("HTTPS://ML.AZURE.COM", "HTTPS://ML.AZURE.COM"),
        ("\x1b[34mhttps://ml.azure.com/runs/b\x1b[0m", "https://ml.azure.com/runs/b"),
        ("http://ml.azure.com/runs/b", None),
        ("https://ml.azure.com.evil.example/runs/b", None),
        ("https://evilml.azure.com@x/", None),
        ("https://docs.example/ml.azure.com", None),
    ],
)
def test_the_portal_link(line: str, link: str | None) -> None:
    assert of(line).portal_url == link


@pytest.mark.rule("C-256", "A-192", "C-156")
@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (["see https://ml.azure.com/runs/calm_sky_1?wsid=x"], "calm_sky_1"),
        (["https://ml.azure.com/experiments/id/1-2/runs/calm-2"], "calm-2"),
        (["Job name: lively_1", "Run ID = other"], "lively_1"),
        (["  run_id: r1"], "r1"),
        (["azure name: 'a1'"], "a1"),
        (["Job: submitting", "1 job submitted", "experiment name: e1"], None),
        (["job name: x.y", "job id: a/b"], None),
        (["https://portal.azure.com/#x"], None),
    ],
)
def test_the_name(lines: list[str], name: str | None) -> None:
    assert of(*lines).name == name
    assert of(*lines).shows_a_job is (name is not None or "https" in lines[0])


@pytest.mark.rule("C-256", "A-194")
def test_secrets_are_masked_and_the_last_lines_kept() -> None:
    found = Output({"MY_TOKEN": "abcd", "PASSWORD": "ab", "LEVEL": "abcd-level"})
    assert found.take("t=abcd-level ab \x1b[1mbold\x1b[0m  ") == "t=***-level ab bold"
    assert "sig=***" in found.take("https://x.blob/y?sv=1&sig=AbCd%3D")
    for number in range(100):
        found.take(str(number))
    assert found.last == tuple(str(number) for number in range(100 - KEPT_LINES, 100))
