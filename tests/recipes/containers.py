"""tests/recipes/containers.py: what the stand-ins for Docker and a cluster's node have in common: images as layers over this
machine's files, and containers that run in them by in-root. An overlay has one layer over those files, so who starts
from an image begins with a copy of its layer.

  STANDIN_DIR     where images are kept
  STANDIN_PREFIX  what the pages call /usr/local: where the test has installed cudaspy
  CUDASPY_BUILD   the simulator, which --gpus brings into a container"""
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
IMAGES = os.path.join(os.environ["STANDIN_DIR"], "images")
GPU_LIBRARIES = "/usr/local/nvidia/lib64"
# What the default profile refuses a container without privileges, by Docker's documentation, and reading other processes'
# memory, which older versions refuse.
REFUSED = ("acct,add_key,bpf,clock_adjtime,clock_settime,create_module,delete_module,finit_module,get_mempolicy,init_module,"
           "ioperm,iopl,kcmp,kexec_file_load,kexec_load,keyctl,lookup_dcookie,mbind,mount,move_pages,name_to_handle_at,"
           "nfsservctl,open_by_handle_at,perf_event_open,personality,pivot_root,process_vm_readv,process_vm_writev,ptrace,"
           "query_module,quotactl,reboot,request_key,set_mempolicy,setns,settimeofday,swapon,swapoff,sysfs,_sysctl,umount2,"
           "unshare,uselib,userfaultfd,ustat")

# There is no network: apt-get update would wait for it. What this machine is just installing is not theirs.
NO_SOURCES = ("--hide", "/etc/apt/sources.list.d", "--bind", "/dev/null:/etc/apt/sources.list", "--tmpfs", "/var/lib/dpkg/updates")


def fail(text, status=125):
    print(f"{os.path.basename(sys.argv[0])}: {text}", file=sys.stderr)
    sys.exit(status)


def host(path):
    """Where a path of the pages is on this machine."""
    prefix = os.environ.get("STANDIN_PREFIX", "/usr/local")
    return prefix + path[len("/usr/local"):] if path.startswith("/usr/local/") else path


class Image:
    def __init__(self, name):
        self.folder = os.path.join(IMAGES, name.replace("/", "_").replace(":", "_"))
        self.config = {"env": {}, "entrypoint": [], "cmd": [], "workdir": "/", "user": ""}

    def known(self):
        return os.path.exists(self.folder + "/config.json")

    def load(self):
        with open(self.folder + "/config.json", encoding="utf-8") as file:
            self.config = json.load(file)
        return self

    def save(self):
        with open(self.folder + "/config.json", "w", encoding="utf-8") as file:
            json.dump(self.config, file)


def words(text):
    """CMD and its like: a list in JSON, or a line for a shell."""
    return json.loads(text) if text.startswith("[") else ["/bin/sh", "-c", text]


def make_folders(layer, folder):
    """With the modes that they have below the layer, /tmp's above all."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path)
        below = path[len(layer):]
        os.chmod(path, os.stat(below).st_mode & 0o7777 if os.path.isdir(below) else 0o755)


def begin_from(image, layer):
    subprocess.run(["cp", "-a", image.folder + "/layer", layer], check=True)


def in_root(layer, command, options=(), env=None):
    arguments = [os.path.join(HERE, "in-root"), *options]
    for key, value in (env or {}).items():
        arguments += ["--env", f"{key}={value}"]
    return subprocess.run([*arguments, layer, "--", *command], check=False).returncode


def build(name, dockerfile, context):
    image = Image(name)
    shutil.rmtree(image.folder, ignore_errors=True)
    layer = image.folder + "/layer"
    os.makedirs(image.folder)
    with open(dockerfile, encoding="utf-8") as file:
        lines = file.read().replace("\\\n", " ").splitlines()
    config = image.config
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        what, rest = line.split(None, 1)
        if what == "FROM":
            base = Image(rest.split()[0])
            if base.known():
                config.update(base.load().config)
                begin_from(base, layer)
            else:
                os.makedirs(layer)
        elif what == "COPY":
            *sources, place = [part for part in shlex.split(rest) if not part.startswith("--")]
            mode = [part[len("--chmod="):] for part in shlex.split(rest) if part.startswith("--chmod=")]
            files = [path for source in sources for path in glob.glob(os.path.join(context, source))]
            if not files:
                fail(f"COPY {rest}: there is no such file in {context}")
            for path in files:
                to = layer + os.path.join(config["workdir"], place)
                to = os.path.join(to, os.path.basename(path)) if place.endswith("/") else to
                make_folders(layer, os.path.dirname(to))
                shutil.copy(path, to)
                if mode:
                    os.chmod(to, int(mode[0], 8))
        elif what == "RUN":
            status = in_root(layer, ["/bin/sh", "-c", rest], NO_SOURCES, config["env"])
            if status:
                fail(f"RUN {rest}: status {status}", 77 if status == 77 else 1)
        elif what == "ENV":
            config["env"].update(part.split("=", 1) for part in shlex.split(rest))
        elif what in ("ENTRYPOINT", "CMD"):
            config[what.lower()] = words(rest)
        elif what in ("WORKDIR", "USER"):
            config[what.lower()] = rest
        else:
            fail(f"{what}: not known here")
    image.save()


def run(image, command, *, entrypoint=None, env=None, mounts=(), tmpfs=(), read_only=False, user="", workdir="", gpus=False,
        no_capabilities=False):
    """A container: its exit status. mounts: (source, place, read-only)."""
    image = Image(image)
    if not image.known():
        fail(f"no image {image.folder}")
    config = image.load().config
    options = ["--refuse", REFUSED, "--workdir", workdir or config["workdir"], "--tmpfs", "/tmp" if not read_only else "/run"]
    variables = dict(config["env"])
    if gpus:
        options += ["--bind", f"{os.environ['CUDASPY_BUILD']}/sim/lib:{GPU_LIBRARIES}:ro"]
        variables["LD_LIBRARY_PATH"] = GPU_LIBRARIES
        variables.update((key, value) for key, value in os.environ.items() if key.startswith("SPYSIM_"))
    variables.update(env or {})
    if read_only:
        options += ["--read-only", "--hide", "/tmp"]
    for source, place, only_read in mounts:
        options += ["--bind", f"{os.path.abspath(host(source))}:{place}" + (":ro" if only_read else "")]
    for place in tmpfs:
        options += ["--tmpfs", place]
    user = user or config["user"]
    if user or no_capabilities:
        user = user or "0:0"
        options += ["--user", user if ":" in user else f"{user}:{user}"]
    argv = [*(config["entrypoint"] if entrypoint is None else entrypoint), *command]
    if not command and entrypoint is None:
        argv += config["cmd"]
    # A layer of the container's own, which is gone with it.
    layer = os.path.join(os.environ["STANDIN_DIR"], f"container-{os.getpid()}")
    begin_from(image, layer)
    try:
        return in_root(layer, argv, options, variables)
    finally:
        for left in glob.glob(layer + "*"):
            shutil.rmtree(left, ignore_errors=True)
