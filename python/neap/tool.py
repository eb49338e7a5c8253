# SPDX-License-Identifier: Apache-2.0
"""Training and evaluation of neap's networks by the ``neap`` tool::

    result = neap.train("train.h5", test="test.h5", net="lif:256r,li", memory="16M", out="run")
    print(result.loss, result.test.accuracy, result.peak)
    print(neap.evaluate("run", "other.h5").accuracy)

The tool is the program at ``NEAP_TOOL`` if that is set, else the one in this package (in wheels that contain it),
else the first ``neap`` on the PATH. It runs as a separate process: its progress is shown as it is printed, and Ctrl-C
is passed on to it.
"""
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import IO, Any, Callable, Dict, List, NamedTuple, Optional, Union

from ._lib import bundled
from .errors import LEAST, Diverged, Error, Interrupted, ToolMissing, UsageError, budget_error
from .show import show_size

__all__ = ["Evaluation", "Training", "evaluate", "train"]

Path = Union[str, "os.PathLike[str]"]
Progress = Union[bool, Callable[[str], None]]


class Evaluation(NamedTuple):
    """The performance of a network on a data set.

    - ``samples``: number of samples
    - ``accuracy``: fraction of correctly classified samples; ``low``, ``high``: its 95% interval
    - ``loss``: mean over the samples
    - ``confusion[label][prediction]``: number of samples
    - ``rates``: spikes per unit and step, for each hidden layer
    - ``classes``: ``name``, ``samples`` and ``accuracy`` of each class
    - ``answers``: ``sample``, ``steps``, ``label``, ``prediction``, ``name`` and ``scores`` of each sample

    The lists are empty if they were not requested.
    """

    samples: int
    accuracy: float
    low: float
    high: float
    loss: float
    confusion: List[List[int]] = []
    rates: List[float] = []
    classes: List[Dict[str, Any]] = []
    answers: List[Dict[str, Any]] = []

    def __str__(self) -> str:
        return (f"accuracy {100 * self.accuracy:.1f}%  (95% interval {100 * self.low:.1f} to "
                f"{100 * self.high:.1f}%) of {self.samples} samples, loss {self.loss:.4f}")


class Training(NamedTuple):
    """The result of a training.

    - ``out``: folder of the run, which ``neap.torch.load`` accepts; its model has the weights of ``best_epoch``
    - ``epochs``: number of epochs
    - ``loss``, ``accuracy``: of the training samples in the last epoch
    - ``validation``, ``test``: an :class:`Evaluation`, or None
    - ``peak``, ``planned_peak``: bytes of the forward and backward pass
    - ``seconds``: time of all epochs
    - ``details``: everything that ``neap train --json`` prints
    """

    out: str
    epochs: int
    best_epoch: int
    loss: float
    accuracy: float
    validation: Optional[Evaluation]
    test: Optional[Evaluation]
    peak: int
    planned_peak: int
    seconds: float
    details: Dict[str, Any]

    def __str__(self) -> str:
        rows = [f"epochs      {self.epochs} (the model is of epoch {self.best_epoch})",
                f"training    accuracy {100 * self.accuracy:.1f}%, loss {self.loss:.4f}"]
        rows += [f"{name:<11} {one}" for name, one in
                 (("validation", self.validation), ("test", self.test)) if one]
        rows.append(f"memory      peak {show_size(self.peak)} (planned {show_size(self.planned_peak)})")
        return "\n".join([*rows, f"model       {os.path.join(self.out, 'model.safetensors')}"])


def train(data: Optional[Path] = None, *, progress: Progress = True, **options: Any) -> Training:
    """Trains a network on a data set with a memory budget, as ``neap train`` does.

    :param data: a file written by ``neap encode``, or ``"randman:..."``; None with ``resume=True``.
    :param progress: True: progress is printed to ``sys.stderr``; False: nothing is printed; a function is called with
        each line.
    :param options: the options of ``neap train --help`` with ``_`` instead of ``-``, such as ``net``, ``memory``,
        ``out``, ``epochs``, ``slow``, ``seed``, ``memory_total``. True stands for an option without a value; None and False
        omit the option; a list becomes values separated by commas.
    :returns: a :class:`Training`.
    :raises ToolMissing: if the tool is not installed.
    :raises UsageError: if the tool rejects an option or a file.
    :raises BudgetError: if no plan fits; ``error.least`` is a sufficient budget.
    :raises Diverged: if the loss is not finite.
    :raises KeyboardInterrupt: after Ctrl-C. The run is saved; continue it with ``neap.train(out=..., resume=True)``.
    """
    found = _run(["train", *_options(options), *([] if data is None else [os.fspath(data)])], progress)
    return Training(found["out"], found["epochs"], found["best_epoch"], found["train_loss"],
                    found["train_accuracy"], _evaluation(found["validation"]), _evaluation(found["test"]),
                    found["peak_measured"], found["peak_planned"], found["seconds"], found)


