# SPDX-License-Identifier: Apache-2.0
"""Likely mistakes in the arguments of a scan: each error or warning contains the remedy."""
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

import neap  # noqa: E402
import neap.torch as nt  # noqa: E402
from cells_of_tests import COSTS, B, I, N  # noqa: E402


@pytest.fixture
def gru():
    return torch.nn.GRUCell(I, N)


@pytest.fixture
def x():
    return torch.randn(12, B, I)


def silent(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


def test_a_scan_of_a_function_has_no_parameters_and_warns(gru):
    def step(h, x, t):
        h = gru(x, h)
        return h, h
    scan = nt.Scan(step)
    for call in (scan.parameters, scan.named_parameters, scan.state_dict):
        with pytest.warns(RuntimeWarning, match=r"function '.*step' uses \(GRUCell\).*torch.nn.Module"):
            assert len(list(call())) == 0
    assert "step" in repr(scan)
    gain = torch.ones(3, requires_grad=True)
    with pytest.warns(RuntimeWarning, match=r"a tensor of shape \(3,\)"):
        list(nt.Scan(lambda h, x, t: (h * gain, h)).parameters())


def test_modules_and_functions_without_parameters_do_not_warn(gru, x):
    assert len(silent(lambda: list(nt.Scan(gru).parameters()))) == 4
    assert silent(nt.Scan(gru).state_dict).keys() == {"cell." + key for key in gru.state_dict()}
    assert silent(lambda: list(nt.Scan(lambda h, x, t: (h + x, h)).parameters())) == []


def test_a_module_around_a_scan_of_its_method_does_not_warn():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = torch.nn.GRUCell(I, N)
            self.scan = nt.Scan(self.step)

        def step(self, h, x, t):
            h = self.gru(x, h)
            return h, h
    model = Model()
    assert len(silent(lambda: list(model.parameters()))) == 4
    assert len(silent(model.state_dict)) == 4
    silent(model.eval)


def test_slow_is_no_file(gru, x, tmp_path):
    (tmp_path / "f").write_bytes(b"kept")
    with pytest.raises(neap.UsageError, match=r"slow='.*f' is a file. Pass a directory"):
        nt.scan(gru, torch.zeros(B, N), x, memory="1M", slow=str(tmp_path / "f"), costs=COSTS)
    assert (tmp_path / "f").read_bytes() == b"kept" and len(list(tmp_path.iterdir())) == 1


def test_a_tier_without_room_for_a_state_warns(gru, x):
    with pytest.warns(RuntimeWarning, match="slow='mem:16': tier 1 has no room for a state of .* not used"):
        nt.scan(gru, torch.zeros(B, N), x, memory="1M", slow="mem:16", costs=COSTS)
    silent(lambda: nt.scan(gru, torch.zeros(B, N), x, memory="1M", slow="mem:1M", costs=COSTS))


def test_slow_without_memory_warns(gru, x):
    with pytest.warns(RuntimeWarning, match="slow='mem:1M' has no effect without memory="):
        nt.scan(gru, torch.zeros(B, N), x, slow="mem:1M")
    with pytest.warns(RuntimeWarning, match="host='1M' has no effect without memory="):
        nt.Scan(gru, host="1M")


def test_a_report_before_the_first_call(gru, x):
    scan = nt.Scan(gru)
    assert str(scan.report()) == "no report yet: nothing has run"
    scan(torch.zeros(B, N), x)
    assert str(scan.report()).startswith("strategy")
    with torch.no_grad():
        scan(torch.zeros(B, N), x)
    assert str(scan.report()) == "plain loop: no gradient was needed"
    layers = nt.Sequential(torch.nn.Linear(2, 2))
    assert str(layers.report()) == "no report yet: nothing has run"
    with torch.no_grad():
        layers(torch.ones(1, 2))
    assert str(layers.report()) == "plain loop: no gradient was needed"


def test_an_unknown_strategy_lists_all(gru, x):
    for call in (lambda: nt.scan(gru, torch.zeros(B, N), x, memory="1M", strategy="revolv", costs=COSTS),
                 lambda: neap.plan(5, state=1, tape=1, memory=9, strategy="revolv")):
        with pytest.raises(neap.UsageError) as caught:
            call()
        assert all(name in str(caught.value) for name in ("'revolv'", *neap.strategies()))


def test_reduce_is_a_function(gru, x):
    with pytest.raises(neap.UsageError, match=r"reduce='sum' is not a function.*reduce=lambda output, t: output"):
        nt.scan(gru, torch.zeros(B, N), x, reduce="sum")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
@pytest.mark.parametrize("options", [{}, {"memory": "1M"}, {"reduce": lambda out, t: out}])
def test_swapped_arguments_have_a_note(gru, x, options):
    def step(x, h, t):
        h = gru(x, h)
        return h, h
    with pytest.raises(Exception) as caught:
        nt.scan(step, torch.zeros(B, N), x, params=gru, **options)
    assert any("Swap its first two arguments" in note for note in caught.value.__notes__)
    with pytest.raises(Exception) as caught:  # wrong in either order
        nt.scan(lambda h, x, t: (gru(x, h[:, :2]),) * 2, torch.zeros(B, N), x, **options)
    assert not getattr(caught.value, "__notes__", None)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes")
def test_the_batch_first_in_each_input_has_a_note(gru):
    def step(h, given, t):
        h = gru(given[0], h)
        return h, (h[:, 0] - given[1]).square()
    inputs = torch.randn(4, 30, 3), torch.randn(4, 30)
    with pytest.raises(RuntimeError) as caught:
        nt.scan(step, torch.zeros(4, N), inputs, params=gru)
    assert any("4 steps of shape (30, 3)" in note and "for each of them" in note for note in caught.value.__notes__)


def test_inputs_with_one_tuple_per_step_or_lists_name_the_remedy(gru, x):
    def step(h, given, t):
        given, target = given
        h = gru(given, h)
        return h, h
    rows = [(row, row.sum(-1)) for row in x]
    for inputs, remedy in ((rows, r"tuple\(torch.stack\(x\) for x in zip\(\*inputs\)\)"),
                           (tuple([list(part) for part in zip(*rows)]), r"tuple\(torch.stack\(x\) for x in inputs\)")):
        with pytest.raises(neap.UsageError, match=remedy):
            nt.scan(step, torch.zeros(B, N), inputs)


def test_a_state_that_is_none_is_named(gru, x):
    def step(state, given, t):
        h, c = state
        return (gru(given[0], h), c), h
    with pytest.raises(neap.UsageError, match="The initial state is None"):
        nt.scan(step, None, (x, x))


def test_an_iterator_as_inputs_names_the_remedy(gru, x):
    with pytest.raises(neap.UsageError, match=r"type list_iterator.*torch.stack\(list\(inputs\)\), or a function of t"):
        nt.scan(gru, torch.zeros(B, N), iter(list(x)))


@pytest.mark.heavy
def test_a_large_group_is_named_in_the_budget_error(gru, x):
    with pytest.raises(neap.BudgetError, match=r"12 steps take .* \(group=12; a smaller group needs less\)"):
        nt.scan(gru, torch.zeros(B, N), x, memory="200K", group=12, costs=COSTS)
    with pytest.raises(neap.BudgetError) as caught:
        nt.scan(gru, torch.zeros(B, N), x, memory="4K", costs=COSTS)
    assert "smaller group" not in str(caught.value)
