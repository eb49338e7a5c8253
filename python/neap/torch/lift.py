# SPDX-License-Identifier: Apache-2.0
"""Makes the hidden state of snnTorch, SpikingJelly and Norse modules explicit.

Neurons of snnTorch with ``init_hidden=True`` and all neurons of SpikingJelly store their state in attributes of
modules, which a scan cannot see. A lifted network sets these attributes to a given state, runs one step, reads the
new state, and restores the modules. Modules of Norse take and return a state; their initial state is made explicit.
"""
from typing import Any, Dict, List, Tuple

import torch

from ..errors import UsageError

__all__ = ["Lifted", "lift"]

SNNTORCH = ("syn", "mem", "spk", "syn_exc", "syn_inh")  # attributes with hidden state in snnTorch


def _library(module: torch.nn.Module) -> str:
    return type(module).__module__.split(".")[0]


class _Slot:
    """One hidden tensor: an attribute of an snnTorch neuron, or a memory of a SpikingJelly neuron."""

    def __init__(self, module: torch.nn.Module, key: str):
        self.module, self.key = module, key
        self.memory = hasattr(module, "_memories")

    def get(self) -> Any:
        """Returns the current value."""
        return self.module._memories[self.key] if self.memory else getattr(self.module, self.key)

    def set(self, value: Any) -> None:
        """Sets the value."""
        if self.memory:
            self.module._memories[self.key] = value
        else:
            setattr(self.module, self.key, value)

    def first(self) -> Any:
        """Returns the value before the first step."""
        return self.module._memories_rv[self.key] if self.memory else torch.zeros(0)


def _slots(net: torch.nn.Module) -> Dict[str, _Slot]:
    """Returns the hidden state of a network by name. Raises UsageError for SpikingJelly modules in multi-step mode."""
    found: Dict[str, _Slot] = {}
    for name, part in net.named_modules():
        keys: List[str] = []
        if hasattr(part, "_memories") and hasattr(part, "_memories_rv"):
            if getattr(part, "step_mode", "s") != "s":
                raise UsageError(f"lift: {name or 'the network'} processes several steps per call (step_mode="
                                 f"{part.step_mode!r}), but a scan calls it once per step. Set step_mode to 's'")
            keys = list(part._memories)
        elif getattr(part, "init_hidden", False):
            keys = [key for key in SNNTORCH if isinstance(getattr(part, key, None), torch.Tensor)]
        for key in keys:
            found[f"{name}.{key}" if name else key] = _Slot(part, key)
    return found


class Lifted(torch.nn.Module):
    """A network as an explicit step, ``state, output = lifted(state, input, t)``; returned by :func:`lift`.

    The network is ``lifted.net``; :meth:`start` returns the initial state.
    """

    def __init__(self, net: torch.nn.Module):
        super().__init__()
        self.net = net
        self._hidden = _slots(net)
        self._passed = any(_library(part) == "norse" and hasattr(part, "state_fallback")
                           for part in net.modules())
        if not self._hidden and not self._passed:
            raise UsageError("lift: the network has no module that stores its own state. Supported are snnTorch "
                             "modules with init_hidden=True, SpikingJelly and Norse modules. A network whose state you "
                             "pass explicitly needs no lift: use it in nt.scan directly")
        if self._hidden and self._passed:
            raise UsageError("lift: the network mixes Norse modules with snnTorch or SpikingJelly modules, which is "
                             "not supported. Use modules of one library, or write a step that passes the state "
                             "explicitly")

    def start(self, x: Any) -> Any:
        """The initial state.

        :param x: the input of one step, for the shapes of the state. The network is applied to it once, in evaluation
            mode, and is not changed.
        :raises UsageError: if the initial value of a state is unknown.
        """
        trained = [part for part in self.net.modules() if part.training]
        kept = {name: slot.get() for name, slot in self._hidden.items()}
        generator = torch.get_rng_state()
        self.net.eval()
        try:
            with torch.no_grad():
                return self._begun(x)
        finally:
            for name, slot in self._hidden.items():
                slot.set(kept[name])
            for part in trained:
                part.training = True
            torch.set_rng_state(generator)

    def _begun(self, x: Any) -> Any:
        if self._passed:
            return _norse_start(self.net, x)
        for slot in self._hidden.values():
            slot.set(slot.first())
        self.net(x)
        state = {}
        for name, slot in self._hidden.items():
            found, first = slot.get(), slot.first()
            if not isinstance(found, torch.Tensor):
                continue  # the attribute is not used
            if slot.memory and first is None:
                raise UsageError(f"lift: the initial value of {name} is None, so its shape is unknown. Initialize it "
                                 f"with a number or a tensor (register_memory)")
            if slot.memory and isinstance(first, torch.Tensor):
                state[name] = first.expand_as(found).clone()
            else:
                state[name] = torch.full_like(found, float(first) if slot.memory else 0.0)
        return state

    def forward(self, state: Any, x: Any, t: int) -> Tuple[Any, Any]:
        """One step; returns the next state and the output of the network."""
        if self._passed:
            output, after = self.net(x, _own(state))  # a Norse network modifies its list
            return after, output
        kept = {name: self._hidden[name].get() for name in state}
        try:
            for name, value in state.items():
                self._hidden[name].set(value)
            output = self.net(x)
            return {name: self._hidden[name].get() for name in state}, output
        finally:
            for name, value in kept.items():
                self._hidden[name].set(value)


def _norse_start(net: torch.nn.Module, x: Any) -> Any:
    """Returns the initial states of the modules of a Norse network, which are used if no state is passed."""
    begun: Dict[int, Any] = {}
    hooks = []
    for part in net.modules():
        if _library(part) == "norse" and hasattr(part, "state_fallback"):
            def keep(module: Any, arguments: Any, _: Any = None) -> None:
                begun.setdefault(id(module), _cut(module.state_fallback(arguments[0])))
            hooks.append(part.register_forward_pre_hook(keep))
    try:
        _, after = net(x, None)
    finally:
        for hook in hooks:
            hook.remove()

    def placed(part: torch.nn.Module, found: Any) -> Any:
        if id(part) in begun:
            return begun[id(part)]
        if isinstance(found, list):
            return [placed(child, one) for child, one in zip(part.children(), found)]
        return None
    return placed(net, after)


def _cut(state: Any) -> Any:
    """Returns a state of Norse, a named tuple of tensors, without a graph."""
    if isinstance(state, torch.Tensor):
        return state.detach()
    if isinstance(state, tuple):
        return type(state)(*[_cut(part) for part in state]) if hasattr(state, "_fields") else \
            tuple(_cut(part) for part in state)
    return state


def _own(state: Any) -> Any:
    """Returns the same tensors in new lists."""
    return [_own(part) for part in state] if isinstance(state, list) else state


def lift(net: torch.nn.Module) -> Lifted:
    """Makes the state of a network explicit: ``step = lift(net); last, out = scan(step, step.start(x[0]), x)``.

    :param net: a network of snnTorch (``init_hidden=True``), SpikingJelly (``step_mode`` "s") or Norse modules.
    :returns: a :class:`Lifted`, a step for :func:`scan`.
    :raises UsageError: if no hidden state is found, or modules of several libraries are mixed.
    """
    return Lifted(net)
