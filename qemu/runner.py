# SPDX-License-Identifier: GPL-2.0
"""Boot a guest, run one command in it as root, return its exit status.

Exit status: the command's own; 1 if it succeeded but the kernel's log holds a
splat; 124 after the deadline; 125 if the guest or the module failed.

The kernel has the serial port for itself and the command a virtio port, so
that a test which prints "WARNING" is not mistaken for the kernel. Both are
written by QEMU to files under build/log and copied from there to the terminal;
of the kernel's log the terminal shows what comes after the boot, and splats.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILD = TOP / "build"
GUEST = TOP / "qemu" / "guest"
LOG = BUILD / "log"

# What must not be in a kernel's log. Not "Call Trace": fault injection prints it too.
SPLAT = re.compile(
    r"WARNING:|BUG[: ]|Oops|KASAN|UBSAN|Kernel panic|general protection fault"
    r"|INFO: (possible|trying to register|task|rcu|suspicious)|blocked for more than|blocked in I/O wait"
    r"|possible (circular|recursive) locking|inconsistent lock state|lock order|lock inversion|Invalid wait context"
    r"|bad unlock balance|held lock freed|suspicious RCU usage"
    r"|rcu.*(detected|self-detected|starved)|(soft|hard) lockup|hard LOCKUP|lockup - pool"
    r"|unreferenced object|new suspected memory leaks|Objects remaining|still has objects|in use on .*shutdown"
    r"|refcount_t:|corruption|cannot create duplicate filename|busy inodes|Busy inodes|usercopy: Kernel memory"
)
# Taint bits that stand for a splat, should its line have been lost:
# machine check, bad page, oops, warning, lockup.
TAINT = {4: "machine check", 5: "bad page", 7: "oops", 9: "warning", 14: "soft lockup"}


def say(text):
    print(f"== {text}", file=sys.stderr, flush=True)


def die(text, status=125):
    print(f"run: error: {text}", file=sys.stderr, flush=True)
    sys.exit(status)


def options():
    parser = argparse.ArgumentParser(
        prog="run", usage="run [options] -- COMMAND... | run [options] --shell", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--kernel", choices=["stock", "debug"], default="stock")
    parser.add_argument("--deadline", type=int, default=300, metavar="SECONDS", help="kill the guest after this time (300)")
    parser.add_argument("--module", action="append", default=[], type=pathlib.Path, metavar="FILE.ko",
                        help="insmod before the command, rmmod after it; also at /job/module/")
    parser.add_argument("--parameters", default="", metavar="NAME=VALUE...", help="of the module, for insmod")
    parser.add_argument("--share", action="append", default=[], metavar="DIR=GUESTDIR", help="a copy of DIR in the guest")
    parser.add_argument("--icount", action="store_true", help="one CPU, one guest instruction is one nanosecond: repeatable figures")
    parser.add_argument("--name", help="the logs' name, build/log/NAME.log and NAME.kernel.log (run-DATE-PID)")
    parser.add_argument("--shell", action="store_true", help="a root prompt instead of a command; no deadline")
    parser.add_argument("command", nargs="*")
    args = parser.parse_args()
    if bool(args.command) == args.shell:
        parser.error("either a command after -- or --shell")
    args.share = [pair.rpartition("=")[::2] for pair in args.share]
    for directory, target in args.share:
        if not os.path.isdir(directory) or not target.startswith("/"):
            die(f"--share {directory}={target}: needs a directory (below the project or /tmp) and an absolute path", 2)
    for module in args.module:
        if not module.is_file():
            die(f"--module {module}: no such file", 2)
    args.name = args.name or time.strftime("run-%Y%m%d-%H%M%S-") + str(os.getpid())
    return args


def kernel_env(kernel):
    text = (BUILD / "kernel" / f"{kernel}.env").read_text()
    return dict(word.split("=", 1) for word in shlex.split(text))


def job_disk(args, token, where):
    """Make the disk that carries command, modules and shares; return its path."""
    job = where / "job"
    (job / "module").mkdir(parents=True)
    (job / "share").mkdir()
    shutil.copy(GUEST / "start", job / "start")
    (job / "start").chmod(0o755)
    for module in args.module:
        shutil.copy(module, job / "module")
    for number, (directory, _) in enumerate(args.share):
        subprocess.run(["cp", "-a", "--reflink=auto", f"{directory}/.", job / "share" / str(number)], check=True)
    (job / "shares").write_text("".join(target + "\n" for _, target in args.share))
    (job / "command").write_text("exec " + shlex.join(args.command) + "\n")
    size = os.get_terminal_size() if args.shell and sys.stdout.isatty() else os.terminal_size((80, 24))
    (job / "terminal").write_text(f"{size.lines} {size.columns}\n")
    # By the clock, which the guest's follows except under icount.
    watchdog = 0 if args.shell or args.icount else int(time.time()) + args.deadline - 10
    (job / "config").write_text(f"token={token}\nkind={'shell' if args.shell else 'job'}\ndeadline={watchdog}\n"
                               f"parameters={shlex.quote(args.parameters)}\n")
    kib = sum(1 + f.lstat().st_size // 1024 for f in job.rglob("*"))
    disk = where / "job.ext4"
    subprocess.run(["fakeroot", "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", job, disk,
                    f"{kib * 5 // 4 + 32 * 1024}k"], check=True)
    shutil.rmtree(job)
    return disk


def accelerator(kvm):
    if kvm:
        return ["-accel", "kvm", "-cpu", "host", "-smp", "2"]
    # Nehalem has no ERMS/FSRM: with them the kernel copies by `rep movsb`, which
    # TCG runs a byte at a time.
    return ["-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", "2"]


ICOUNT = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "Nehalem", "-smp", "1"]


def qemu_command(kernel, env, disk, accel, log, shell):
    # An emulated timer may be late on a busy host; the kernel would take it for a broken one and panic.
    append = "console=ttyS0 loglevel=8 oops=panic panic=-1 no_timer_check sysctl.kernel.hung_task_timeout_secs=60"
    memory = "3G" if kernel == "debug" else "2G"
    command = [
        "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", *accel, "-m", memory,
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", env["VMLINUZ"], "-initrd", BUILD / "guest" / f"initramfs-{kernel}" / "cpio", "-append", append,
        "-chardev", f"file,id=kernel,path={log}.kernel.log", "-serial", "chardev:kernel",
        "-drive", f"file={BUILD}/guest/root/root.ext4,if=none,id=root,format=raw,snapshot=on,cache=unsafe",
        "-device", "virtio-blk-pci,drive=root,serial=root",
        "-drive", f"file={disk},if=none,id=job,format=raw,cache=unsafe",
        "-device", "virtio-blk-pci,drive=job,serial=job",
        "-device", "virtio-serial-pci", "-chardev", f"file,id=job,path={log}.log",
        "-device", "virtserialport,chardev=job,name=job",
    ]
    if shell:
        command += ["-chardev", "stdio,id=tty,signal=off", "-device", "virtconsole,chardev=tty"]
    return command


class Tail:
    """What was appended to a file since the last look."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.text = b""

    def more(self):
        new = self.file.read()
        self.text += new
        return new


