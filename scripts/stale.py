#!/usr/bin/env python3
"""Lists the pages of the evaluation whose code has changed since they were measured, most changed first.

usage: stale.py [--write]    --write: also into the index, docs/evaluation/README.md

Comments, white space, tests, moves, and the commits of .git-blame-ignore-revs do not count.
"""

import json
import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

EVALUATION = Path("docs/evaluation")
CODE = (".rs", ".c", ".h", ".sh")


def git(*words):
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, text=True, check=True).stdout


IGNORED = ["--ignore-all-space", "--ignore-blank-lines", r"-I^\s*(//|/?\*|#)", "-M40%", "-l0"]
# Ends each commit's name.
END = "\x1e"


def rows(text):
    """Yields the old name, the name and the changed lines of each file of `--numstat -z`."""
    fields = iter(text.split("\0"))
    for field in fields:
        counts = field.strip("\n").split("\t")
        if len(counts) < 3:
            continue
        added, removed, path = counts
        # A moved file has no name in its row: the old and the new one follow.
        old, path = (path, path) if path else (next(fields), next(fields))
        yield old, path, 0 if added == "-" else int(added) + int(removed)


def history(oldest):
    """Returns the files that each commit since the oldest changed, by their names of today, newest commit first."""
    reformatted = Path(".git-blame-ignore-revs").read_text().split()
    commits = [("", git("diff", "--numstat", "-z", *IGNORED, "HEAD"))]
    log = git("log", "--no-merges", "--numstat", "-z", *IGNORED, f"--format=%H{END}", f"{oldest}..HEAD")
    # With -z a commit's name stands before its first row.
    for part in re.split(rf"(?=[0-9a-f]{{40}}{END})", log)[1:]:
        commits.append(tuple(part.split(END, 1)))
    today, found = {}, {}
    for commit, text in commits:
        files = {}
        for old, path, lines in rows(text):
            path = today.get(path, path)
            today[old] = path
            is_code = path.endswith(CODE) and "/tests" not in path
            if lines and is_code and commit not in reformatted:
                files[path] = files.get(path, 0) + lines
        found[commit] = files
    return found


def folders(measures, part):
    for name in measures["pages"][part]:
        yield from measures["groups"].get(name, [name])


def ages():
    """Returns each part, the commit that it measured, and the number of lines that have changed since."""
    measures = tomllib.loads(Path("prove/measures.toml").read_text())
    measured = {}
    for page in sorted(EVALUATION.glob("*.md")):
        raw = EVALUATION / "raw" / f"{page.stem}.json"
        if not raw.exists():
            continue
        if page.stem not in measures["pages"]:
            sys.exit(f"prove/measures.toml does not say what {page.stem} measures: add a row")
        commit = json.loads(raw.read_text())["machine"].get("commit")
        if not commit:
            sys.exit(f"{raw} does not say which commit was measured")
        commit = commit.split()[0].removesuffix("-dirty")
        measured[page.stem] = measures["squashed"].get(commit, commit)
    oldest = git("merge-base", "--octopus", "HEAD", *set(measured.values())).strip()
    changes = history(oldest)
    for part, commit in measured.items():
        prefixes = tuple(f"{folder}/" for folder in folders(measures, part))
        since = ["", *git("rev-list", f"{commit}..HEAD").split()]
        files = (file for one in since for file in changes.get(one, {}).items())
        yield part, commit, sum(lines for path, lines in files if path.startswith(prefixes))


def write(found):
    """Writes the last column of the index."""
    index = EVALUATION / "README.md"
    by_part = {part: (commit, lines) for part, commit, lines in found}
    lines = []
    for line in index.read_text().split("\n"):
        row = re.match(r"\| \[([\w-]+)\]\(", line)
        if row and row[1] in by_part:
            commit, count = by_part[row[1]]
            cells = line.split(" | ")[:3]
            line = " | ".join([*cells[:2], cells[2].removesuffix(" |"), f"{commit}, {count} |"])
        elif line.startswith("| part | what | targets met"):
            line = "| part | what | targets met | commit, lines changed since |"
        elif line.startswith("|---|---|---|"):
            line = "|---|---|---|---|"
        elif line.startswith("The last column: "):
            line = f"The last column: by `make stale` on {date.today()}."
        lines.append(line)
    index.write_text("\n".join(lines))


def main():
    found = sorted(ages(), key=lambda row: -row[2])
    for part, commit, lines in found:
        if lines:
            print(f"{part}: {lines} lines of what it measures have changed since {commit}")
    stale = sum(lines > 0 for _, _, lines in found)
    print(f"{stale} of {len(found)} pages are older than the code that they measure; `make evaluate-PART` makes one anew")
    if "--write" in sys.argv[1:]:
        write(found)


main()
