# SPDX-License-Identifier: Apache-2.0
"""neap.torch with states on slow tiers: the same bits, also where records are lost; files are closed."""
import itertools
import os

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, N, case, grads, plain, same, scanned  # noqa: E402
from neap.stores import Store  # noqa: E402


def on_files(scratch, strategy, memory="400K", **options):
    """The report of a scan of 60 steps with states of 24 KiB, whose bits are compared."""
    given = case(options.pop("cell", "wide"), 60, 3)[:3] + (torch.nn.Linear(N, 2),)
    wanted = grads(plain, *given, "both")
    same(grads(scanned(strategy=strategy, memory=memory, **dict(dict(group=1, slow=scratch), **options)),
               *given, "both"), wanted)
    return nt.report()


@pytest.mark.parametrize("strategy", ["double", "remote", "disk-revolve", "auto"])
def test_states_on_files(scratch, strategy):
    for options in (dict(), dict(group=2), dict(rng=True), dict(slow=["mem:400K", scratch])):
        told = on_files(scratch, strategy, **options)
        assert told.recoveries == 0 and told.counted_peak <= told.planned_peak
        assert told.counts.puts > 0 or strategy == "auto"
        assert told.waits >= 0 and str(told)
    assert os.listdir(scratch) == []


def test_lost_records_are_computed_again(scratch, monkeypatch):
    wait, get = Store.wait, Store.get

    count = itertools.count()

    def failing(self, transfer):
        wait(self, transfer)
        if next(count) % 2:
            raise neap.CorruptRecord("made up")

    monkeypatch.setattr(Store, "wait", failing)
    for strategy in ("double", "disk-revolve"):
        assert on_files(scratch, strategy).recoveries > 0
    monkeypatch.setattr(Store, "wait", wait)
    monkeypatch.setattr(Store, "get", lambda self, tier, place, tag, *rest: get(self, tier, place, tag + 1, *rest))
    told = on_files(scratch, "double")
    assert told.recoveries == told.counts.gets > 0
    monkeypatch.setattr(Store, "get", get)
    monkeypatch.setattr(Store, "format", lambda self, places: self._dead.__setitem__(slice(None), [True]))
    told = on_files(scratch, "double")
    assert told.recoveries == told.counts.gets > 0


def test_files_are_closed(scratch):
    def handles():
        return len(os.listdir("/proc/self/fd"))
    made, state, x, _ = case("wide", 60, 3)
    before = handles()
    for _ in range(3):
        last, out = nt.scan(made, state, x, memory="500K", group=1, strategy="double", slow=scratch, costs=COSTS)
        assert handles() > before
        del last, out
        assert handles() == before
