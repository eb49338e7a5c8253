# SPDX-License-Identifier: Apache-2.0
"""tests/affected.py: which tests belong to which files.

    affected_files.py BUILD
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from affected import COMMANDS, OTHERS, TESTS, fitting, introspected, names_of  # noqa: E402
from harness import SOURCE, Tap  # noqa: E402

ROWS = introspected(sys.argv[1])
# A file, tests that belong to it, tests that do not.
CASES = [
    ("src/kern/product.c", ["test_kernels", "test_gradcheck"], ["test_plan", "test_sweep"]),
    ("src/plan/strategies/chain.c", ["test_plan", "test_plan_property"], ["test_kernels", "cli_train"]),
    ("src/train/rules/adam.c", ["test_train", "cli_train"], ["test_plan"]),
    ("src/device/device_batch.c", ["test_device_net", "test_device_kernels"], ["test_sweep"]),
    ("cli/plot.c", ["cli_plot", "cli_help"], ["cli_study", "test_plan"]),
    ("python/neap/torch/runs.py", ["python_torch_memory"], ["python_jax", "python_nir"]),
    ("python/neap/units.py", ["python_units"], ["python_torch"]),
    ("docs/pytorch.md", ["readable", "cli_documents"], ["test_plan"]),
    ("tests/sweep/test_logs.c", ["test_logs", "test_logs_ranks"], ["test_sweep"]),
    ("tests/sweep/guard_memory.c", ["test_sweep", "test_journal"], ["test_plan"]),
    ("tests/cli/encode.py", ["cli_encode"], ["cli_train"]),
    ("meson.build", OTHERS, ["test_plan"]),
]


def belongs(path, wanted, others):
    found, all_names = names_of(ROWS, path), {row["name"] for row in ROWS}
    lacking, wrong = set(wanted) & all_names - found, set(others) & found
    return f"lacks {sorted(lacking)}, has {sorted(wrong)}" if lacking or wrong else None


def every_row_is_of_the_tree():
    wrong = [path for path in [*TESTS, *COMMANDS] if not os.path.exists(os.path.join(SOURCE, path))]
    tests = os.path.join(SOURCE, "tests")
    wrong += [folder for row in TESTS.values() for folder in row if not os.path.isdir(os.path.join(tests, folder))]
    for name in {name for row in COMMANDS.values() for name in row} | set(OTHERS):
        folder, script = ("python", "test_" + name[7:]) if name.startswith("python_") else \
            ("cli", name[4:]) if name.startswith("cli_") else (None, None)
        if folder and not name.endswith("*") and not os.path.exists(os.path.join(tests, folder, script + ".py")):
            wrong.append(name)
    return f"there is no {sorted(wrong)}" if wrong else None


def every_folder_of_the_tree_has_tests():
    lacking = []
    for top in ("src", "cli", "python", "apps", "include", "docs", "tests", "tools", "examples", "bench"):
        for folder, _, names in os.walk(os.path.join(SOURCE, top)):
            path = os.path.relpath(folder, SOURCE)
            if names and not names_of(ROWS, os.path.join(path, names[0])):
                lacking.append(path)
    return f"no tests belong to {lacking}" if lacking else None


def quick_ones_first():
    seconds = {"a": 30, "b": 1, "c": 9, "d": 2}
    found = fitting(set(seconds), seconds, 12)
    return None if found == (["b", "d", "c"], ["a"]) else f"{found}"


with Tap() as tap:
    for case in CASES:
        tap.run(f"tests of {case[0]}", belongs, *case)
    tap.run("every row is of the tree", every_row_is_of_the_tree)
    tap.run("every folder of the tree has tests", every_folder_of_the_tree_has_tests)
    tap.run("quick tests come first, long ones are left out", quick_ones_first)
sys.exit(tap.failed > 0)
