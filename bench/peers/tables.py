# SPDX-License-Identifier: Apache-2.0
"""Results as Markdown."""


def size(count):
    if count is None:
        return ""
    for unit in ("B", "KiB", "MiB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


def seconds(value):
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def ratio(value):
    return f"{value:.1f}x" if value < 100 else f"{value:.0f}x"


def agreement(check):
    if not check:
        return "not compared"
    return f"{check['loss']:.0e}, {check['gradients']:.0e}" + ("" if check["agrees"] else " (differs)")


def case(result):
    shape = result["case"]
    lines = [f"{shape['name']}, B={shape['batch']}, T={shape['steps']}:", ""]
    if "spikes" in result:
        lines[0] = lines[0][:-1] + (f"; measured {100 * result['spikes']:.2g}% of units spiking, "
                                    f"{100 * result['support']:.2g}% inside the surrogate's support:")
    lines += ["| | cell | threads | a step | neap, same cell | ratio | memory | over neap's | "
              "loss, gradients differ by |",
              "|---|---|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        if "error" in row:
            lines.append(f"| {row['name']} | {row['cell']} | {row['threads']} | {row['error'][:70]} |||||  |")
            continue
        if "seconds" not in row:
            continue  # compared, not timed
        ours = row.get("neap_seconds")
        lines.append(" | ".join(["| " + row["name"], row["cell"], str(row["threads"]), seconds(row["seconds"]),
                                 seconds(ours) if ours else "", ratio(row["ratio"]) if ours else "",
                                 size(row["growth"]),
                                 ratio(row["growth"] / row["neap_growth"]) if row.get("neap_growth") else "",
                                 agreement(row.get("check")) if not row["name"].startswith("neap") else ""]) + " |")
    return "\n".join(lines)


def document(results):
    out = [f"On {results['machine']}; neap {results['neap']}; " + ", ".join(sorted(results["versions"])) + "."]
    out += [case(result) for result in results["cases"]]
    if results["absent"]:
        out.append("Left out: " + "; ".join(sorted(results["absent"])) + ".")
    return "\n\n".join(out) + "\n"
