"""Starts ranks from one process that has PyTorch loaded: a rank begins within milliseconds where a fresh interpreter imports for ten seconds.

    python3 ranks.py SOCKET     waits for requests of Rank

A rank is a fork, before anything touched CUDA, with an environment of its own, which /proc/PID/environ shows as that of a process started with it."""

import ctypes
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time

ROOM = 1 << 15  # bytes of environment that a rank may have


class Rank:
    """A rank that runs a script; as much of subprocess.Popen as is needed. Without a socket it is a fresh interpreter."""

    def __init__(self, socket_path, script, env, log, cwd):
        self.path, self.code, self.process = socket_path, None, None
        if not socket_path:
            with open(log, "wb") as f:
                self.process = subprocess.Popen([sys.executable, "-u", script], env=env, stdout=f, stderr=subprocess.STDOUT, cwd=cwd)
            self.pid = self.process.pid
            return
        self.pid = ask(socket_path, {"script": script, "env": env, "log": log, "cwd": cwd})["pid"]

    def poll(self):
        if self.process:
            return self.process.poll()
        if self.code is None:
            self.code = ask(self.path, {"poll": self.pid})["code"]
        return self.code

    def wait(self, seconds=10):
        end = time.time() + seconds
        while self.poll() is None and time.time() < end:
            time.sleep(0.05)
        return self.poll()

    def send_signal(self, sig):
        if self.poll() is None:
            try:
                os.kill(self.pid, sig)
            except ProcessLookupError:
                pass

    def kill(self):
        self.send_signal(signal.SIGKILL)


def ask(path, question):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(path)
        s.sendall(json.dumps(question).encode() + b"\n")
        return json.loads(s.makefile().readline())


def serve(path):
    """Answers until the parent is gone; in a rank it returns what to run."""
    import torch
    import torch._dynamo
    import torch._inductor.compile_fx
    import torch.distributed.device_mesh
    import torch.distributed.fsdp
    import torch.utils.data

    gc.freeze()  # what is loaded stays shared
    codes, parent = {}, os.getppid()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    listener.settimeout(5)
    print("ranks.py:", open("/proc/self/status").read().split("Threads:")[1].split()[0], "thread(s), CUDA", "is" if torch.cuda.is_initialized() else "is not", "initialized", flush=True)
    while os.getppid() == parent:
        try:
            peer, _ = listener.accept()
        except socket.timeout:
            continue
        with peer:
            question = json.loads(peer.makefile().readline())
            if "poll" in question:
                pid = question["poll"]
                if pid not in codes:
                    got, status = os.waitpid(pid, os.WNOHANG)
                    if got:
                        codes[pid] = os.waitstatus_to_exitcode(status)
                peer.sendall(json.dumps({"code": codes.get(pid)}).encode() + b"\n")
                continue
            pid = os.fork()
            if pid == 0:
                listener.close()
                return question
            peer.sendall(json.dumps({"pid": pid}).encode() + b"\n")
    os._exit(0)


def become(question):
    os.chdir(question["cwd"])
    log = os.open(question["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    for name in list(os.environ):
        del os.environ[name]
    os.environ.update(question["env"])
    block = b"".join(f"{k}={v}".encode() + b"\0" for k, v in question["env"].items())
    start, end = (int(f) for f in open("/proc/self/stat").read().rpartition(")")[2].split()[47:49])
    if len(block) > end - start:
        raise SystemExit(f"environment of {len(block)} bytes, room for {end - start}")
    ctypes.memmove(start, block.ljust(end - start, b"\0"), end - start)
    sys.argv = [question["script"]]


def start(path):
    """Starts serve in a process of its own, and waits for it."""
    env = dict(os.environ, PAD="x" * ROOM, OMP_NUM_THREADS="1", TORCHINDUCTOR_COMPILE_THREADS="1", PYTORCH_NVML_BASED_CUDA_CHECK="1")
    server = subprocess.Popen([sys.executable, "-u", os.path.abspath(__file__), path], env=env, stdin=subprocess.DEVNULL)
    while not os.path.exists(path) and server.poll() is None:
        time.sleep(0.1)
    return server


if __name__ == "__main__":
    spec = serve(sys.argv[1])
    become(spec)
    runpy.run_path(spec["script"], run_name="__main__")
