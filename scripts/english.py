#!/usr/bin/env python3
"""Checks the English of doc comments and help texts by the rules in CONTRIBUTING.md that a script can check.

usage: english.py [FOLDER...]
"""

import re
import subprocess
import sys

MAX_WORDS = 20
# A comment of so few words only repeats a name.
MIN_WORDS = 4
# Older comments that are better than the rules, and libraries whose every item has a comment for outsiders.
EXEMPT = ("crates/act/gate/rounds/", "crates/fleet/clocks/")
DOCUMENTED = tuple(
    f"crates/{crate}/" for crate in ("base/stats", "bench/disk", "decide/control", "see/counters", "see/events")
)
RELATIVE = re.compile(r"(Wh(at|ich|o|om|ose|ere|en)|How|That|Those|Such|Of which|In which|By which)\b")
VAGUE = re.compile(r"\b(so many|such(?! as\b)|as it is|which are to)\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.:;!?])\s+")


def blocks(path):
    """Yields the first line's number, the lines, and the line of code below each doc comment."""
    kind, start, lines = None, 0, []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        found = re.match(r"\s*(///|//!)(?: (.*)|$)", line)
        if found and found[1] == kind:
            lines.append(found[2] or "")
            continue
        if lines:
            yield start, lines, line.strip()
        kind, start, lines = (found[1], number, [found[2] or ""]) if found else (None, 0, [])
    if lines:
        yield start, lines, ""


def sentences(lines):
    """Yields the sentences of a comment without its code, tables and headings."""
    paragraphs, is_code = [[]], False
    for line in lines:
        if line.startswith("```"):
            is_code = not is_code
        elif is_code or line.startswith(("|", "#", "    ")) or not line:
            paragraphs.append([])
        elif item := re.match(r"\s*(?:[-*]|\d+\.) (.*)", line):
            paragraphs.append([item[1]])
        else:
            paragraphs[-1].append(line)
    for paragraph in paragraphs:
        yield from filter(None, SENTENCE_END.split(" ".join(paragraph)))


def faults(path):
    for start, lines, code in blocks(path):
        all_sentences = list(sentences(lines))
        words = sum(len(sentence.split()) for sentence in all_sentences)
        is_option = code.startswith(("#[arg", "#[command", "#[value"))
        if 0 < words < MIN_WORDS and not is_option and not path.startswith(DOCUMENTED):
            yield start, "repeats a name", all_sentences[0]
        if all_sentences and RELATIVE.match(all_sentences[0]):
            yield start, "begins with a relative", all_sentences[0]
        for sentence in all_sentences:
            if len(sentence.split()) > MAX_WORDS:
                yield start, f"{len(sentence.split())} words", sentence
            if VAGUE.search(sentence):
                yield start, "vague", sentence


def main():
    listed = subprocess.run(["git", "ls-files", "--", *(sys.argv[1:] or ["*.rs"])], stdout=subprocess.PIPE, text=True, check=True)
    paths = [path for path in listed.stdout.split() if path.endswith(".rs") and not path.startswith(EXEMPT)]
    found = [(path, *fault) for path in paths for fault in faults(path)]
    for path, line, rule, sentence in found:
        print(f"{path}:{line}: {rule}: {sentence}")
    if found:
        sys.exit(f"{len(found)} comments to rewrite, see CONTRIBUTING.md")


main()
