#!/usr/bin/env python3
"""Compares all targets of the evaluation with those of a commit: docs/evaluation/targets.md and raw/targets.csv.

usage: targets.py [COMMIT]    default: the commit that was audited

Also writes how many targets each page meets into the index, docs/evaluation/README.md.
"""

import csv
import difflib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

AUDITED = "4072cdf3"
EVALUATION = Path("docs/evaluation")
LINE = re.compile(r"- target: (.*) -> (met|\*\*not met\*\*|not measured)(?: \((.*)\))?$")
FACT = re.compile(r"- fact: (.*): (.*?)$")
MEASURED = re.compile(r"Measured (\S+)")

SAME, ANEW, SLOWER, CHANCE = "same", "measured anew", "criterion: not slower", "criterion: no allowance for chance"
CHOSEN = "criterion: chosen and judged apart"
PLAN, WORDS, KEPT, GONE, NEW = "a fact: cannot fail", "words", "not kept in its raw data", "part gone", "new"
REASONS = {
    SAME: "same words, same run",
    ANEW: "same words, another run",
    SLOWER: '"not slower" asks for a ratio of 0.98 and a lower end of the interval of 0.95; before, of mere chance',
    CHANCE: "95 % of the counts are asked for; before, what one count in 20 falls to by chance was enough",
    CHOSEN: "the best is chosen on one part of the seeds or rounds and judged on the other; before, on the same",
    WORDS: "the words say what is computed, or name the subject in another way",
    PLAN: "the plan decides the figure, no measurement: it is shown as a fact",
    KEPT: "the raw data do not keep the figure any more, or never did",
    GONE: "the part is gone",
    NEW: "there was no such target",
}
# Words before that have others now: pattern, words of today (a pattern, too), and why.
RULES = [
    (r"(.*): not slower: upper end of the gain's interval >= 0\.98", r"\1: not slower", SLOWER),
    (r"of all cells the lowest end of a ratio's interval .*", r".*not slower.*", SLOWER),
    (r"(.*): 95 % of the truths are within .*", r"\1: truths within their intervals", CHANCE),
    (r"(.*): 95 % close within the interval", r"\1: stacks that close within", CHANCE),
    (r"(.*: both auto over (?:its better|the best fixed) \w+), at any speed.*", r"\1, chosen and judged", CHOSEN),
    (r"(reads: batch rate|fsyncs: mean|fsyncs: 99th percentile) \(.*", r"\1 ", CHOSEN),
    (r".*: every finding has figures", r".*: findings that have figures", PLAN),
    (r"speeds >= 7", r".*speeds.*", PLAN),
    (r"the fastest speed over the slowest .*", r".*fastest speed over the slowest.*", PLAN),
    (r"speeds over a factor of 4, .*", r".*speeds over a factor of 4", PLAN),
    (r"each server on all targets.*|file systems with three targets.*", r".*safe targets, and repeats.*", PLAN),
    (r"repeats whose databases were all sound.*", r"repeats whose databases were all sound.*", PLAN),
    (r"at least \d+ (cycles|cuts|kills)( with the module)?", r"\1\2", PLAN),
    (r"(.*: files/s, fast_commit \+ gate over fast_commit), >= 0\.98", r"\1: not slower", SLOWER),
    (r"addresses are random \(ASLR\)", r"addresses are random.*", PLAN),
    (r"at least 400 cuts and 400000 acknowledged fsyncs", r"acknowledged fsyncs in all cuts >= 400000", WORDS),
    (r"at least 1000 failed requests", r"failed requests >= 1000", WORDS),
    (r"10 kills met the sweep at work|no shared memory is left after one more run", None, KEPT),
]
# Likeness of words that still are of one target, and of words with the same figure.
MIN_LIKENESS = 0.75
MIN_LIKENESS_BY_FIGURE = 0.3


class Target(NamedTuple):
    words: str
    verdict: str
    figure: str


class Row(NamedTuple):
    page: str
    before: Target
    after: Target
    why: str


NOTHING = Target("", "", "")


def git(*words):
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def lines(text, pattern):
    return [match for match in map(pattern.match, text.splitlines()) if match]


