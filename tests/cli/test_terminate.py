"""aj terminate: what was asked for and until when, and the same words for what had ended before."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Shell


@pytest.mark.rule("C-025", "C-078")
def test_the_words_of_an_end(live: Shell) -> None:
    live.write("long.sh", "trap '' TERM\necho ready; while :; do sleep 1; done\n")
    live.write("short.sh", "true\n")
    over = live("run", "--wait", "-o", "name", "short.sh").out.strip()
    aj_id = live("run", "-o", "name", "long.sh").out.strip()
    for _ in range(200):
        if "ready" in live("logs", aj_id).out:
            break
    asked = live("terminate", aj_id, "--grace", "90s")
    assert asked.rows[0][3] == "asked to end; KILL in 1m30s"
    plain = live("terminate", over).rows
    assert (plain, plain[0][1:]) == (
        live("terminate", over, "--wait").rows,
        ["noop", "completed", "it has ended already"],
    )
    both = live("terminate", over, "nosuchjob", aj_id, "--grace", "0", "--wait", "--json")
    assert both.code == 3
    assert [item["status"] for item in both.json["items"]] == ["noop", "failed", "ok"]
    assert both.json["items"][2]["state"] == "terminated"