class KernelLog(Tail):
    """Collects splats; shows lines from the start of the job on."""

    def __init__(self, path, token):
        super().__init__(path)
        self.start = f"guest: job starts {token}"
        self.end = f"guest: job ends {token}"
        self.started = self.ended = False
        self.rest = ""
        self.splats = []

    def poll(self, show):
        lines = (self.rest + self.more().decode(errors="replace")).split("\n")
        self.rest = lines.pop()
        for line in lines:
            line = line.rstrip("\r")
            splat = SPLAT.search(line)
            if splat:
                self.splats.append(line)
            if self.start in line:
                self.started = True
            elif self.end in line:
                self.ended = True
            elif show and (self.started or splat):
                print(line, file=sys.stderr, flush=True)


class JobLog(Tail):
    """Shows the job's output up to the token, which status and taint follow."""

    def __init__(self, path, token):
        super().__init__(path)
        self.mark = b"\0" + token.encode() + b" "
        self.shown = 0
        self.status = self.taint = None

    def poll(self, show):
        self.more()
        until = self.text.find(self.mark, max(0, self.shown - len(self.mark)))
        if until >= 0:
            end = re.match(rb"(\d+) (\d+)\r?\n", self.text[until + len(self.mark):])
            if end:
                self.status, self.taint = int(end[1]), int(end[2])
        else:
            # What may be the beginning of the mark waits until it is whole.
            until = self.text.find(b"\0", max(self.shown, len(self.text) - len(self.mark)))
            until = len(self.text) if until < 0 else until
        if show and until > self.shown:
            sys.stdout.buffer.write(self.text[self.shown:until])
            sys.stdout.buffer.flush()
        self.shown = max(self.shown, until)


@contextlib.contextmanager
def locked(directory, flags=0):
    fd = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | flags)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def scratch():
    """A directory for one run; also clears those of runs that were killed."""
    with contextlib.ExitStack() as stack:
        with locked(BUILD):  # a new directory is not taken for an old one before it is locked
            for old in BUILD.glob("run-*"):
                with contextlib.suppress(OSError), locked(old, fcntl.LOCK_NB):
                    shutil.rmtree(old)
            where = stack.enter_context(tempfile.TemporaryDirectory(prefix="run-", dir=BUILD))
            stack.enter_context(locked(where))
        yield pathlib.Path(where)


