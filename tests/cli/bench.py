# SPDX-License-Identifier: Apache-2.0
"""neap bench: rows, targets, one JSON object, bad usage."""
import sys

from harness import Tap, neap, neap_json

ROW = {"name", "what", "unit", "value", "low", "high", "runs", "target", "met"}


def json_is_complete():
    out = neap_json("bench", "planner", "--only", "revolve", "--runs", "3")
    assert out["benchmark"] == "planner", out
    assert set(out["machine"]) == {"cpu", "processors", "memory", "os", "isa"}, out["machine"]
    names = [row["name"] for row in out["rows"]]
    assert names == ["revolve, T = 10^6", "revolve, T = 10^9", "revolve, T = 10^9, an action"], names
    for row in out["rows"]:
        assert ROW <= set(row), row
        assert row["runs"] == 3 and 0 < row["low"] <= row["value"] <= row["high"], row
        assert row["met"] == (row["value"] <= row["target"]), row
        # A machine ten times slower than the one the targets were set on would still pass.
        assert row["value"] < 10 * row["target"], row
    assert out["missed"] == sum(not row["met"] for row in out["rows"]), out


def gap_and_memory():
    rows = neap_json("bench", "planner", "--only", "h-revolve 10", "--runs", "1")["rows"]
    times = [row for row in rows if row["unit"] == "s"]
    memory = [row for row in rows if row["unit"] == "bytes"]
    assert len(times) == 4 and all(0 <= row["certified_gap"] < 1e-3 for row in times), times
    assert len(memory) == 4 and all(row["value"] <= 64 << 20 for row in memory), memory


def auto_gains():
    rows = neap_json("bench", "auto")["rows"]
    assert len(rows) >= 12, len(rows)
    for row in rows:
        assert row["value"] < 0.995 and abs(1 - row["value"] - row["gain"]) < 1e-12, row
        assert 0 <= row["gap"] < row["named_gap"], row


def store_rows():
    rows = neap_json("bench", "store", "--only", "sync", "--runs", "1")["rows"]
    assert [row["name"] for row in rows] == ["sync write, fresh blocks", "sync write", "sync read"], rows
    for row in rows:
        assert row["rate"] > 1e6 and row["cpu_seconds_a_gib"] > 0 and row["depth"] == 8, row
        if row["value"] is None:
            assert "no fio here" in row["what"], row
        else:
            assert abs(row["value"] * row["rate"] - row["fio_rate"]) < 1e-6 * row["fio_rate"], row


def kernel_rows():
    out = neap_json("bench", "kernels", "--only", "plain dots 256", "--runs", "1")
    rows = out["rows"]
    assert [row["name"] for row in rows] == [f"plain dots 256 {a}%" for a in ("0.5", 2, 10, 50)], rows
    for row in rows:
        assert row["value"] > 0 and row["attained"] > 0, row
        assert abs(row["events_per_second"] * 256 * 4 - row["bytes_per_second"]) < 1, row
        assert min(row["near_ceiling"], row["far_ceiling"], row["flops_ceiling"]) > 1e8, row
    isa = out["machine"]["isa"]
    rows = neap_json("bench", "kernels", "--only", f"{isa} dense", "--runs", "1")["rows"]
    dense = [row for row in rows if " dense from " in row["name"]]
    assert len(dense) == 4 and all(0 < row["value"] <= 1.05 for row in dense), dense


def table():
    done = neap("bench", "planner", "--only", "revolve, T = 10^9", "--runs", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("# ") and "processors" in lines[0], lines[0]
    assert "target" in lines[1] and len(lines) == 5, lines
    assert lines[4].startswith("2 rows, "), lines[4]


def refuses(word, *args):
    done = neap("bench", *args)
    assert done.returncode == 2 and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1 and word in done.stderr, done.stderr


with Tap() as tap:
    tap.run("--json is one complete object", json_is_complete)
    tap.run("certified gap, memory", gap_and_memory)
    tap.run("auto beats every named strategy", auto_gains)
    if "all" in sys.argv:  # moves several GiB
        tap.run("store: what moved, beside fio", store_rows)
    tap.run("kernels: rates beside ceilings", kernel_rows)
    tap.run("a table with the machine and targets", table)
    tap.run("unknown benchmark", refuses, "planner", "plane")
    tap.run("no benchmark", refuses, "bench")
    tap.run("no such row", refuses, "begins with", "planner", "--only", "nothing")
    tap.run("no such disk", refuses, "no-such-disk", "store", "--dir", "/no-such-disk")
    tap.run("no runs", refuses, "runs", "planner", "--runs", "0")
