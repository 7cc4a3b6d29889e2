# tests/mutate/tree.py: the copy of the working tree in which mutants are built, and how a test is run in it. What
# is there belongs to the mutants: nothing in here writes into the working tree.
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
DISK_LEAST = 4 << 30
MEMORY_LEAST = 1 << 30
MARKS_BYTES = 8 << 20  # COVER_BYTES in cover.c


def sources(root):
    """What git would not ignore, as paths relative to the root."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, check=True,
                            stdout=subprocess.PIPE).stdout.decode().split("\0")
    return sorted(path for path in set(listed) if path and os.path.isfile(os.path.join(root, path)))


def read(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def same_file(a, b):
    with open(a, "rb") as x, open(b, "rb") as y:
        return x.read() == y.read()


class Tree:
    def __init__(self, root, path, say):
        self.root, self.path, self.say = root, path, say
        self.covered = os.path.join(path, "build-cover")
        self.build = os.path.join(path, "build")
        # Orphans come to us, so that none outlives its test.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def copy(self):
        """Brings the copy up to date; what has not changed keeps its time, so that make leaves it alone."""
        listed = sources(self.root)
        for path in listed:
            a, b = os.path.join(self.root, path), os.path.join(self.path, path)
            if os.path.exists(b) and same_file(a, b):
                continue
            os.makedirs(os.path.dirname(b), exist_ok=True)
            shutil.copy(a, b)
        for folder, folders, files in os.walk(self.path):
            if folder == self.path:
                folders[:] = [f for f in folders if not f.startswith("build") and f != "tmp"]
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), self.path)
                if path not in listed:
                    os.unlink(os.path.join(folder, name))
        os.makedirs(os.path.join(self.path, "tmp"), exist_ok=True)
        return listed

    def make(self, *args, build="build", check=True):
        done = subprocess.run(["make", "-s", "-j2", "BUILD=" + build, *args], cwd=self.path, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if check and done.returncode:
            raise SystemExit("mutate: no build of the copy: " + done.stdout.decode(errors="replace")[-2000:])
        return done.returncode == 0

    def make_measured(self):
        self.make("CC=" + os.path.join(self.path, "tests/mutate/cover-cc"), "DEBUG=1", "test-build", build="build-cover")

    def make_all(self):
        self.make("test-build")

    def tests(self):
        """Their names, each with the program relative to the tree."""
        units = [n[:-2] for n in os.listdir(self.path + "/tests/unit") if n.startswith("test_") and n.endswith(".c")]
        shells = [n for n in os.listdir(self.path + "/tests/e2e") if n.startswith("test_") and n.endswith(".sh")]
        both = {name: "unit" for name in units}
        both.update({name[:-3]: "e2e" for name in shells})
        return dict(sorted(both.items()))

    def run(self, name, kind, build, seconds, marks=None):
        """Runs a test; (status, seconds, output). Status 124: it ran too long."""
        program = "%s/tests/unit/%s" % (build, name) if kind == "unit" else "tests/e2e/%s.sh" % name
        env = dict(os.environ, BUILD=build, CUDASPY_BUILD=os.path.join(self.path, build),
                   TMPDIR=os.path.join(self.path, "tmp"))
        if marks:
            env["MUTATE_COVER"] = marks
        begun = time.monotonic()
        log = os.path.join(self.path, "tmp", "log")
        with open(log, "wb") as out:
            child = subprocess.Popen(["timeout", "-k", "5", str(int(seconds)), program], cwd=self.path, env=env,
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
            try:
                status = self.wait(child, begun + seconds + 10)
            finally:  # also if it is we who are to end
                took = time.monotonic() - begun
                self.reap()
        with open(log, "rb") as file:
            output = file.read()[-4000:].decode(errors="replace")
        for entry in os.scandir(os.path.join(self.path, "tmp")):
            if entry.is_dir(follow_symlinks=False):
                subprocess.run(["chmod", "-R", "u+rwX", entry.path], stderr=subprocess.DEVNULL)
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
        return status, took, output

    @staticmethod
    def wait(child, until):
        """A mutant may want all of the memory or the disk: it gets neither."""
        while True:
            try:
                return child.wait(0.2)
            except subprocess.TimeoutExpired:
                pass
            with open("/proc/meminfo", encoding="ascii") as file:
                free = int(next(line for line in file if line.startswith("MemAvailable")).split()[1]) << 10
            if time.monotonic() > until or free < MEMORY_LEAST or shutil.disk_usage("/tmp").free < DISK_LEAST:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return 124

    @staticmethod
    def reap():
        """Ends what the test has left running."""
        me = os.getpid()
        for _ in range(20):
            with open("/proc/%d/task/%d/children" % (me, me), encoding="ascii") as file:
                left = file.read().split()
            for pid in left:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(0.05)
