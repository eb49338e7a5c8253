# SPDX-License-Identifier: Apache-2.0
"""The notebooks of examples/notebooks run from the first cell to the last in a Jupyter kernel, and their files contain the
output of every cell that prints or draws. ``python3 test_notebooks.py`` runs them and writes the outputs into the files."""
import glob
import json
import os
import sys
import warnings

import pytest

SOURCE = os.environ.get("NEAP_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
NOTEBOOKS = sorted(glob.glob(os.path.join(SOURCE, "examples", "notebooks", "*.ipynb")))
# Messages of Jupyter's debugger and of tqdm about packages that are not installed.
os.environ.update(PYDEVD_DISABLE_FILE_VALIDATION="1", PYTHONWARNINGS="ignore::Warning:tqdm.auto", JUPYTER_PLATFORM_DIRS="1")


def execute(path):
    """The notebook with the outputs of a run in a fresh kernel; an error of a cell is raised."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if "NEAP_BIN" in os.environ:
        os.environ["PATH"] = os.path.dirname(os.environ["NEAP_BIN"]) + os.pathsep + os.environ["PATH"]
    notebook = nbformat.read(path, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nbclient's own, about asyncio
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return notebook


def cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def texts(cell):
    """What a cell printed, and the kinds of its results."""
    lines = [(output["output_type"], output.get("name"), "".join(output.get("text", ""))) for output in cell["outputs"]]
    return lines, sorted(kind for output in cell["outputs"] for kind in output.get("data", {}))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=map(os.path.basename, NOTEBOOKS))
def test_notebook(path):
    with open(path, encoding="utf-8") as file:
        stored = json.load(file)
    if "neap.torch" in json.dumps(stored):
        pytest.importorskip("torch")
    made = execute(path)
    drawings = 0
    for now, before in zip(cells(made), cells(stored)):
        assert not [text for kind, name, text in texts(now)[0] if name == "stderr"], now["source"]
        assert texts(now)[1] == texts(before)[1], "the stored outputs are of another version of the cell"
        assert bool(texts(now)[0]) == bool(texts(before)[0])
        drawings += "image/svg+xml" in texts(now)[1]
    assert drawings >= 2  # a schedule, and another


if __name__ == "__main__":
    for notebook_path in sys.argv[1:] or NOTEBOOKS:
        import nbformat as format_of
        written = execute(notebook_path)
        for code in cells(written):
            code["metadata"].pop("execution", None)
        format_of.write(written, notebook_path)
