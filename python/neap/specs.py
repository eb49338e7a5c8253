# SPDX-License-Identifier: Apache-2.0
"""Parses the specification of a network, ``NAME[:SIZE[r]][:KEY=VALUE]...`` for each layer, separated by commas, as in
``neap train --net`` and in the files of models; docs/cells.md describes cells, keys and equations."""
import math
from typing import Any, Dict, List, NamedTuple, Tuple

from . import units
from .errors import FormatError, UsageError

SPIKING = ("lif", "cubalif", "alif", "adlif", "seadlif", "brf")
GATED = ("rnn", "lstm", "gru", "egru")
HIDDEN = (*SPIKING, "integrator", *GATED)
_TIMES = ("tau", "tau_syn", "tau_adapt", "tau_out")
SURROGATES = ("triangle", "boxcar", "superspike", "sigmoid", "atan", "gaussian", "slayer", "double_gaussian")
RESETS = ("subtract", "zero", "hard", "soft")
_WORDS = {"reset": RESETS, "activation": ("tanh", "relu"),
          "surrogate": SURROGATES,
          "learn": ("none", "tau", "all"), "init": ("auto", "normal", "torch")}
_FALLBACKS = {"tau_syn": 5e-3, "tau_adapt": 100e-3, "adapt": 0.1, "b": 0.2,
              "activation": "tanh", "learn": "none"}
_COUPLINGS = {"seadlif": {"a": 1.0, "b": 1.0}, "brf": {"omega": 50.0, "b": 20.0, "tau_adapt": 10e-3}}
_A = 0.1  # default of adlif's `a` for steps of time_unit seconds
# Settings of a network, numbers or names; keys of a layer override them.
_SETTINGS = ("reset", "surrogate", "detach", "width", "height", "support", "threshold", "reset_value", "tau")
_KEYS = {*_SETTINGS, *_FALLBACKS, "init", "a", "omega", "density", "scale", "recurrent_scale", "dropout", "delay"}
# Parameters that units may have for themselves, LOW..HIGH; the file of a model has their tensors.
_RANGES = {"tau", "tau_syn", "tau_adapt", "omega", "a", "b"}
_FILTERS = {"conv", "channels", "stride", "pad", "dilation", "groups", "shape",
            *(pool + end for pool in ("pool", "conv_pool") for end in ("", "_stride", "_pad")), "pooling", "conv_pooling"}
# Names in other packages: of keys (decay per step, or 1/key) and of surrogates.
_ALIASES = {"beta": "tau", "alpha": "tau_syn", "slope": "width"}
SURROGATE_ALIASES = {"fast_sigmoid": "superspike", "triangular": "triangle"}
COMPACT = ("triangle", "boxcar")


class Layer(NamedTuple):
    """One layer: ``cell``, ``n`` units, ``below`` units or channels of all its inputs, ``recurrent``, its ``keys`` as
    numbers (times in seconds) and words, and ``sources``, the layers that it receives, in ascending order (-1: the
    inputs). The key ``surrogate_factor`` multiplies the surrogate."""

    cell: str
    n: int
    below: int
    recurrent: bool
    keys: Dict[str, Any]
    sources: Tuple[int, ...]

    @property
    def cut(self) -> float:
        """Distance to the threshold beyond which the surrogate derivative is 0; may be infinite."""
        end = self.keys["width"] if self.keys["surrogate"] in COMPACT else math.inf
        return min(end, self.keys["support"]) if self.keys["support"] > 0 else end

    def decay(self, name: str, dt: float, euler: bool) -> float:
        """Decay factor for a step of ``dt`` seconds of a quantity whose time constant is the key ``name``."""
        tau = self.keys[name]
        if tau == 0:  # readout without smoothing
            return 0.0
        return 1 - dt / tau if euler else math.exp(-dt / tau)


def _number(name: str, text: str) -> float:
    if name == "tau_out" and text == "none":
        return 0.0
    try:
        value = units.seconds(text, name) if name in _TIMES else float(text)
    except ValueError:
        value = math.nan
    least = "of 0 or more" if name == "tau_out" else "above 0"
    if not math.isfinite(value) or name in _TIMES and value <= 0 and (value or name != "tau_out"):
        wanted = f"a time {least}, such as 0.02 or '20ms'" if name in _TIMES else "a finite number"
        raise FormatError(f"the setting {name} of the network is {text[:40]!r}; it must be {wanted}")
    return value


def value_of(name: str, text: str) -> Any:
    """Parses a key's value: a word, or a number (times in seconds). FormatError shows an invalid value."""
    low, dots, high = text.partition("..")
    if dots and name in _RANGES:
        ends = _number(name, low), _number(name, high)
        return ends[0] + (ends[1] - ends[0]) / 2
    if name not in _WORDS:
        return _number(name, text)
    text = SURROGATE_ALIASES.get(text, text) if name == "surrogate" else text
    if text not in _WORDS[name]:
        raise FormatError(f"the setting {name} of the network is {text[:40]!r}; it must be one of "
                          f"{', '.join(_WORDS[name])}")
    return text


