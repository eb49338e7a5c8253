# SPDX-License-Identifier: Apache-2.0
"""Networks that ``neap train`` has trained, as plain PyTorch modules::

    net = nt.load("neap-run")                    # folder of a run, or a file model.safetensors
    inputs, lengths = net.binned(recordings)     # [T, batch, channels], [batch]
    answer = net(inputs, lengths)                # [batch, classes]

In double precision the loss agrees with ``neap eval`` up to rounding, and spikes occur in the same steps. PyTorch
adds terms in a different order than the C code, so a membrane potential very close to its threshold may spike one step
earlier or later; in single precision this happens.
"""
import json
import math
import os
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import torch

from ..errors import FormatError, UsageError
from ..specs import Layer, parse, value_of
from ..tensors import Tensor, read_tensors
from .cells import CELLS, State, shapes

__all__ = ["Net", "load"]

_DTYPES = {"F32": torch.float32, "F64": torch.float64}
_READOUTS = ("mean", "sum", "last", "max", "step", "softmax")
_LOSSES = ("cross-entropy", "mse")
# Sparse weights are made dense only up to _DENSE_LEAST elements, or _DENSE_TIMES the number in the file, so that
# memory is proportional to the file.
_DENSE_LEAST, _DENSE_TIMES = 1 << 22, 1000


class Step(torch.nn.Module):
    """One step of a network, ``step(state, input, t)``, for :class:`neap.torch.Scan`.

    ``layer0``, ``layer1``, ... and ``readout`` are its layers, starting at the inputs.
    """

    def __init__(self, layers: Sequence[Layer], tensors: Sequence[Dict[str, torch.Tensor]], dt: float,
                 euler: bool):
        super().__init__()
        self.names = [f"layer{i}" for i in range(len(layers) - 1)] + ["readout"]
        # Of each layer, the layers that it receives, and 1 if their outputs of the step before arrive.
        self.sources = [[(source, source > i or bool(source >= 0 and layer.keys["delay"])) for source in layer.sources]
                        for i, layer in enumerate(layers)]
        for name, layer, own in zip(self.names, layers, tensors):
            setattr(self, name, CELLS[layer.cell](layer, own, dt, euler))

    def forward(self, state: Tuple[State, ...], x: torch.Tensor,
                t: int = 0) -> Tuple[Tuple[State, ...], torch.Tensor]:
        """Runs one step.

        :param state: one tuple per layer, whose first item is the output [batch, n]; initially :meth:`Net.start`.
        :param x: inputs [batch, channels].
        :param t: number of the step; unused.
        :returns: the next state, and the outputs of the readout [batch, classes].
        """
        after: List[State] = []
        for index, name in enumerate(self.names):
            parts = [x if source < 0 else state[source][0] if late else after[source][0]
                     for source, late in self.sources[index]]
            after.append(getattr(self, name)(state[index], parts[0] if len(parts) == 1 else torch.cat(parts, 1)))
        return tuple(after), after[-1][0]


