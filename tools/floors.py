#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The include law: a file includes its own folder, public headers, and the folders that the
law names for it, so that no two folders include each other. The files of src/sweep have an order instead, and call
downwards only. In all of src/, no more than two files call each other in a cycle.
Beside it, what each floor may not do at all: the planner is pure, nets know no checkpoints, a library does not exit.
Modules of the Python package import those that the law names, and no package that is optional
unless the law says so.
Prints every breach and exits 1 if there is one.
    floors.py [FOLDER_OF_THE_PROJECT]
"""
import collections
import os
import re
import sys

PLAN = ["plan/core", "plan/recompute", "plan/online", "plan/levels", "plan/stages",
        "plan/verify", "plan/bound", "plan/blocks", "plan/offload", "plan/strategies",
        "plan/text", "plan"]
NN = ["nn/core", "nn/cells", "nn/cellfile", "nn/gradients", "nn/replay", "nn/batch", "nn"]
SWEEP = ["sweep", "sweep/arena", "sweep/costs", "sweep/journal", "sweep/repair", "sweep/stages", "sweep/steps", "sweep/trace",
         "sweep/transfers"]
# The files of the sweep from the top down: a function calls functions of its own file and of files further down.
SWEEP_ORDER = """
costs/calibrate_sweep run costs/first_steps journal/journal_resume online_sweep repair/finish_without_tiers actions
repair/recover_tapes repair/recover_states repair/rewrite_records costs/replan_sweep sweep
steps/pieces steps/step_logs steps/steps journal/journal transfers/tape_transfer arena/arena_space
journal/journal_commit journal/journal_identity transfers/transfer arena/arena_logs steps/copies
stages/join_sweep stages/stage_sweep stages/stage_run stages/stage_fallback stages/stage_journal stages/stage_perform
stages/stage_commit stages/stage_repair stages/join_plan stages/stage_transfer stages/stage_calls stages/stage_branches stages/stage_program
stages/buffer_moves stages/stage_flights stages/stage_saved_plan
stages/buffer_placement stages/record_placement stages/stage_layout stages/stage_tables stages/stage_walk
journal/journal_shared steps/counts sweep_plan costs/cost_watch repair/repair_costs online_plan
journal/journal_ranks steps/model_checks table_sizes trace/trace_json sweep_state
transfers/request
agree arena/arena arena/recorded_ranges infeasible log_plan saved_plan sweep_options arena/arena_memory arena/fence steps/piece_ends trace/trace_ring
""".split()
LIBRARY = ["base", "sys", "ranks", "kern", "kern/tiles", "device", "device/kernels", "data", "data/formats", "data/augment", "data/encode", "data/npy", "data/events", "data/tables", "data/nir", "data/coding", "data/names", "data/sound", *NN, *PLAN, "store", "store/records", *SWEEP, "measure", "train", "train/rules", "train/nir", "train/ranks", "train/answers", "train/reports"]
# Folder below src/ or apps/: what it may include besides itself and public headers.
LAW = {
    "base": [],
    "sys": ["base"],
    "plan/core": ["base"],
    "plan/recompute": ["base", "plan/core"],
    "plan/online": ["base", "plan/core", "plan/recompute"],
    "plan/levels": ["base", "plan/core", "plan/recompute"],
    "plan/stages": ["base", "plan/core"],
    "plan/verify": ["base", "plan/core", "plan/stages"],
    "plan/bound": ["base", "plan/core", "plan/recompute", "plan/levels"],
    "plan/blocks": ["base", "plan/core", "plan/recompute", "plan/bound"],
    "plan/offload": ["base", "plan/core", "plan/stages", "plan/verify", "plan/bound"],
    # `auto` compares all rows: it alone reads the table that it stands in.
    "plan/strategies": ["base", *PLAN[:9], "plan/strategy_table.h"],
    "plan/text": ["base", "plan/core", "plan/verify", "plan/bound", "plan"],
    "plan": ["base", *PLAN],
    "store/records": ["base"],
    "store": ["base", "sys", "store/records"],
    # One floor in nine rooms, whose files have an order of their own: SWEEP_ORDER.
    **{room: ["base", "sys", *PLAN, "store", *SWEEP] for room in SWEEP},
    # A library of its own: of libneap, the trailers of records, which it compiles once more.
    "cuda": ["base", "sys", "store/records/record.h"],
    "ranks": ["base", "sys"],
    "kern": ["base", "sys"],
    "kern/tiles": ["base", "sys", "kern"],
    "nn/core": ["base", "sys", "kern", "kern/tiles"],
    "nn/cells": ["base", "kern", "nn/core"],
    "nn/cellfile": ["base", "sys", "kern", "nn/core", "nn/cells"],
    "nn/gradients": ["base", "kern", "nn/core"],
    "nn/replay": ["base", "kern", "kern/tiles", "nn/core"],
    "nn/batch": ["base", "sys", "ranks", "kern", "nn/core", "nn/gradients", "nn/replay"],
    "nn": ["base", "sys", "ranks", "kern", "kern/tiles", *NN],
    "device/kernels": [],
    "device": ["base", "ranks", "kern", "cuda", "nn/core", "nn/batch", "nn", "device/kernels"],
    "data": ["base", "sys", "ranks", "data/augment", "data/coding", "data/names"],
    "data/encode": ["base", "sys", "ranks", "data", "data/names", "data/sound"],
    "data/events": ["base", "data", "data/formats", "data/names", "data/npy"],
    "data/tables": ["base", "data", "data/formats", "data/names"],
    "data/npy": ["base", "sys"],
    "data/formats": ["base", "sys", "data", "data/sound", "data/npy"],
    "data/augment": ["base", "sys"],
    "data/coding": ["base"],
    "data/names": ["base", "sys"],
    "data/nir": ["base", "sys", "data", "data/formats"],
    "data/sound": ["base", "data"],
    "measure": [x for x in LIBRARY if not x.startswith("train")],
    # One floor in four rooms: a graph in NIR is read as the file of a model, and is one of its files;
    # what ranks agree on is the state of a run.
    "train": LIBRARY,
    "train/rules": ["base", "train"],
    "train/nir": LIBRARY,
    "train/ranks": LIBRARY,
    "train/answers": LIBRARY,
    "train/reports": LIBRARY,
    "study": LIBRARY,
    "bench": LIBRARY,
}
# Module of python/neap, or FOLDER/module: what it may import of the package, and which other packages.
PYTHON = {
    "_abi": ([], []),
    "show": ([], []),
    "errors": (["_abi", "show"], []),
    "_lib": (["_abi", "errors"], []),
    "units": (["errors"], []),
    "_nn": (["_abi_nn", "_lib"], []),
    "actions": (["_abi", "_lib"], []),
    "problems": (["_abi", "_lib", "errors", "units"], []),
    "tables": (["show", "plans"], []),  # plans: its types alone
    "plans": (["_abi", "_lib", "errors", "show", "units", "actions", "problems", "tables"], []),
    "online_plans": (["_abi", "_lib", "units", "actions", "problems"], []),
    "tool": (["_lib", "errors", "show"], []),
    "__main__": (["errors", "tool"], []),
    "__init__": (["_lib", "actions", "errors", "online_plans", "plans", "problems", "sweeps", "tool"], []),
    "signals": ([], []),
    "models": (["_abi", "_lib", "errors", "signals"], ["numpy"]),
    "sweeping": (["_abi", "_lib", "errors", "units", "plans", "problems", "models", "signals"], ["numpy"]),
    "stage_models": (["_abi", "errors", "models", "problems", "units"], ["numpy"]),
    "stage_sweeps": (["_abi", "errors", "problems", "stage_models", "sweeping"], ["numpy"]),
    "sweeps": (["_lib", "errors", "units", "plans", "problems", "models", "sweeping", "stage_models", "stage_sweeps"], ["numpy"]),
    "stores": (["_abi", "_lib", "errors", "problems", "show"], []),
    "backends": ([], []),
    "holding": (["actions", "backends", "stores"], []),
    "performer": (["actions", "backends", "errors", "stores"], []),
    "player": (["actions", "backends", "holding", "performer", "show", "stores"], []),
    "stage_player": (["actions", "backends", "performer", "show", "stores"], []),
    # The choice of a plan is pure: it knows sizes, costs and tiers, and no framework.
    "places": (["actions", "plans"], []),
    "group_plans": (["errors", "places", "plans", "problems", "show", "stores"], []),
    "scan_choice": (["backends", "errors", "group_plans", "places", "show", "stores"], []),
    "torch/layouts": (["errors"], ["torch"]),
    "torch/transforms": (["errors", "show"], ["torch"]),
    "torch/trees": (["errors", "layouts"], ["torch"]),
    "torch/heap": ([], []),
    "torch/measure": (["player", "layouts"], ["torch"]),
    "torch/seeding": ([], ["torch"]),
    "torch/tapes": (["layouts", "measure"], ["torch"]),
    "torch/leaves": ([], ["torch"]),
    "torch/checks": (["errors", "reports"], ["torch"]),
    "torch/tiers/__init__": ([], []),
    "torch/tiers/slabs": ([], ["torch"]),
    "torch/device": (["errors", "measure", "slabs", "tapes"], ["torch"]),
    "torch/tiers/offload": (["errors", "stores", "device", "slabs", "tapes"], ["torch"]),
    "torch/tiers/rates": (["problems", "stores", "device"], ["torch"]),
    "torch/tiers/exhaustion": (["errors", "reports", "show"], ["torch"]),
    "torch/sizing": (["layouts", "measure"], ["torch"]),
    "torch/runs": (["errors", "player", "checks", "device", "heap", "interrupts", "layouts", "leaves", "measure", "seeding", "sizing",
                    "tapes", "trees", "wrappers"], ["torch"]),
    "torch/loops": (["errors", "device", "leaves", "measure", "runs", "trees"], ["torch"]),
    "torch/timing": (["group_plans", "checks", "heap", "measure", "runs"], ["torch"]),
    "reports": (["errors", "plans", "player", "show"], []),
    "torch/arguments": (["units", "errors", "group_plans", "stores", "around", "device", "layouts", "runs", "trees", "wrappers"], ["torch"]),
    "torch/repeatable": (["errors", "device", "measure", "runs", "trees"], ["torch"]),
    "torch/interrupts": (["signals"], []),
    "torch/compiled/tracing": (["errors", "interrupts", "leaves", "measure", "runs", "seeding", "trees"], ["torch"]),
    "torch/compiled/partition": (["tracing"], ["torch"]),
    "torch/compiled/graphs": (["errors", "interrupts", "measure", "trees"], ["torch"]),
    "torch/compiled/groups": (["errors", "device", "interrupts", "measure", "runs", "trees", "graphs", "partition", "tracing"], ["torch"]),
    "torch/compiled/runs": (["errors", "player", "device", "measure", "runs", "tapes", "transforms", "trees", "groups"], ["torch"]),
    "torch/compiled/calls": (["errors", "around", "device", "runs", "groups", "tracing"], ["torch"]),
    "torch/compiled/__init__": (["calls", "groups", "tracing"], []),
    "torch/facts": (["scan_choice", "backends", "group_plans", "player", "stores", "arguments", "compiled", "device", "measure",
                     "offload", "rates", "runs", "sizing", "timing", "trees"], ["torch"]),
    "torch/attributes": (["errors", "trees"], ["torch"]),
    "torch/around": (["errors", "attributes", "interrupts"], ["torch"]),
    "torch/axes": (["reports", "trees"], ["torch"]),
    "torch/wrappers": (["errors", "trees"], ["torch"]),
    "torch/double": (["errors", "show", "checks", "device", "measure", "runs", "seeding", "transforms", "trees"], ["torch"]),
    "torch/calls": (["errors", "double", "player", "stores", "scan_choice", "arguments", "device", "exhaustion", "leaves", "measure", "offload", "reports",
                     "runs", "show", "transforms", "trees"], ["torch"]),
    "torch/scan": (["units", "errors", "player", "stores", "scan_choice", "arguments", "axes", "calls", "checks", "compiled", "device", "exhaustion", "facts",
                    "heap", "loops", "measure", "repeatable", "reports", "runs", "transforms", "trees", "around"], ["torch"]),
    "torch/lift": (["errors"], ["torch"]),
    "specs": (["errors", "units"], []),
    "tensors": (["errors"], []),
    "torch/surrogates": ([], ["torch"]),
    "torch/cells": (["specs", "surrogates"], ["torch"]),
    "torch/load": (["errors", "specs", "tensors", "cells"], ["torch"]),
    "torch/stages": (["device", "errors", "player", "stage_player", "layouts", "measure", "runs", "seeding", "tapes", "trees"], ["torch"]),
    "torch/sequential": (["units", "actions", "errors", "plans", "player", "problems", "reports", "show", "stage_player", "stores",
                          "around", "device", "double", "exhaustion", "heap", "layouts", "measure", "offload", "places", "rates", "runs", "stages",
                          "tapes", "transforms", "trees"],
                         ["torch"]),
    "torch/layers/nets": (["_abi_nn", "_lib", "_nn"], ["torch"]),
    "torch/layers/chains": (["errors", "player", "reports", "scan_choice", "show", "stores", "nets", "group_plans"], ["torch"]),
    "torch/layers/functions": (["_abi_nn", "errors", "reports", "specs", "stores", "units", "chains", "nets", "scan", "transforms"], ["torch"]),
    "torch/layers/modules": (["errors", "functions"], ["torch"]),
    "torch/layers/__init__": (["functions", "modules"], []),
    "torch/__init__": (["checks", "functions", "lift", "load", "modules", "reports", "scan", "sequential"], ["torch"]),
    "jax/leaves": ([], ["jax"]),
    "jax/groups": (["errors", "leaves"], ["jax"]),
    "jax/runs": (["player", "groups", "leaves"], ["jax", "numpy"]),
    "jax/gradients": (["units", "errors", "places", "plans", "player", "reports", "scan_choice", "show", "stores", "groups", "leaves", "runs"],
                      ["jax"]),
    # The planner of scans is pure: it knows sizes and tables of integers.
    "jax/action_table": (["actions", "errors"], ["numpy"]),
    "jax/planning": (["errors", "plans", "show", "action_table"], []),
    "jax/structure": (["errors", "leaves"], ["jax"]),
    "jax/residuals": (["leaves", "structure"], ["jax"]),
    "jax/loops": (["action_table", "leaves", "planning", "residuals"], ["jax"]),
    "jax/second_order": (["errors"], ["jax"]),
    "jax/measuring": (["errors", "leaves", "loops", "planning", "residuals", "structure"], ["jax"]),
    "jax/scan_report": (["show", "planning", "second_order"], ["jax"]),
    "jax/scan": (["units", "errors", "leaves", "loops", "planning", "residuals", "second_order", "structure"], ["jax"]),
    "jax/__init__": (["reports", "gradients", "measuring", "planning", "scan", "scan_report"], ["jax"]),
    "schedules": (["actions", "errors", "plans", "problems", "tables", "units"], ["checkpoint_schedules"]),
}
OPTIONAL = ("numpy", "torch", "jax", "checkpoint_schedules")
DEFINITION = re.compile(r"^[a-z][^;{}()#=]*?\b(neap_\w+)\([^;{}]*\)\n\{", re.MULTILINE)
INCLUDE = re.compile(r'^#\s*include "([^"]+)"', re.MULTILINE)
# (folders, pattern, what it says)
NEVER = [
    (("src/plan", "src/base"), r"#\s*include <(pthread|time|sys/|unistd|fcntl|threads|omp)",
     "the planner is pure: no files, clocks, threads"),
    (("src/plan",), r"\b(fopen|getenv|printf)\(",
     "the planner is pure: no files, no environment, no printing"),
    (("src/nn", "src/kern", "src/data", "src/device"), r"(?i)checkpoint", "nets know nothing of checkpoints"),
    (("src",), r"\b(exit|abort)\(", "a library does not exit"),
    (("src",), r"\b(v?snprintf|sprintf|strtod|sscanf|strerror|localeconv)\(",
     "text depends on no locale: base/print.h"),
]


def sources(*folders):
    for folder in folders:
        for where, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".k")):
                    path = os.path.join(where, name)
                    with open(path) as file:
                        yield path, file.read()


def cycles(calls):
    """The sets of more than one node that reach each other (Tarjan, 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(calls.get(node, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(set(stack[at:]))
            del stack[at:]

    for node in sorted(calls):
        if node not in index:
            visit(node)
    return found


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
breaches = []
for path, text in sources("src", "apps"):
    room = os.path.dirname(path).split("/", 1)[1]
    allowed = LAW.get(room)
    if allowed is None:
        breaches.append(f"{path}: the law has no row for the folder {room}")
        continue
    for match in INCLUDE.finditer(text):
        include = match.group(1)
        folder = os.path.dirname(include) or room
        if folder not in (room, *allowed) and include not in allowed:
            breaches.append(f"{path}:{line_of(text, match)}: {include} -- {room} may include: "
                            f"{room} {' '.join(allowed)}")
for path, text in sources("cli", "examples", "bench"):
    for match in INCLUDE.finditer(text):
        include = match.group(1)
        # The tool starts the apps, has devices, and writes results as run.json does; whatever else it needs is public.
        if "/" in include and not (path.startswith("cli/") and include in
                                   ("study/run_study.h", "bench/run_bench.h", "device/cuda_devices.h", "train/reports/result_json.h", "train/reports/text_loss.h", "base/json.h",
                                    "base/fail.h", "base/units.h", "base/show.h", "base/suggest.h", "base/svg.h",
                                    "base/quote.h", "base/text.h", "base/text_like.h",
                                    "sys/atomic_file.h", "sys/command.h", "sys/child_trial.h", "data/names/sort_command.h", "data/tables/event_tables.h", "data/encode/label_doubts.h", "data/recordings.h", "data/missing_file.h")):
            breaches.append(f"{path}:{line_of(text, match)}: {include} -- only public headers")
for folders, pattern, says in NEVER:
    for path, text in sources(*folders):
        if path == "src/base/print.c" and "strtod" in pattern:
            continue
        for match in re.finditer(pattern, text):
            breaches.append(f"{path}:{line_of(text, match)}: {match.group(0)} -- {says}")
rooms, owner = collections.defaultdict(str), {}
for path, text in sources("src"):
    stem = os.path.splitext(path)[0]
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    if path.endswith(".c"):
        owner.update((match.group(1), stem) for match in DEFINITION.finditer(text))
    rooms[stem] += text
calls = {}
for stem, text in rooms.items():
    inside = "\n".join(line for line in text.split("\n") if line[:1] in ("\t", " "))
    named = re.findall(r"(?<!struct )\b(neap_\w+)\b", inside)
    calls[stem] = {owner[name]: name for name in named if owner.get(name, stem) != stem}
for group in cycles(calls):
    if len(group) > 2:
        breaches += [f"{stem}.c: calls {name} of {other}.c, in a cycle of {len(group)} files"
                     for stem in sorted(group) for other, name in sorted(calls[stem].items()) if other in group]
for path in sorted(stem for stem in rooms if stem.startswith("src/sweep/")):
    stem = path[len("src/sweep/"):]
    if stem not in SWEEP_ORDER:
        breaches.append(f"{path}: SWEEP_ORDER has no place for it")
        continue
    for other, name in calls[path].items():
        at = other[len("src/sweep/"):] if other.startswith("src/sweep/") else stem
        if at in SWEEP_ORDER[:SWEEP_ORDER.index(stem)]:
            breaches.append(f"{path}: {name} of {at}.c -- SWEEP_ORDER has {at} above {stem}")
for path in sorted(os.path.join(where, name) for where, _, names in os.walk("python/neap") for name in names
                   if name.endswith(".py")):
    module = os.path.relpath(path, "python/neap")[:-len(".py")]
    with open(path) as file:
        text = file.read()
    if module not in PYTHON:
        breaches.append(f"{path}: the law has no row for it")
        continue
    own, others = PYTHON[module]
    for match in re.finditer(r"^ *from \.+(\w*) import (.*)|^ *(?:import|from) (\w+)", text, re.MULTILINE):
        wanted = [match.group(1)] if match.group(1) else \
            [word.split()[0] for word in match.group(2).split(",")] if match.group(2) else []
        wrong = [word for word in wanted if word not in own]
        if match.group(3) in OPTIONAL and match.group(3) not in others:
            wrong.append(match.group(3))
        for word in wrong:
            breaches.append(f"{path}:{line_of(text, match)}: {word} -- may import: "
                            f"{' '.join([*own, *others])}")
for breach in breaches:
    print(f"floors: {breach}")
if breaches:
    sys.exit(1)
print("floors: the include law holds")
