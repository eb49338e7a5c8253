# SPDX-License-Identifier: Apache-2.0
"""Rows as they are measured: one JSON object a line, so that a run goes on where it stopped."""
import json
import os

KEY = ("case", "framework", "cell", "way", "threads", "fraction", "what")


def key(row, fields=KEY):
    return json.dumps([row.get(name) for name in fields], sort_keys=True)


class Rows:
    """The rows of a file, and those of this run; without a file those of this run alone."""

    def __init__(self, path=None, fields=KEY):
        self.path, self.fields, self.all, self.whole = path, fields, [], True
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.whole = text.endswith("\n") or not text
            for line in text.splitlines():
                try:
                    self.all.append(json.loads(line))
                except ValueError:
                    pass  # a run ended while it wrote this
        self.have = {key(row, fields) for row in self.all}

    def has(self, row):
        return key(row, self.fields) in self.have

    def add(self, row):
        self.all.append(row)
        self.have.add(key(row, self.fields))
        if not self.path:
            return
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(("" if self.whole else "\n") + json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.whole = True

    def ways(self, framework):
        """The ways of a framework that was opened for a row before, or None."""
        for row in self.all:
            if row["framework"] == framework and "ways" in row:
                return row["ways"]
        return None
