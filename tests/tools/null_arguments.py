#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every function of the headers, called with NULL for each of its pointers in turn: those that
return a code refuse it with a line that names the argument, and none crashes."""
import ctypes
import os
import re
import sys

OPTIONAL = {  # where NULL has a meaning
    "neap_sweep_calibrate": "user x0", "neap_sweep_run": "x0 dx0 loss stats", "neap_stage_sweep_run": "x0 dx0 loss stats",
    "neap_join_sweep_run": "x0 dx0 loss stats", "neap_join_sweep_create": "user",
    "neap_sweep_create": "user", "neap_stage_sweep_create": "user", "neap_tier_wrap": "self",
    "neap_plan_make": "params", "neap_plan_make_bounded": "params", "neap_plan_write": "user",
    "neap_trace_write": "traces", "neap_draw": "title user", "neap_schedule_wrap": "close user",
    "neap_shd_finish": "class_names speaker_names attributes", "neap_tier_format": "staging",
    "neap_tiers_open": "list options", "neap_device_tiers_open": "options", "neap_tier_open_file": "dir options",
    "neap_net_begin": "objective batch", "neap_gradcheck": "objective", "neap_encode": "samples options", "neap_encode_directory": "options",
    "neap_encode_is_events": "path", "neap_encode_events": "options",
    "neap_encode_is_table": "path", "neap_encode_table": "options",
    "neap_net_grad_save": "to", "neap_net_grad_load": "from",
    "neap_tier_put": "from", "neap_tier_get": "into", "neap_tier_put_tapes": "spans",
    "neap_tier_get_tapes": "spans", "neap_detail_set": "line", "neap_net_set_ports": "ports", "neap_spikes_list": "unit",
    "neap_net_state_adjoint": "rows", "neap_journal_there": "suffix"}
STEPS = {"neap_net_" + name for name in (  # called for every step: the net alone is looked at
    "advance", "record", "advance_log", "replay", "turn", "backward", "will_touch")}


def prototypes(folder):
    text = ""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".h"):
            with open(os.path.join(folder, name)) as f:
                text += re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    nested = r"((?:[^()]|\([^()]*\))*)"
    for result, name, given in re.findall(
            r"NEAP_API\s+([^;]*?)\b(neap_\w+)\(" + nested + r"\)[^;]*;", text):
        parameters = re.split(r",(?![^()]*\))", given)
        yield result.strip(), name, [p.strip() for p in parameters if p.strip() != "void"]


def called(function, result, parameters, absent):
    """Calls in a child; returns what is wrong with parameter `absent` NULL, or None."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        room = ctypes.create_string_buffer(1 << 16)
        args = []
        for i, p in enumerate(parameters):
            if "*" in p or "[" in p:
                args.append(None if i == absent else ctypes.cast(room, ctypes.c_void_p))
            else:
                args.append(ctypes.c_double(0) if "double" in p else ctypes.c_int64(0))
        function.restype = ctypes.c_int if result == "int" else ctypes.c_int64
        code = function(*args)
        detail = DETAIL() or b""
        os.write(write, f"{code} ".encode() + detail)
        os._exit(0)
    os.close(write)
    said = b""
    while chunk := os.read(read, 4096):
        said += chunk
    os.close(read)
    status = os.waitpid(child, 0)[1]
    if status != 0:
        return f"died with status {status}"
    code, _, detail = said.decode(errors="replace").partition(" ")
    if result == "int" and (int(code) >= 0 or "is NULL" not in detail):
        return f"answered {code} with '{detail}'"
    return None


libraries = [ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in sys.argv[2:]]
DETAIL = libraries[0].neap_detail
DETAIL.restype = ctypes.c_char_p
count = failed = 0
for result, name, parameters in prototypes(sys.argv[1]):
    function = next((getattr(l, name) for l in libraries if hasattr(l, name)), None)
    if function is None:  # of a library that is not built
        continue
    count += 1
    wrong = []
    for i, p in enumerate(parameters):
        own = re.search(r"\(\*(\w+)\)|(\w+)\s*(?:\[\w*\])?$", p)
        own = own.group(1) or own.group(2)
        if "*" not in p and "[" not in p or own in OPTIONAL.get(name, "").split():
            continue
        if name in STEPS and own != "net":
            continue
        why = called(function, result, parameters, i)
        if why and not (name.endswith(("_free", "_close", "_abort")) and "died" not in why):
            wrong.append(f"{own}: {why}")
    failed += bool(wrong)
    print(f"{'not ok' if wrong else 'ok'} {count} - {name}")
    for line in wrong:
        print("#", line)
print(f"1..{count}")
sys.exit(failed > 0)
