# SPDX-License-Identifier: Apache-2.0
"""Measured rows, one JSON object per line, so that an interrupted run can be resumed."""
import json
import os

KEY = ("case", "framework", "cell", "way", "threads", "fraction", "what")


def key(row, fields=KEY):
    return json.dumps([row.get(name) for name in fields], sort_keys=True)


class Rows:
    """The rows of a file, if there is one, and of this run."""

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
                    pass  # an interrupted run left an incomplete line
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
        """The ways of a framework according to earlier rows, or None."""
        for row in self.all:
            if row["framework"] == framework and "ways" in row:
                return row["ways"]
        return None