def boot(args, env, accel, show=True):
    """Run the guest to its end. Returns (status, what went wrong)."""
    LOG.mkdir(parents=True, exist_ok=True)
    log = LOG / args.name
    token = secrets.token_hex(8)
    with scratch() as where:
        disk = job_disk(args, token, where)
        for suffix in ".log", ".kernel.log":
            pathlib.Path(f"{log}{suffix}").write_bytes(b"")
        kernel = KernelLog(f"{log}.kernel.log", token)
        job = JobLog(f"{log}.log", token)
        command = qemu_command(args.kernel, env, disk, accel, log, args.shell)
        deadline = time.monotonic() + args.deadline if not args.shell else float("inf")
        # snapshot=on keeps what the guest writes in TMPDIR. A session of its own: Ctrl-C is for
        # this process, which then ends QEMU; at the guest's prompt Ctrl-C is for the guest.
        errors = where / "qemu.errors"
        with errors.open("wb") as stderr:
            qemu = subprocess.Popen(command, stdin=None if args.shell else subprocess.DEVNULL, stderr=stderr,
                                    start_new_session=not args.shell, env=dict(os.environ, TMPDIR=where))
        try:
            ended = overdue = False
            while not (ended or overdue):
                # After an internal error of KVM, QEMU lives on and the guest does not.
                gone = qemu.poll() is not None or errors.stat().st_size and b"KVM internal error" in errors.read_bytes()
                kernel.poll(show)
                job.poll(show and not args.shell)
                ended = gone or (kernel.ended and job.status is not None)
                overdue = time.monotonic() > deadline
                time.sleep(0.02)
        finally:
            qemu.terminate()  # gives the terminal back as it was
            try:
                qemu.wait(5)
            except subprocess.TimeoutExpired:
                qemu.kill()
                qemu.wait()
        return verdict(args, kernel, job, overdue and not ended, errors.read_text(errors="replace"))


def verdict(args, kernel, job, overdue, qemu_errors):
    last = kernel.text.decode(errors="replace").strip().rsplit("\n", 1)[-1]
    wrong = [f"kernel: {line}" for line in kernel.splats]
    if job.taint is not None and not wrong:
        wrong += [f"kernel tainted: {name}" for bit, name in TAINT.items() if job.taint >> bit & 1]
    if overdue:
        what = "the command did not end" if kernel.started else f"the guest did not boot; its last line: {last}"
        return 124, [*wrong, f"deadline of {args.deadline} s: {what}; guest killed"]
    if job.status is None:
        return 125, [*wrong, "the guest ended before the command did", *qemu_errors.splitlines()[:20]]
    return job.status, wrong


def kvm_works(args, env):
    """Does KVM run this kernel? /dev/kvm may open and still die on the first unusual
    instruction, so boot once; the answer is kept for this kernel, QEMU and host."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    version = subprocess.run(["qemu-system-x86_64", "--version"], check=True, capture_output=True, text=True).stdout
    key = hashlib.sha256("\n".join([env["KHASH"], version, os.uname().release, os.uname().version]).encode()).hexdigest()[:16]
    answer = BUILD / "guest" / f"kvm-{key}"
    if not answer.exists():
        say("does KVM run this kernel? (a trial boot of at most 15 s)")
        trial = argparse.Namespace(kernel=args.kernel, deadline=15, module=[], parameters="", share=[], icount=False, shell=False,
                                   name=f"kvm-{key}", command=["true"])
        status, _ = boot(trial, env, accelerator(kvm=True), show=False)
        answer.write_text("yes\n" if status == 0 else "no\n")
        say("KVM works" if status == 0 else "KVM does not: emulating (TCG)")
    return answer.read_text() == "yes\n"


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `run` had it ignored
    args = options()
    env = kernel_env(args.kernel)
    if args.icount:
        accel, how = ICOUNT, "TCG, icount"
    else:
        kvm = kvm_works(args, env)
        accel, how = accelerator(kvm), "KVM" if kvm else "TCG, no usable KVM"
    say(f"guest with kernel {env['KVER']} ({how}); log: build/log/{args.name}.log, .kernel.log")
    if args.shell:
        say("`exit` ends the guest; the module is loaded if one was given")
    try:
        status, wrong = boot(args, env, accel)
    except KeyboardInterrupt:
        die("interrupted; guest killed", 130)
    if wrong:
        print("run: FAILED:", *wrong, sep="\n    ", file=sys.stderr, flush=True)
    sys.exit(status or (1 if wrong else 0))


if __name__ == "__main__":
    main()