def targets(text):
    return [Target(match[1], match[2].strip("*"), match[3] or "") for match in lines(text, LINE)]


def facts(text):
    return [Target(match[1], "fact", match[2]) for match in lines(text, FACT)]


def measured(text):
    found = MEASURED.search(text)
    return found and found[1]


def bare(words):
    """Returns words without what a run or a format changes: zeros at a figure's end, figures in parentheses."""
    words = re.sub(r"(\d\.\d*?)0+\b", r"\1", words)
    return re.sub(r"\s*\([^()]*\d[^()]*\)|\.(?!\d)|,(?= [<>])", "", words)


def by_rule(target, after):
    """Returns the target of today, if one is left, and the reason, by the first rule that fits; else nothing."""
    for before, now, why in RULES:
        found = re.fullmatch(before, target.words)
        if not found:
            continue
        if now is None:
            return NOTHING, why
        parts = [re.escape(part or "") for part in (found[0], *found.groups())]
        wanted = re.sub(r"\\(\d)", lambda at: parts[int(at[1])], now)
        return next((one for one in after if re.match(wanted, one.words)), NOTHING), why
    return None


def most_like(target, after):
    """Returns the target of today with the likest words, rather one whose first figure is the same."""

    def likeness(one):
        has_figure = re.findall(r"[\d.]+", target.figure)[:1] == re.findall(r"[\d.]+", one.figure)[:1]
        ratio = difflib.SequenceMatcher(None, target.words, one.words).ratio()
        least = MIN_LIKENESS_BY_FIGURE if has_figure else MIN_LIKENESS
        return ratio >= least, has_figure, ratio

    best = max(after, key=likeness, default=NOTHING)
    return best if best != NOTHING and likeness(best)[0] else NOTHING


def compare(page, before, after):
    """Yields a row for each target of either text of a page."""
    is_same_run = measured(before) == measured(after)
    left = targets(after)
    old = targets(before)

    def same(target, form):
        return next((one for one in left if form(one.words) == form(target.words)), None)

    def row(target, now, why):
        if now in left:
            left.remove(now)
        return Row(page, target, now, why)

    unmatched = []
    for target in old:
        ruled = by_rule(target, left + facts(after))
        if now := same(target, bare if is_same_run else str):
            yield row(target, now, SAME if is_same_run else ANEW)
        elif not after:
            yield row(target, NOTHING, GONE)
        elif ruled:
            yield row(target, *ruled)
        elif now := same(target, bare):
            yield row(target, now, ANEW)
        else:
            unmatched.append(target)
    for target in unmatched:
        now = most_like(target, left)
        if now == NOTHING:
            print(f"{page}: '{target.words}' is gone: RULES may say why", file=sys.stderr)
        yield row(target, now, WORDS)
    for target in list(left):
        yield row(NOTHING, target, NEW)


def runs(page):
    """Returns how many targets each run that was published of a page met, the oldest first."""
    path = f"{EVALUATION}/{page}.md"
    log = git("log", "--follow", "--diff-filter=d", "--format=@%H", "--name-only", "--", path).split()
    found = {}
    commit = None
    for word in log:
        if word.startswith("@"):
            commit = word[1:]
            continue
        text = git("show", f"{commit}:{word}")
        # The oldest pages' lines have no "target: ".
        all_targets = targets(text.replace("\n- ", "\n- target: ").replace("target: target: ", "target: "))
        if all_targets:
            met = sum(target.verdict == "met" for target in all_targets)
            found[measured(text)] = found.get(measured(text)) or f"{met}/{len(all_targets)}"
    return list(reversed(found.values()))


def table(heads, words, rows):
    """Formats a table whose first columns, as many as `words`, are words."""
    line = lambda cells: f"| {' | '.join(map(str, cells))} |\n"
    rule = ["---"] * words + ["---:"] * (len(heads) - words)
    return line(heads) + f"|{'|'.join(rule)}|\n" + "".join(map(line, rows))


def count(all_targets):
    met = sum(target.verdict == "met" for target in all_targets)
    known = sum(target.verdict in ("met", "not met") for target in all_targets)
    return met, known, len(all_targets)