def parse(settings: Dict[str, str]) -> List[Layer]:
    """Returns the layers of a network from the settings in a model's file, whose values are all strings.

    :raises FormatError: if settings are missing or do not describe a network.
    :raises UsageError: if only the command-line tool computes such a network.
    """
    defaults = {name: value_of(name, _setting(settings, name)) for name in _SETTINGS}
    inputs = int(_number("inputs", _setting(settings, "inputs")))
    classes = int(_number("classes", _setting(settings, "classes")))
    parts = _setting(settings, "net").split(",")
    layers: List[Layer] = []
    for index, part in enumerate(parts):
        layer = _layer(part, inputs, classes, settings, defaults, index, len(parts) - 1)
        if (layer.cell == "li") != (index == len(parts) - 1):
            raise FormatError(f"the network {settings['net'][:60]!r} must have li as its last layer, and only there")
        layers.append(layer)
    sizes = [layer.n for layer in layers] + [inputs]  # the last: of source -1
    layers = [layer._replace(below=sum(sizes[source] for source in layer.sources)) for layer in layers]
    for index, layer in enumerate(layers):
        if not 0 < layer.n <= 65536 or not 0 < layer.below <= 65536:
            raise FormatError(f"layer {parts[index][:60]!r} has {layer.n} units and {layer.below} inputs; both must be from 1 "
                              f"to 65536")
    return layers


def _setting(settings: Dict[str, str], name: str) -> str:
    found = settings.get(name)
    if not isinstance(found, str):
        raise FormatError(f"the setting {name} of the network is missing")
    return found


def _sources(text: str, index: int, hidden: int, part: str) -> Tuple[int, ...]:
    """The layers that the key ``from`` names, such as ``input+layer0``."""
    names = {"input": -1, **{f"layer{i}": i for i in range(hidden) if i != index}}
    words = text.split("+")
    found = tuple(sorted({names[word] for word in words if word in names}))
    if len(found) != len(words) or found[0] > index or index == 0 and found[0] != -1:
        raise FormatError(f"layer {part[:60]!r} has from={text[:40]!r}; it must name input or other hidden layers, such as "
                          f"input+layer0, each once and one of them below the layer")
    return found


def _layer(part: str, inputs: int, classes: int, settings: Dict[str, str], defaults: Dict[str, Any],
           index: int, hidden: int) -> Layer:
    cell, *words = part.split(":")
    if cell.startswith("cell "):
        raise UsageError(f"layer {index} is {cell[5:].split(';')[0][:40]}.cell, which a cell file describes; only the neap "
                         f"tool runs such layers. Use 'neap eval' or 'neap predict'")
    if cell not in (*HIDDEN, "li"):
        raise FormatError(f"the network has an unknown cell {cell[:40]!r}; the cells are "
                          f"{', '.join(HIDDEN)} and li")
    keys = {**_FALLBACKS, **_COUPLINGS.get(cell, {}), **defaults, "delay": float(index > 0 and settings.get("delay") == "1")}
    if cell != "lif":
        keys["reset"] = "subtract"
    if cell == "li":
        keys["tau"] = _number("tau_out", _setting(settings, "tau_out"))
    size, recurrent = classes if cell == "li" else 0, cell in GATED
    dt, unit = _number("dt", _setting(settings, "dt")), _number("time_unit", settings.get("time_unit", "0"))
    if keys["threshold"] == 0:  # default of the cell; the key of a layer may be 0
        keys["threshold"] = 0.1 if cell == "egru" else 1.0
    euler, sources = settings.get("euler") == "1", (index - 1,)
    for word in words:
        name, equals, text = word.partition("=")
        if equals and name in _ALIASES:
            keys[_ALIASES[name]] = _of_alias(name, text, dt, euler)
        elif equals and name == "from":
            sources = _sources(text, index, hidden, part)
        elif equals and name in _FILTERS:
            raise UsageError(f"layer {part[:60]!r} has the key {name!r}: convolutions and pooling are not available in "
                             f"Python modules. Use the command-line tool, such as neap predict")
        elif equals and name == "norm":
            raise UsageError(f"layer {part[:60]!r} has the key 'norm': batch normalisation is not available in Python "
                             f"modules. Use the command-line tool, such as neap predict")
        elif equals and name not in _KEYS:
            raise FormatError(f"layer {part[:60]!r} has an unknown key {name[:40]!r}; docs/cells.md lists the keys")
        elif name == "delay" and equals and text not in ("0", "1"):
            raise UsageError(f"layer {part[:60]!r} has delays of more than one step, which are not available in Python "
                             f"modules. Use the command-line tool, such as neap predict")
        elif equals:
            if ".." in text and name in _RANGES:
                keys["ranges"] = (*keys.get("ranges", ()), name)
            keys[name] = value_of("tau_out" if cell == "li" and name == "tau" else name, text)
        else:
            size, recurrent = _size(word, part), recurrent or word.endswith("r")
    keys.setdefault("a", _A * _gain(euler, keys["tau_adapt"], dt, unit))
    keys["surrogate_factor"] = min(dt / unit, 1.0) if unit > 0 and cell in SPIKING else 1.0
    return Layer(cell, size, 0, recurrent, keys, sources)


def _of_alias(name: str, text: str, dt: float, euler: bool) -> float:
    value = _number(name, text)
    if not 0 < value < (math.inf if name == "slope" else 1):
        raise FormatError(f"the setting {name} of the network is {text[:40]!r}; it must be above 0"
                          f"{'' if name == 'slope' else ' and below 1'}")
    if name == "slope":
        return 1 / value
    return dt / (1 - value) if euler else -dt / math.log(value)


def _gain(euler: bool, tau: float, dt: float, unit: float) -> float:
    """Input gain of a leak of ``tau`` for a step of ``dt``, relative to a step of the network's time_unit."""
    if not unit > 0 or unit == dt:
        return 1.0
    if euler:
        return min(dt / tau, 1.0) / min(unit / tau, 1.0)
    return math.expm1(-dt / tau) / math.expm1(-unit / tau)


def _size(word: str, part: str) -> int:
    digits = word[:-1] if word.endswith("r") else word
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 6):
        raise FormatError(f"layer {part[:60]!r}: {word[:40]!r} is neither a number of units nor KEY=VALUE")
    return int(digits)
