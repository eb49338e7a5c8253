# SPDX-License-Identifier: Apache-2.0
"""What a step uses in addition to its arguments: modules, their buffers and modes, tensors around a function.

A recomputed step must find all of them as in the forward pass. Modes are restored; changes by the steps themselves, or
by the caller in the meantime, are errors.
"""
import contextlib
import dis
import functools
import itertools
import types
import warnings
import weakref
from typing import Any, Callable, Dict, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from ..errors import UsageError, stack_level
from .attributes import Attributes
from .interrupts import passed_on

__all__ = ["Around", "Leaf", "Unregistered", "values_around"]

_REMEDY = ('Make it part of the state. For buffers, pass the step as a torch.nn.Module with buffers="state"; for '
           "modules of snnTorch, SpikingJelly and Norse, use neap.torch.lift")
MOST = 1000  # most objects that are searched around a step
_PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device)
_LIBRARIES = ("torch", "neap", "numpy", "builtins")  # packages that define no steps


class _Found(NamedTuple):
    """What ``_found`` finds; ``plain``: numbers and strings that are not attributes."""

    modules: List[torch.nn.Module]
    tensors: List[torch.Tensor]
    generators: List[torch.Generator]
    others: List[Any]
    plain: List[Any]


def _found(*steps: Any) -> _Found:
    """Finds the modules, tensors, random number generators and other objects with attributes that steps are or use, as
    functions do: through the variables around them, their defaults, the globals that they use, and functions, lists,
    dicts, attributes and methods of objects among these. Tensors in attributes, and methods, are included if a function
    uses the attribute's name."""
    found: Dict[int, torch.nn.Module] = {}
    generators: Dict[int, torch.Generator] = {}
    tensors: Dict[int, torch.Tensor] = {}
    held: List[Tuple[str, torch.Tensor]] = []
    others: List[Any] = []
    plain: List[Any] = []
    names: Set[str] = {"forward", "__call__"}
    kinds: Dict[type, None] = {}
    seen, rows = set(), list(steps)
    while len(seen) < MOST and (rows or (rows := _methods(kinds, names, seen))):
        row = rows.pop()
        if id(row) in seen:
            continue
        seen.add(id(row))
        try:
            if isinstance(row, torch.Tensor):
                tensors[id(row)] = row
            elif isinstance(row, torch.Generator):
                generators[id(row)] = row
            else:
                inside = _inside(row, names, others)
                if isinstance(row, torch.nn.Module):
                    found[id(row)] = row
                    kinds.update(dict.fromkeys(map(type, row.modules())))
                else:
                    kinds[type(row)] = None
                for name, value in inside:
                    if name is not None and isinstance(value, torch.Tensor):
                        held.append((name, value))
                    elif not isinstance(value, _PLAIN):
                        rows.append(value)
                    elif name is None:
                        plain.append(value)
        except Exception as error:  # any code may run here, for example a property; a weak proxy may be dead
            passed_on(error)
    tensors.update((id(tensor), tensor) for name, tensor in held if name in names)
    return _Found(list(found.values()), list(tensors.values()), list(generators.values()), others, plain)


def values_around(*steps: Any) -> List[str]:
    """Describes the numbers, strings and tensors without gradients that steps use in addition to their arguments."""
    found = _found(*steps)
    return [*map(repr, found.plain), *[f"tensor {id(x)}" for x in found.tensors if not x.requires_grad],
            *Attributes(found.modules, found.others).texts()]


def _inside(row: Any, names: Set[str], others: List[Any]) -> List[Tuple[Optional[str], Any]]:
    """Returns the contents of an object, with the names of attributes, else None. Adds the names of attributes that
    functions load to ``names``, and objects with attributes that are not modules to ``others``."""
    if isinstance(row, torch.nn.Module):
        names.update(*[_used(_forward(type(part)))[1] for part in row.modules()])
        return [item for part in row.modules() for item in vars(part).items()
                if item[0][0] != "_" or isinstance(item[1], torch.Generator)]
    if isinstance(row, functools.partial):
        values: Iterable[Any] = (row.func, *row.args, *row.keywords.values())
    elif isinstance(row, types.MethodType):
        values = row.__func__, row.__self__
    elif isinstance(row, (list, tuple)):
        values = row[:MOST]
    elif isinstance(row, dict):
        values = itertools.islice(row.values(), MOST)
    elif _home(row) in _LIBRARIES:
        values = ()
    elif isinstance(row, types.FunctionType):
        names.update(_used(row.__code__)[1])
        values = _reached(row)
    elif isinstance(row, (type, types.ModuleType)):
        values = ()
    else:
        if isinstance(getattr(row, "__dict__", None), dict):
            others.append(row)
        return list(itertools.islice(getattr(row, "__dict__", {}).items(), MOST))
    return [(None, value) for value in values]


