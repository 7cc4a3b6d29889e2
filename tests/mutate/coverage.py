# tests/mutate/coverage.py: which tests execute which lines. Each test is run once in a build whose basic blocks
# leave marks (cover.c), and what it marked is kept in BUILD/mutate/coverage/, with the sources of that time. A test
# that changed, or is new, is measured again; lines of sources that changed are found by comparing the texts.
import bisect
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess

import operators
from tree import MARKS_BYTES, read

LONGEST_S = 75  # a test that takes longer is not for mutants
LIBRARY = "libanalyzer.so"  # of the analyzer's unit tests
FAILED_S = 30  # what one may take that did not come to its end in the measured build


def digest(text):
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


class Module:
    """A library or program of the measured build: the lines of each of its marks."""

    def __init__(self, tree, path):
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True,
                              stdout=subprocess.PIPE).stdout.decode(errors="replace")
        # A mark is a return address: the instruction behind the call.
        self.marks = [int(m, 16) for m in
                      re.findall(r"call +[0-9a-f]+ <__sanitizer_cov_trace_pc>\n +([0-9a-f]+):", text)]
        asked = "".join("%x\n" % (mark - 1) for mark in self.marks)
        answers = subprocess.run(["addr2line", "-a", "-i", "-e", path], input=asked.encode(), check=True,
                                 stdout=subprocess.PIPE).stdout.decode(errors="replace")
        self.lines = {}
        lines = None
        for line in answers.splitlines():
            if line.startswith("0x"):
                lines = self.lines.setdefault(int(line, 16) + 1, [])
                continue
            # An object that ccache has may be of another clone's copy.
            where = re.match(r"/.*/mutate/tree/((?:shim|analyzer|include)/.*):(\d+)", os.path.normpath(line))
            if where:
                lines.append((where[1], int(where[2])))

    def executed(self, marked):
        result = {}
        for mark in self.marks:
            if mark < len(marked) and marked[mark]:
                for path, line in self.lines[mark]:
                    result.setdefault(path, set()).add(line)
        return result

    def instrumented(self):
        result = {}
        for lines in self.lines.values():
            for path, line in lines:
                result.setdefault(path, set()).add(line)
        return result


def merge(into, more):
    for path, lines in more.items():
        into.setdefault(path, set()).update(lines)


