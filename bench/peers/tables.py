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


def line(row):
    """A row as one line, for progress messages."""
    threads = f", {row['threads']} thread{'s' if row['threads'] > 1 else ''}" if "threads" in row else ""
    if "error" in row:
        return f"{row['name']}{threads}: {row['error'][:200]}"
    if row["what"] == "check":
        return f"{row['name']}: loss and gradients differ by {agreement(row['check'])}"
    within = f" with 1/{row['fraction']} of its memory" if row.get("fraction") else ""
    return (f"{row['name']}{threads}: {seconds(row['seconds'])}, {size(row['growth'])}; neap{within} "
            f"{seconds(row['neap_seconds'])}, {size(row['neap_growth'])}: {ratio(row['ratio'])}")


def timed(row, check):
    name = row["name"]
    if row.get("fraction"):
        name += f"; neap with 1/{row['fraction']} of its memory (`{row['neap_plan']}`)"
    return " | ".join(["| " + name, row["cell"], str(row["threads"]), seconds(row["seconds"]),
                       seconds(row["neap_seconds"]), ratio(row["ratio"]), size(row["growth"]),
                       size(row["neap_growth"]), ratio(row["growth"] / max(row["neap_growth"], 1)),
                       agreement(check)]) + " |"


def case(rows):
    """The table of one case."""
    shape = rows[0]["case"]
    title = f"{shape['name']}, B={shape['batch']}, T={shape['steps']}"
    for row in rows:
        if shape["kind"] == "lif" and "spikes" in row:
            title += (f"; measured: {100 * row['spikes']:.2g}% of units spike per step, "
                      f"{100 * row['support']:.2g}% have a non-zero surrogate gradient")
            break
    lines = [title + ":", "",
             "| framework | cell | threads | framework, time | neap, time | framework / neap | framework, memory | "
             "neap, memory | framework / neap | relative difference of loss, gradients |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    checks = {(row["framework"], row["way"]): row.get("check") for row in rows if row["what"] == "check"}
    for row in rows:
        if row["what"] != "time":
            continue
        if "error" in row:
            lines.append(f"| {row['name']} | {row['cell']} | {row['threads']} | {row['error'][:70]} |" + " |" * 6)
        else:
            lines.append(timed(row, checks.get((row["framework"], row["way"]))))
    return "\n".join(lines)


def document(rows, absent):
    """Tables of all cases, in the order of their first rows."""
    if not rows:
        return "No rows.\n"
    found = {name: sorted({str(row[name]) for row in rows}) for name in ("machine", "neap")}
    versions = sorted({row["ways"][0] for row in rows})
    out = [f"On {'; '.join(found['machine'])}; neap {', '.join(found['neap'])}; " + ", ".join(versions) + "."]
    groups = {}
    for row in rows:
        groups.setdefault(str(row["case"]), []).append(row)
    out += [case(group) for group in groups.values()]
    if absent:
        out.append("Omitted: " + "; ".join(sorted(set(absent))) + ".")
    return "\n\n".join(out) + "\n"