def _methods(kinds: Iterable[type], names: Set[str], seen: Set[int]) -> List[Any]:
    """Returns the methods of classes outside of libraries whose names functions use, and that are not yet seen."""
    rows = []
    for base in dict.fromkeys(itertools.chain.from_iterable(kind.__mro__ for kind in kinds)):
        if str(base.__module__).split(".")[0] not in _LIBRARIES:
            values = [vars(base)[name] for name in names & vars(base).keys()]
            values = [value.fget if type(value) is property else
                      value.__func__ if type(value) in (staticmethod, classmethod) else value for value in values]
            rows += [row for row in values if type(row) is types.FunctionType and id(row) not in seen]
    return rows


def _forward(kind: type) -> Optional[types.CodeType]:
    """Returns the code of a module's forward; None if it is not a function, as in a module of TorchScript."""
    forward = next((vars(base)["forward"] for base in kind.__mro__ if "forward" in vars(base)), None)
    return forward.__code__ if isinstance(forward, types.FunctionType) else None


def _home(row: Any) -> str:
    """Returns the package of an object, or of a function."""
    home = row.__module__ if isinstance(row, types.FunctionType) else type(row).__module__
    return str(home or "").split(".")[0]


def _version(ref: Any) -> int:
    tensor = ref()
    return -1 if tensor is None else tensor._version


class Unregistered(torch.nn.Module):
    """A module with a step, ``cell``. If it is a function, the parameters that it uses belong to other modules and are
    not parameters of this one: registering those modules could create a cycle, for example with a method as the step,
    and an optimizer would get parameters twice that the caller also passes."""

    cell: Callable[..., Any]

    def _warn(self, what: str, remedy: str) -> None:
        if isinstance(self.cell, torch.nn.Module):
            return
        modules, tensors, *_ = _found(self.cell)
        used = [type(part).__name__ for part in modules if any(row.requires_grad for row in part.parameters())]
        used += [f"a tensor of shape {tuple(row.shape)}" for row in tensors if row.requires_grad and row.is_leaf]
        if used:
            name = getattr(self.cell, "__qualname__", type(self.cell).__name__)
            warnings.warn(f"{what} does not include the parameters that the function {name!r} uses "
                          f"({', '.join(used[:4])}), because a function registers no modules. {remedy}, or write the "
                          f"step as a torch.nn.Module", RuntimeWarning, stacklevel=stack_level())

    def named_parameters(self, *args: Any, **options: Any) -> Iterator[Tuple[str, torch.nn.Parameter]]:
        """The parameters of the cell; warns if it is a function that uses parameters."""
        self._warn("Scan.parameters()", "Pass those to the optimizer as well")
        return super().named_parameters(*args, **options)

    def state_dict(self, *args: Any, **options: Any) -> Any:
        """The state of the cell; warns if it is a function that uses parameters."""
        if not args and options.get("destination") is None:  # not called for a module that contains this one
            self._warn("Scan.state_dict()", "Save those as well")
        return super().state_dict(*args, **options)

    def extra_repr(self) -> str:
        """The name of a function, which is not a submodule."""
        named = not isinstance(self.cell, torch.nn.Module)
        return f"cell={getattr(self.cell, '__qualname__', type(self.cell).__name__)}" if named else ""


class Leaf(weakref.ref):  # type: ignore[type-arg]
    """A weak reference to a leaf that a step reached. ``around``: the search around the step found it as well, so the step
    no longer uses it if the search misses it in a later call."""

    __slots__ = ("around",)

    def __new__(cls, leaf: torch.Tensor, around: bool) -> "Leaf":
        made = super().__new__(cls, leaf)
        made.around = around
        return made

    def __init__(self, leaf: torch.Tensor, around: bool):
        super().__init__(leaf)  # type: ignore[call-arg]


