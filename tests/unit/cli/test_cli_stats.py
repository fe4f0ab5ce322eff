"""`overspill stats`: figures over all sessions that can still be seen."""

import json

import pytest
from commands import Place


def test_figures_of_all_sessions_are_summed(place: Place):
    place.keep(a="one two three", b="four")
    place.keep(c="five")
    code, out, err = place.overspill("stats")
    assert (code, err) == (0, "")
    assert "Sessions\t2 (0 live)\n" in out
    assert "Outputs kept\t3 (21 bytes)\n" in out
    stats = json.loads(place.overspill("stats", "--json").out)
    assert (stats["total"]["kept"], stats["total"]["kept_bytes"], stats["total"]["truncation_rate"]) == (3, 21, 0.0)
    assert [(session["live"], session["kept"]) for session in stats["sessions"]] == [(False, 2), (False, 1)]


def test_without_sessions_all_figures_are_zero(place: Place):
    assert json.loads(place.overspill("stats", "--json").out)["total"]["calls"] == 0
    shown = place.overspill("stats")
    assert "0 (0 live)" in shown.out
    assert "No session is stored, so every figure is 0." in shown.err
    assert place.overspill("stats", "-q").err == ""
    place.keep(a="x")
    assert place.overspill("stats").err == ""


@pytest.mark.parametrize(
    "command", [("stats",), ("verify",), ("jobs",), ("artifacts", "list"), ("artifacts", "clean", "--force")], ids=" ".join
)
def test_figures_of_another_store_can_be_shown(place: Place, command: tuple[str, ...]):
    place.keep(a="one two three")
    usual = place.overspill(*command, "--json").out
    elsewhere = place.root / "elsewhere"
    by_key = place.overspill(*command, "--json", "--set", f"storeDir={elsewhere}").out
    (place.root / "other.yaml").write_text(f"storeDir: {elsewhere}\n")
    assert by_key == place.overspill(*command, "--json", "--config", str(place.root / "other.yaml")).out
    assert (usual == by_key) == (command == ("jobs",))