def evaluate(run: Path, data: Path, *, progress: Progress = True, **options: Any) -> Evaluation:
    """Evaluates a trained network on a data set, as ``neap eval`` does.

    :param run: folder of a run, or a file such as ``run/last.safetensors``.
    :param data: as in :func:`train`.
    :param progress: as in :func:`train`.
    :param options: the options of ``neap eval --help``, such as ``batch`` and ``threads``.
    :returns: an :class:`Evaluation`.
    :raises Exception: as :func:`train`.
    """
    found = _evaluation(_run(["eval", *_options(options), os.fspath(run), os.fspath(data)], progress))
    assert found is not None
    return found


def _evaluation(found: Optional[Dict[str, Any]]) -> Optional[Evaluation]:
    if found is None:
        return None
    return Evaluation(**{name: found[name] for name in Evaluation._fields if name in found})


def _options(options: Dict[str, Any]) -> List[str]:
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if name in ("json", "help"):
            raise UsageError(f"{name}= is not an option of this function. Remove it; the options are those of `neap "
                             f"train --help` or `neap eval --help`, except --json and --help")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            parts = value if isinstance(value, (list, tuple)) else [value]
            words.append(f"{option}={','.join(str(part) for part in parts)}")
    return words


def tool_path() -> str:
    """The program that :func:`train`, :func:`evaluate` and ``python -m neap`` run.

    :raises ToolMissing: if there is none.
    """
    named = os.environ.get("NEAP_TOOL")
    own = bundled("neap")
    found = shutil.which(named) if named else own[0] if own else _on_the_path()
    if found is None:
        raise ToolMissing(f"NEAP_TOOL={named} is not an executable program. Set it to the path of the neap tool, or "
                          f"unset it to use the neap on the PATH" if named else
                          "the neap tool is not installed; this build of the Python package does not contain it. "
                          "Install the wheel that does (make wheel), or build the tool (make, make install) and put "
                          "it on the PATH, or set NEAP_TOOL to its path")
    return found


def _on_the_path() -> Optional[str]:
    """The first ``neap`` on the PATH, except this package's own script, which would only start itself."""
    for folder in os.get_exec_path():
        path = shutil.which("neap", path=folder or os.curdir)
        if path:
            with open(path, "rb") as file:
                if b"neap.__main__" not in file.read(4096):
                    return path
    return None


def _tell(stream: IO[str], progress: Progress, lines: List[str]) -> None:
    """Shows each line of the tool, and stores the last one."""
    for line in stream:
        line = line.rstrip("\n")
        lines[:] = [line]
        if callable(progress):
            progress(line)
        elif progress and not line.startswith("neap "):  # errors are raised
            print(line, file=sys.stderr, flush=True)


def _run(arguments: List[str], progress: Progress) -> Dict[str, Any]:
    """Runs the tool; returns the JSON that it prints. The tool runs in a separate session, so that a signal of the
    terminal reaches it only once, through this process: a second one would end it without a snapshot."""
    command = [tool_path(), *arguments, "--json"]
    lines: List[str] = []
    out: List[str] = []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, encoding="utf-8", errors="replace", start_new_session=True) as process:
        stdout, stderr = process.stdout, process.stderr
        assert stdout is not None and stderr is not None
        reader = threading.Thread(target=lambda: out.append(stdout.read()), daemon=True)
        reader.start()
        try:
            _tell(stderr, progress, lines)
            code = process.wait()
        except BaseException as error:
            process.send_signal(signal.SIGINT)
            try:
                _tell(stderr, progress if isinstance(error, KeyboardInterrupt) else False, lines)
                process.wait()
            except BaseException:
                process.kill()
                raise
            raise
        finally:
            reader.join()
    if code == 0:
        return json.loads(out[0])
    raise _failure(arguments[0], code, lines[0] if lines else "")


def _failure(command: str, code: int, line: str) -> Exception:
    """Returns the exception for an exit code of the tool and its line."""
    text = line.split(": ", 1)[1] if line.startswith(f"neap {command}: ") else line
    if LEAST.search(text):
        return budget_error(text)
    if text.startswith("training diverged"):
        return Diverged(text)
    if text.startswith("interrupted "):
        return Interrupted(text)
    for number in errno.errorcode:
        if f": {os.strerror(number)}." in text + ".":  # advice may follow
            return OSError(number, text)
    if code == 2:
        return UsageError(text)
    if code > 0:
        return Error(text)
    why = " (SIGKILL; the system may have run out of memory)" if code == -signal.SIGKILL else ""
    return Error(f"neap {command} was killed by signal {-code}{why}. Call it again; a run of train continues with "
                 f"resume=True")