class Around:
    """The modules, buffers and other tensors that a step uses in addition to its arguments, at the time of
    construction."""

    def __init__(self, *steps: Any, buffered: bool = False):
        self._steps = steps
        self._modules, tensors, self.generators, others, _ = _found(*steps)
        if any("_orig_class" in vars(part) for module in self._modules for part in module.modules()):
            raise UsageError("torch.nn.utils.stateless.functional_call, of PyTorch before 2.0, replaces parameters "
                             "of a module that the step uses, and recomputed steps would not find them. Call "
                             "functional_call in the step, not around the scan")
        self.attributes = Attributes(self._modules, others)
        self._buffers = self._now()
        if not buffered:
            tensors += [row for row in (*[param for module in self._modules for param in module.parameters()],
                                        *self._buffers.values()) if not row.requires_grad]
        self._tensors = [(weakref.ref(tensor), tensor._version) for tensor in tensors]
        self._versions = {key: buffer._version for key, buffer in self._buffers.items()}
        self._modes: List[Tuple[torch.nn.Module, bool]] = []
        self._kinds: List[Tuple[torch.nn.Module, type]] = []
        self._bound: List[Tuple[Any, str, torch.Tensor]] = []  # a dict of a module, a name, and its value

    def _now(self) -> Dict[Tuple[int, str], torch.Tensor]:
        return {(i, f"{path}.{key}".lstrip(".")): buffer for i, module in enumerate(self._modules)
                for path, part in module.named_modules() for key, buffer in part._buffers.items() if buffer is not None}

    @property
    def tensors(self) -> List[torch.Tensor]:
        """Returns the tensors that the step uses, without parameters that require gradients."""
        return [tensor for tensor in (ref() for ref, _ in self._tensors) if tensor is not None]

    @property
    def buffers(self) -> List[torch.Tensor]:
        """The buffers of the modules."""
        return list(self._buffers.values())

    def leaves(self) -> Set[int]:
        """Returns the ids of those leaves that require gradients."""
        rows = [*_found(*self._steps).tensors, *[row for module in self._modules for row in module.parameters()]]
        return {id(row) for row in rows if row.requires_grad and row.is_leaf}

    def forget(self, leaves: List[Any]) -> None:
        """Removes the weak references to leaves that the step no longer uses, for example if a global variable was
        assigned another tensor: they would be counted as parameters as long as they exist."""
        if leaves:
            there = self.leaves()
            leaves[:] = [ref for ref in leaves if not ref.around or id(ref()) in there]

    def check_state(self, first: Callable[[], List[torch.Tensor]]) -> None:
        """Raises UsageError if steps changed a buffer in place, or changed the value of a buffer or an attribute that
        a step reads: then recomputing ``first()``, the results of the first step, gives a different result."""
        for (i, name), buffer in self._buffers.items():
            if buffer._version != self._versions[i, name]:
                module = self._modules[i]
                name = name if module is self._steps[0] else f"{type(module).__name__}.{name}"
                raise UsageError(f"the step changes buffer {name!r}. A recomputed step would change it twice. Pass the "
                                 'step as a torch.nn.Module with buffers="state", or make the buffer part of the '
                                 "state")
        self.attributes.check(first, lambda name: f"the step changes {name!r}, and its result depends on it. A "
                                                  f"recomputed step would find another value. {_REMEDY}")

    def note(self) -> None:
        """Called at the end of the forward pass: stores what recomputed steps must find. Tensors that the steps modify
        themselves, such as sums for a report, are not compared."""
        self._tensors = [(ref, version) for ref, version in self._tensors if _version(ref) == version]
        self.note_tensors()
        parts = [part for module in self._modules for part in module.modules()]
        self._modes = [(part, part.training) for part in parts if hasattr(part, "training")]  # a frozen one has none
        self._kinds = [(part, type(part)) for part in parts]
        self._bound = [(held, key, value) for part in parts for held in (vars(part), part._parameters, part._buffers)
                       for key, value in held.items() if isinstance(value, torch.Tensor)]

    def note_tensors(self) -> None:
        """Stores the current versions of the tensors."""
        self._tensors = [(ref, _version(ref)) for ref, _ in self._tensors]

    def check_tensors(self) -> None:
        """Raises RuntimeError if a tensor, or the class of a module, was changed since ``note``."""
        for part, kind in self._kinds:
            if type(part) is not kind:
                raise RuntimeError(f"the class of a module, {type(part).__name__}, was changed between forward and "
                                   f"backward, as by torch.nn.utils.parametrize. Recomputed steps would use other "
                                   f"parameters. Call backward() before changing it")
        for ref, version in self._tensors:
            tensor = ref()
            if tensor is not None and tensor._version != version:
                raise RuntimeError(f"a tensor of shape {tuple(tensor.shape)} used by the step, inputs or reduce was "
                                   f"modified in place between forward and backward. Recomputed steps would see the "
                                   f"new values. Call backward() before modifying it, or use a copy")

    @contextlib.contextmanager
    def modules_as_noted(self) -> Iterator[None]:
        """Restores the modules' modes (train or eval) and tensors as in the forward pass, and resets them at the end.
        torch.func.functional_call, for example, has put the original tensors back before the backward pass."""
        changed = [(part, part.training, flag) for part, flag in self._modes if part.training != flag]
        rows = [(held, key, held[key] if key in held else None, value) for held, key, value in self._bound]
        bound = [row for row in rows if row[2] is not row[3]]
        for part, _, flag in changed:
            part.training = flag
        for held, key, _, value in bound:
            held[key] = value
        try:
            yield
        finally:
            for part, flag, _ in changed:
                part.training = flag
            for held, key, value, _ in bound:
                if value is None:
                    del held[key]
                else:
                    held[key] = value


def _reached(function: types.FunctionType) -> Iterator[Any]:
    """Yields the values that a function uses in addition to its arguments."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            pass
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for name in _used(function.__code__)[0]:
        if name in function.__globals__:
            yield function.__globals__[name]


@functools.lru_cache(maxsize=1000)
def _used(code: Optional[types.CodeType]) -> Tuple[FrozenSet[str], FrozenSet[str]]:
    """Returns the names of globals and of attributes that code loads, including inner functions and comprehensions."""
    names: Set[str] = set()
    attributes: Set[str] = set()
    if code is not None:
        for one in dis.get_instructions(code):
            if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names.add(str(one.argval))
            elif one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                attributes.add(str(one.argval))
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                more = _used(inner)
                names |= more[0]
                attributes |= more[1]
    return frozenset(names), frozenset(attributes)