class Net(torch.nn.Module):
    """A network of the ``neap`` tool in plain PyTorch; returned by :func:`load`.

    ``net.step`` is one step, a module that contains all parameters. To train on long sequences with a memory budget:
    ``outputs = nt.Scan(net.step, memory="64M")(net.start(batch), inputs)[1]``, then
    ``net.loss(outputs, labels, lengths)``. Dropout is not part of the module.

    :param settings: settings of the network as in the file of the model: strings by name.
    :param tensors: tensors of the file by name: ``layer0.weight``, ...
    :param loss: ``"cross-entropy"`` or ``"mse"``: the function that :meth:`loss` computes.
    :raises FormatError: if settings or tensors are inconsistent.
    """

    def __init__(self, settings: Dict[str, str], tensors: Dict[str, torch.Tensor], loss: str = "cross-entropy"):
        super().__init__()
        self.layers = parse(settings)
        self.settings, self.loss_name = dict(settings), loss
        self.classes: List[Optional[str]] = []
        self.max_steps, self.channels = 0, int(settings["inputs"])
        self.dt = value_of("dt", settings.get("dt", ""))
        self.readout = settings.get("readout", "")
        if not self.dt > 0 or self.readout not in _READOUTS or loss not in _LOSSES:
            raise FormatError(f"the network has time step dt={settings.get('dt')!r}, readout {self.readout!r} and loss "
                              f"{loss!r}; dt must be above 0, the readout one of {', '.join(_READOUTS)}, and the loss "
                              f"one of {', '.join(_LOSSES)}")
        if settings.get("smooth") == "1":
            raise UsageError("the network has smooth activations in place of spikes (smooth=1, for gradient checks), "
                             "which load does not support. Use a network trained without smooth")
        names = [f"layer{i}" for i in range(len(self.layers) - 1)] + ["readout"]
        parts = [_own(name, layer, tensors) for name, layer in zip(names, self.layers)]
        self.step = Step(self.layers, parts, self.dt, settings.get("euler") == "1")

    def start(self, batch: int) -> Tuple[State, ...]:
        """The initial state of a batch of that many samples: zeros."""
        return tuple(getattr(self.step, name).start(batch) for name in self.step.names)

    def outputs(self, inputs: torch.Tensor) -> Tuple[torch.Tensor, List[torch.Tensor]]:
        """Runs a plain loop over the steps.

        :param inputs: [T, batch, channels].
        :returns: the outputs of the readout [T, batch, classes], and a list of the outputs of each hidden layer
            [T, batch, n]: 1 for a spike, or real numbers.
        """
        self._check(inputs)
        state, found, hidden = self.start(inputs.shape[1]), [], []
        for t, x in enumerate(inputs):
            state, output = self.step(state, x, t)
            found.append(output)
            hidden.append([part[0] for part in state[:-1]])
        return torch.stack(found), [torch.stack(list(rows)) for rows in zip(*hidden)]

    def forward(self, inputs: torch.Tensor, lengths: Optional[torch.Tensor] = None) -> torch.Tensor:
        """The scores [batch, classes]: the outputs of the readout over time, combined as ``net.readout`` specifies.

        :param inputs: [T, batch, channels] with the dtype of the parameters: 1 for a spike, or real numbers.
        :param lengths: [batch] integers, the number of steps of each sample; None: T.
        """
        return self.answer(self.outputs(inputs)[0], lengths)

    def answer(self, outputs: torch.Tensor, lengths: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Returns the scores [batch, classes] for outputs of the readout [T, batch, classes]; ``lengths`` as in a
        call."""
        steps, inside = self._inside(outputs, lengths)
        if self.readout == "last":
            rows = (steps - 1).view(1, -1, 1).expand(1, *outputs.shape[1:])
            return outputs.gather(0, rows)[0]
        if self.readout == "max":
            return outputs.masked_fill(~inside, -math.inf).max(0).values
        terms = torch.softmax(outputs, 2) if self.readout == "softmax" else outputs
        total = terms.masked_fill(~inside, 0).sum(0)
        return total / steps.view(-1, 1).to(total.dtype) if self.readout in ("mean", "step") else total

    def loss(self, outputs: torch.Tensor, labels: torch.Tensor, lengths: Optional[torch.Tensor] = None,
             targets: Optional[torch.Tensor] = None) -> torch.Tensor:
        """The loss of the run: mean over the batch, without firing-rate regularisation.

        :param outputs: [T, batch, classes], from :meth:`outputs` or from a scan over ``step``.
        :param labels: [batch] integers; -1: no label, loss 0.
        :param lengths: [batch] integers, the number of steps of each sample; None: T.
        :param targets: [batch, classes], for regression.
        """
        steps, inside = self._inside(outputs, lengths)
        if self.readout != "step":
            return self._each(self.answer(outputs, lengths), labels, targets).mean()
        wanted = None if targets is None else targets.expand(outputs.shape)
        each = self._each(outputs, labels.expand(outputs.shape[:2]), wanted).masked_fill(~inside[:, :, 0], 0)
        return (each.sum(0) / steps.to(each.dtype)).mean()

    def binned(self, recordings: Iterable[Sequence]) -> Tuple[torch.Tensor, torch.Tensor]:
        """Converts recordings to inputs, with the time bins of the ``neap`` tool.

        :param recordings: ``(times, units)`` or ``(times, units, duration)`` for each recording: the time in seconds
            and the channel of each spike, and the duration in seconds. Several spikes of a channel in one step count
            as one.
        :returns: inputs [T, batch, channels] and lengths [batch].
        :raises UsageError: if a time is negative, a channel does not exist, or the lists differ in length.
        """
        rows = [_bins(self.dt, self.max_steps, *recording) for recording in recordings]
        lengths = [length for length, _ in rows]
        like = self.step.readout.bias
        inputs = like.new_zeros(max(lengths, default=0), len(rows), self.channels)
        for b, (_, events) in enumerate(rows):
            for t, unit in events:
                if not 0 <= unit < inputs.shape[2]:
                    raise UsageError(f"recording {b} has a spike in channel {unit}, but the network has "
                                     f"{inputs.shape[2]} input channels, numbered from 0. Renumber the channels, or "
                                     f"load a network that was trained on them")
                inputs[t, b, unit] = 1
        return inputs, torch.tensor(lengths, dtype=torch.int64, device=like.device)

    def _check(self, inputs: torch.Tensor) -> None:
        channels = self.channels
        if inputs.dim() != 3 or inputs.shape[2] != channels or not inputs.shape[0]:
            raise UsageError(f"inputs have shape {list(inputs.shape)}; the network needs [T, batch, {channels}] with "
                             f"at least one step. Transpose or reshape the inputs; net.binned() makes them of spikes")
        if inputs.dtype != self.step.readout.bias.dtype:
            raise UsageError(f"inputs have dtype {inputs.dtype}, but the parameters of the network have "
                             f"{self.step.readout.bias.dtype}. Convert the inputs, or pass dtype= to load")

    def _inside(self, outputs: torch.Tensor,
                lengths: Optional[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns the number of steps of each sample, and a mask [T, batch, 1] of the steps inside the samples."""
        most, batch = outputs.shape[:2]
        if lengths is None:
            lengths = torch.full((batch,), most, dtype=torch.int64, device=outputs.device)
        if lengths.shape != (batch,) or batch and not 1 <= int(lengths.min()) <= int(lengths.max()) <= most:
            raise UsageError(f"lengths has shape {list(lengths.shape)}; it must contain {batch} integers from 1 to "
                             f"{most}, the number of steps of each sample. Pass such a tensor, or None if all have "
                             f"{most}")
        return lengths, torch.arange(most, device=outputs.device).view(-1, 1, 1) < lengths.view(1, -1, 1)

    def _each(self, z: torch.Tensor, labels: torch.Tensor, targets: Optional[torch.Tensor]) -> torch.Tensor:
        """Returns the loss of each output z [..., classes]."""
        known = labels >= 0
        if self.loss_name == "cross-entropy":
            picked = z.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
            return (z.logsumexp(-1) - picked).masked_fill(~known, 0)
        if targets is None:
            targets = torch.nn.functional.one_hot(labels.clamp(min=0), z.shape[-1]).to(z.dtype)
            return (z - targets).pow(2).mean(-1).masked_fill(~known, 0)
        return (z - targets.to(z.dtype)).pow(2).mean(-1)


def _bins(dt: float, most: int, times: Sequence[float], units: Sequence[int],
          duration: float = 0.0) -> Tuple[int, List[Tuple[int, int]]]:
    """Returns the number of steps of a recording, and its events as (step, unit). A time on the border of two steps
    belongs to the later one, also after rounding to float32."""
    if len(times) != len(units):
        raise UsageError(f"a recording has {len(times)} times but {len(units)} units; there must be one unit per "
                         f"time. Pass arrays of the same length")
    at = [math.floor(x + 1e-6 + x * 6e-8) for x in (float(time) / dt for time in times)]
    if at and min(at) < 0:
        raise UsageError("a recording has a spike before time 0. Times are in seconds from the start of the recording: "
                         "subtract the start time")
    x = float(duration) / dt
    length = max(1, math.ceil(x - 1e-6 - x * 1e-9), max(at, default=0) + 1)
    length = min(length, most) if most else length
    return length, [(t, int(unit)) for t, unit in zip(at, units) if t < length]


# Keys of which each unit may have its own value, and the tensors with these values.
_OF_UNITS = {"tau": "leak", "tau_syn": "leak_syn", "tau_adapt": "leak_adapt", "omega": "omega", "a": "a", "b": "b"}


def _own(prefix: str, layer: Layer, tensors: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """Returns the tensors of a layer by their names in the layer, dense, with the masks of sparse ones."""
    found: Dict[str, torch.Tensor] = {}
    for name, shape in shapes(layer).items():
        full = f"{prefix}.{name}"
        tensor = tensors.get(full)
        if tensor is None:
            raise FormatError(f"tensor {full!r} is missing; the settings of the network require it")
        if full + ".column" in tensors:
            found[name], found[name + "_mask"] = _dense(full, tensors, shape)
        else:
            found[name] = tensor
        if tuple(found[name].shape) != shape:
            raise FormatError(f"tensor {full!r} has shape {list(tensor.shape)}; the settings of the network require "
                              f"{list(shape)}")
    for key, name in _OF_UNITS.items():
        tensor = tensors.get(f"{prefix}.{name}")
        if tensor is None and key in layer.keys.get("ranges", ()):
            raise FormatError(f"tensor '{prefix}.{name}' is missing; the range of {key!r} in the settings of the "
                              f"network requires it")
        if tensor is not None:
            if tuple(tensor.shape) != (1, layer.n):
                raise FormatError(f"tensor '{prefix}.{name}' has shape {list(tensor.shape)}; expected {[1, layer.n]}")
            found[name] = tensor
    return found


def _dense(name: str, tensors: Dict[str, torch.Tensor],
           shape: Tuple[int, int]) -> Tuple[torch.Tensor, torch.Tensor]:
    """Converts compressed rows to a matrix and a mask of their connections."""
    values, column, start = tensors[name], tensors[name + ".column"], tensors.get(name + ".row_start")
    if start is None or start.shape != (shape[0] + 1,) or column.shape != values.shape or values.dim() != 1:
        raise FormatError(f"tensor {name!r}: the arrays of its compressed rows (CSR) have inconsistent shapes")
    if shape[0] * shape[1] > max(_DENSE_LEAST, _DENSE_TIMES * values.numel()):
        raise FormatError(f"tensor {name!r} stores {values.numel()} of {shape[0]} x {shape[1]} values: it is too "
                          f"sparse to be converted to a dense matrix")
    counts = start[1:] - start[:-1]
    if int(start[0]) or int(start[-1]) != values.numel() or bool((counts < 0).any()) or \
            values.numel() and int(column.max()) >= shape[1]:
        raise FormatError(f"tensor {name!r}: a row or column index of its compressed rows (CSR) is out of range")
    rows = torch.repeat_interleave(torch.arange(shape[0]), counts)
    full, mask = values.new_zeros(shape), values.new_zeros(shape)
    full[rows, column], mask[rows, column] = values, 1
    return full, mask


def _tensor(tensor: Tensor) -> torch.Tensor:
    """Converts a tensor of a file to PyTorch; integers become int64."""
    if tensor.dtype in _DTYPES:
        flat = torch.frombuffer(bytearray(tensor.data), dtype=_DTYPES[tensor.dtype]) if len(tensor.data) \
            else torch.zeros(0, dtype=_DTYPES[tensor.dtype])
        return flat.view(tensor.shape)
    if tensor.dtype in ("U16", "U32"):
        return torch.tensor(tensor.data.cast("H" if tensor.dtype == "U16" else "I").tolist(),
                            dtype=torch.int64).view(tensor.shape)
    raise FormatError(f"a tensor has type {tensor.dtype}, which neap models do not use")


def load(run: str, dtype: Optional[torch.dtype] = None) -> Net:
    """Reads a trained network as a plain PyTorch module in evaluation mode.

    :param run: a folder that ``neap train`` wrote, or a file such as ``run/last.safetensors``.
    :param dtype: dtype of the parameters, such as ``torch.float64``; None: the precision of the run.
    :returns: a :class:`Net`.
    :raises FormatError: if the file is not a model of neap.
    :raises OSError: if the file cannot be read.
    """
    path = os.path.join(run, "model.safetensors") if os.path.isdir(run) else os.fspath(run)
    metadata, tensors = read_tensors(path)
    try:
        settings = json.loads(metadata.get("neap.net", "null"))
        if not isinstance(settings, dict):
            raise UsageError("the metadata does not describe a neap network. Pass a file or folder that neap train "
                             "wrote")
        own = {name: _tensor(tensor) for name, tensor in tensors.items()
               if not name.startswith("optimizer.")}
        net = Net(settings, own, metadata.get("neap.loss", "cross-entropy"))
        net.classes = json.loads(metadata.get("neap.classes", "[]"))
        net.max_steps = int(metadata.get("neap.max_steps", "0"))
    except UsageError as error:
        raise FormatError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        what = error if isinstance(error, FormatError) else f"the metadata cannot be read ({error})"
        raise FormatError(f"{path}: {what}. The file is damaged, or was written by another version of neap. Copy it "
                          f"again, or train again") from None
    return (net if dtype is None else net.to(dtype)).eval()