class Coverage:
    def __init__(self, tree, folder):
        self.tree, self.folder = tree, folder
        os.makedirs(folder, exist_ok=True)
        self.tests = {}
        self.map = {}

    def load(self, again=False, stale=False):
        """Measures what is missing, then reads it all in."""
        tests = self.tree.tests()
        wanted = {name: self.of_test(name, kind) for name, kind in tests.items()}
        missing = [name for name in tests if again or self.known(name) != wanted[name] and
                   not (stale and self.known(name))]
        if missing:
            self.measure(missing, tests, wanted)
        for name in tests:
            with open(self.file(name), encoding="ascii") as file:
                self.tests[name] = dict(json.load(file), kind=tests[name])
            if self.tests[name]["status"] not in (0, 77):
                self.tests[name]["seconds"] = max(self.tests[name]["seconds"], FAILED_S)

    def file(self, name):
        return os.path.join(self.folder, name + ".json")

    def known(self, name):
        try:
            with open(self.file(name), encoding="ascii") as file:
                return json.load(file)["test"]
        except (OSError, ValueError, KeyError):
            return None

    def of_test(self, name, kind):
        return digest(read(os.path.join(self.tree.path, "tests", kind, name + (".c" if kind == "unit" else ".sh"))))

    def snapshot(self):
        listed = [os.path.join(folder, name) for top in ("shim", "analyzer", "include")
                  for folder, _, files in os.walk(os.path.join(self.tree.path, top)) for name in sorted(files)]
        texts = {os.path.relpath(path, self.tree.path): read(path) for path in listed if path.endswith((".c", ".h"))}
        name = digest(json.dumps(texts, sort_keys=True))
        for path, text in texts.items():
            copy = os.path.join(self.folder, name, path)
            if not os.path.exists(copy):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                with open(copy, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(text)
        return name

    def measure(self, names, tests, wanted):
        self.tree.say("measuring which lines %d tests execute" % len(names))
        self.tree.make_measured()
        snapshot = self.snapshot()
        build = os.path.basename(self.tree.covered)
        both = {name: Module(self.tree, os.path.join(self.tree.covered, name)) for name in ("libcudaspy.so", "cudaspy")}
        library = {LIBRARY: Module(self.tree, os.path.join(self.tree.covered, "tests/unit", LIBRARY))}
        instrumented = {}
        for module in both.values():
            merge(instrumented, module.instrumented())
        with open(os.path.join(self.folder, snapshot, "instrumented.json"), "w", encoding="ascii") as file:
            json.dump({path: sorted(lines) for path, lines in instrumented.items()}, file)
        marks = os.path.join(self.folder, "marks")
        for name in names:
            modules = dict(both)
            if name.startswith("test_analyzer_"):
                modules.update(library)
            elif tests[name] == "unit":
                modules[name] = Module(self.tree, os.path.join(self.tree.covered, "tests/unit", name))
            lines = {}
            # What goes wrong in this slow build goes on from where it stopped, perhaps, the second time.
            for _ in range(2):
                shutil.rmtree(marks, ignore_errors=True)
                os.makedirs(marks)
                for module in modules:
                    with open(os.path.join(marks, module), "wb") as file:
                        file.truncate(MARKS_BYTES)
                    os.chmod(os.path.join(marks, module), 0o666)
                status, seconds, output = self.tree.run(name, tests[name], build, 2 * LONGEST_S, marks)
                for module, of in modules.items():
                    with open(os.path.join(marks, module), "rb") as file:
                        merge(lines, of.executed(file.read()))
                if status in (0, 77, 124):
                    break
            self.tree.say("%6.1f s  %s%s" % (seconds, name, "" if status in (0, 77) else
                                             ": failed here: " + output.strip().splitlines()[-1][:100] if output.strip() else ""))
            with open(self.file(name), "w", encoding="ascii") as file:
                json.dump({"test": wanted[name], "snapshot": snapshot, "seconds": round(seconds, 2), "status": status,
                           "lines": {path: sorted(at) for path, at in lines.items()}}, file)
        shutil.rmtree(marks, ignore_errors=True)

    def translation(self, snapshot, path):
        """From today's lines to those of the snapshot: None where the file is the same, else (a list, its blocks)."""
        key = (snapshot, path)
        if key not in self.map:
            old_path, self.map[key] = os.path.join(self.folder, snapshot, path), []
            if os.path.exists(old_path):
                old, new = read(old_path), read(os.path.join(self.tree.path, path))
                at = None
                if old != new:
                    at, last = [0], 0
                    blocks = {}
                    for a, b, n in difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(),
                                                           autojunk=False).get_matching_blocks():
                        blocks.update({b + i + 1: a + i + 1 for i in range(n)})
                    for line in range(1, len(new.splitlines()) + 1):
                        last = blocks.get(line, last)
                        at.append(last)
                self.map[key] = self.governing(snapshot, path, read(old_path)), at
        return self.map[key]

    def governing(self, snapshot, path, text):
        """For each line those that have marks of its basic blocks: the last one before it in its function, and itself;
        where that is compiled into others without a mark of its own, the first one behind; 0: there is none, any of
        the file's."""
        with open(os.path.join(self.folder, snapshot, "instrumented.json"), encoding="ascii") as file:
            marked = json.load(file).get(path, [])
        result = {}
        for first, last in operators.functions(text):
            # A function's first mark is in the line of its name or brace.
            low = bisect.bisect_left(marked, first - 4)
            for line in range(first, last + 1):
                at = bisect.bisect_left(marked, line)
                before = {marked[at - 1]} if at > low else set()
                if at < len(marked) and (marked[at] == line or not before and marked[at] <= last):
                    before.add(marked[at])
                result[line] = before or {0}
        return result

    def of(self, path, line):
        """The names of the tests that execute a line, those first that say most about it soonest."""
        found = []
        for name, test in self.tests.items():
            translation = self.translation(test["snapshot"], path)
            if not translation or path not in test["lines"]:
                continue
            marks, at = translation
            old = line if at is None else at[line] if line < len(at) else 0
            lines = test.setdefault("sets", {}).setdefault(path, set(test["lines"][path]))
            wanted = marks.get(old, set())
            if lines and 0 in wanted or lines & wanted:
                found.append(name)
        # Who sees much of the file looks at it closely.
        return sorted(found, key=lambda name: (self.tests[name]["seconds"] + 1) /
                      len(self.tests[name]["sets"][path]) ** 2)