def page_of(commit, rows, names):
    before = [row.before for row in rows if row.before.words]
    after = [row.after for row in rows if row.after.words and row.after.verdict != "fact"]
    (old_met, _, old_all), (met, known, all_now) = count(before), count(after)
    whys = Counter(row.why for row in rows)
    verdicts = Counter((row.why, row.before.verdict, row.after.verdict) for row in rows)

    def of_reason(why):
        now = lambda was, verdict: verdicts[why, was, verdict]
        lost, gained = now("met", "not met"), now("not met", "met")
        return why, REASONS[why], whys[why], lost, gained

    def of_page(name):
        mine = [row for row in rows if row.page == name]
        was = count([row.before for row in mine if row.before.words])
        now = count([row.after for row in mine if row.after.words and row.after.verdict != "fact"])
        kinds = Counter(row.why for row in mine if row.why not in (SAME, ANEW))
        changed = "; ".join(f"{number} {why}" for why, number in kinds.items())
        is_page = (EVALUATION / f"{name}.md").exists()
        link = f"[{name}]({name}.md)" if is_page else name
        return link, changed or "-", ", ".join(runs(name)), f"{was[0]}/{was[2]}", f"{now[0]}/{now[2]}"

    of_reasons = table(
        ["reason", "what it means", "targets", "met before, not now", "not met before, now met"],
        2,
        [of_reason(why) for why in REASONS if whys[why]],
    )
    of_pages = table(
        ["page", "changed", "runs that were published", "met before", "met now"], 3, map(of_page, names)
    )
    return f"""# All targets, before and now

Commit {commit} had {old_all} targets, and its pages printed {old_met} as met. Now there are {all_now}: **met {met}**,
not met {known - met}, not measured {all_now - known}. Every target, with its words, its verdict and its figure before
and now, and why it changed, is in [raw/targets.csv](raw/targets.csv).

## Why targets changed

{of_reasons}
## By page

Met of all targets. The last column has each run of the page that was published, the oldest first; between two runs
the code may have changed. Lines of history are at the end of each page.

{of_pages}
Generated by `scripts/targets.py {commit}`.
"""


def summary(text):
    """Returns how many targets a page meets; if it has none, the verdicts of its findings."""
    met, known, all_now = count(targets(text))
    if known:
        return f"{met} of {known}" + ("" if known == all_now else " measured")
    verdicts = Counter()
    for found in re.findall(r"\| verdict \|\n\|[-|:]+\n((?:\|.*\n)+)", text):
        verdicts.update(row.rstrip(" |").split(" | ")[-1].replace("*", "") for row in found.splitlines())
    return ", ".join(["no targets", *(f"{verdict}: {number}" for verdict, number in sorted(verdicts.items()))])


def write_index():
    """Writes the column of met targets of the index."""
    index = EVALUATION / "README.md"

    def line(text):
        row = re.match(r"(\| \[([\w-]+)\]\([^|]* \| [^|]* \| )[^|]*( \|.*)", text)
        page = EVALUATION / f"{row[2]}.md" if row else None
        return f"{row[1]}{summary(page.read_text())}{row[3]}" if page and page.exists() else text

    index.write_text("\n".join(map(line, index.read_text().split("\n"))))


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else AUDITED
    paths = git("ls-tree", "--name-only", commit, f"{EVALUATION}/").split()
    old = {Path(path).stem: git("show", f"{commit}:{path}") for path in paths if path.endswith(".md")}
    new = {page.stem: page.read_text() for page in EVALUATION.glob("*.md")}
    rows, names = [], []
    for name in sorted(old | new):
        found = list(compare(name, old.get(name, ""), new.get(name, "")))
        rows += found
        names += [name] if found else []
    with open(EVALUATION / "raw" / "targets.csv", "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["page", "before", "verdict", "figure", "now", "verdict", "figure", "why"])
        out.writerows([row.page, *row.before, *row.after, row.why] for row in rows)
    (EVALUATION / "targets.md").write_text(page_of(commit, rows, names))
    write_index()


main()
