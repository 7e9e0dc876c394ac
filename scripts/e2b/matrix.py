"""Uses each method of E2B's SDK for Python, and of both code interpreters' one, and prints what came of it as lines of JSON."""

import importlib.metadata
import json
import sys
import threading
import urllib.request
import uuid

import e2b
import e2b_code_interpreter
from e2b import PtySize, Sandbox, Secret, Template, Volume

REPOSITORY = "/home/user/repository"


def so(value, what="it is so"):
    if not value:
        raise Exception(f"not so: {what}")


def waiting(s):
    return s.commands.run("cat", background=True, stdin=True)


def terminal(s):
    return s.pty.create(PtySize(24, 80), timeout=30)


def other(work, **more):
    one = Sandbox.create("base", **more)
    try:
        return work(one)
    finally:
        Sandbox.kill(one.sandbox_id)


def upload(s):
    end = uuid.uuid4().hex
    part = f'--{end}\r\ncontent-disposition: form-data; name="file"; filename="up.txt"\r\n\r\nup\r\n--{end}--\r\n'
    kind = {"content-type": f"multipart/form-data; boundary={end}"}
    urllib.request.urlopen(urllib.request.Request(s.upload_url("up.txt"), part.encode(), kind)).read()
    so(s.files.read("up.txt") == "up")


def download(s):
    s.files.write("down.txt", "down")
    so(urllib.request.urlopen(s.download_url("down.txt")).read() == b"down")


def snapshot(s):
    made = s.create_snapshot()
    Sandbox.create(made.snapshot_id).kill()
    so(Sandbox.delete_snapshot(made.snapshot_id))


def paused(s, name):
    def work(one):
        getattr(one, name)()
        so(one.get_info().state.value == "paused")
        one.connect()
        so(one.is_running())

    other(work)


def send(s):
    handle = waiting(s)
    s.commands.send_stdin(handle.pid, "in\n")
    s.commands.close_stdin(handle.pid)
    so(handle.wait().stdout == "in\n")


def connected(s):
    handle = s.commands.connect(waiting(s).pid)
    so(handle.kill())


def typed(s):
    handle = terminal(s)
    s.pty.send_stdin(handle.pid, b"echo $((40+2)); exit\n")
    printed = []
    handle.wait(on_pty=printed.append)
    so(b"42" in b"".join(printed))


def watched(s):
    s.files.make_dir("watched")
    handle = s.files.watch_dir("watched")
    s.files.write("watched/a", "a")
    pause = threading.Event()
    while not handle.get_new_events():
        pause.wait(0.1)
    handle.stop()


def repository(s):
    s.git.init(REPOSITORY, initial_branch="main")
    s.git.configure_user("Anna", "anna@example.com", scope="local", path=REPOSITORY)
    s.files.write(f"{REPOSITORY}/a", "a")


def staged(s):
    s.git.add(REPOSITORY)
    so(s.git.status(REPOSITORY).has_staged)


def pushed(s):
    s.commands.run("git init -q --bare /tmp/far.git")
    s.git.remote_add(REPOSITORY, "origin", "/tmp/far.git")
    s.git.push(REPOSITORY, remote="origin", branch="main", set_upstream=True)


def remove_branch(s):
    s.git.checkout_branch(REPOSITORY, "main")
    s.git.delete_branch(REPOSITORY, "other")
    so(s.git.branches(REPOSITORY).branches == ["main"])


def restored(s):
    s.files.write(f"{REPOSITORY}/a", "b")
    s.git.restore(REPOSITORY, paths=["a"])
    so(s.files.read(f"{REPOSITORY}/a") == "a")


build = Template().from_image("debian:12")
git = lambda name, *words, **more: lambda s: getattr(s.git, name)(REPOSITORY, *words, **more)

# In this order: later lines use what earlier ones made.
LINES = {
    "Sandbox.create": lambda s: so(s.sandbox_id),
    "Sandbox.connect": lambda s: so(Sandbox.connect(s.sandbox_id).is_running()),
    "Sandbox.list": lambda s: so(Sandbox.list().next_items()),
    "Sandbox.get_info": lambda s: so(s.get_info().state.value == "running"),
    "Sandbox.is_running": lambda s: so(s.is_running()),
    "Sandbox.set_timeout": lambda s: s.set_timeout(600),
    "Sandbox.get_metrics": lambda s: s.get_metrics(),
    "Sandbox.get_host": lambda s: so(s.get_host(80).startswith("80-")),
    "Sandbox.update_network": lambda s: s.update_network({"deny_out": ["8.8.8.8"]}),
    "Sandbox.upload_url": upload,
    "Sandbox.download_url": download,
    "Sandbox.pause": lambda s: paused(s, "pause"),
    "Sandbox.beta_pause": lambda s: paused(s, "beta_pause"),
    "Sandbox.kill": lambda s: so(not other(lambda one: (one.kill(), one.is_running())[1])),
    "Sandbox.create_snapshot": snapshot,
    "Sandbox.list_snapshots": lambda s: s.list_snapshots().next_items(),
    "Sandbox.delete_snapshot": lambda s: so(not Sandbox.delete_snapshot("snap_none")),
    "Sandbox.fork": lambda s: s.fork(count=1)[0].kill(),
    "Sandbox.get_mcp_url": lambda s: so(s.get_mcp_url()),
    "Sandbox.get_mcp_token": lambda s: so(s.get_mcp_token()),
    "commands.run": lambda s: so(s.commands.run("echo hi").stdout == "hi\n"),
    "commands.list": lambda s: s.commands.list(),
    "commands.connect": connected,
    "commands.kill": lambda s: so(s.commands.kill(waiting(s).pid)),
    "commands.send_stdin": send,
    "commands.close_stdin": send,
    "pty.create": lambda s: so(terminal(s).kill()),
    "pty.send_stdin": typed,
    "pty.resize": lambda s: (h := terminal(s), s.pty.resize(h.pid, PtySize(30, 100)), h.kill()),
    "pty.connect": lambda s: so(s.pty.connect(terminal(s).pid).kill()),
    "pty.kill": lambda s: so(s.pty.kill(terminal(s).pid)),
    "files.write": lambda s: s.files.write("written", "w"),
    "files.write_files": lambda s: s.files.write_files([{"path": "many", "data": "w"}]),
    "files.read": lambda s: so(s.files.read("written") == "w"),
    "files.list": lambda s: so(len(s.files.list("/")) > 3),
    "files.get_info": lambda s: so(s.files.get_info("written").size == 1),
    "files.exists": lambda s: so(not s.files.exists("none")),
    "files.make_dir": lambda s: so(s.files.make_dir("directory")),
    "files.rename": lambda s: s.files.rename("written", "renamed"),
    "files.remove": lambda s: s.files.remove("renamed"),
    "files.watch_dir": watched,
    "git.init": repository,
    "git.configure_user": lambda s: so(s.git.get_config("user.name", scope="local", path=REPOSITORY) == "Anna"),
    "git.add": staged,
    "git.commit": git("commit", "first"),
    "git.status": lambda s: so(s.git.status(REPOSITORY).is_clean),
    "git.branches": lambda s: so(s.git.branches(REPOSITORY).current_branch == "main"),
    "git.create_branch": git("create_branch", "other"),
    "git.checkout_branch": git("checkout_branch", "other"),
    "git.delete_branch": remove_branch,
    "git.set_config": lambda s: s.git.set_config("core.editor", "vi", scope="local", path=REPOSITORY),
    "git.get_config": lambda s: so(s.git.get_config("core.editor", scope="local", path=REPOSITORY) == "vi"),
    "git.restore": restored,
    "git.reset": git("reset", mode="hard"),
    "git.remote_add": pushed,
    "git.remote_get": lambda s: so(s.git.remote_get(REPOSITORY, "origin") == "/tmp/far.git"),
    "git.push": git("push"),
    "git.pull": git("pull"),
    "git.clone": lambda s: s.git.clone("/tmp/far.git", path=f"/tmp/{uuid.uuid4()}"),
    "git.dangerously_authenticate": lambda s: s.git.dangerously_authenticate("anna", "x"),
    "Template.exists": lambda s: so(Template.exists("base")),
    "Template.alias_exists": lambda s: so(Template.alias_exists("base")),
    "Template.build": lambda s: Template.build(build, "mine"),
    "Template.build_in_background": lambda s: Template.build_in_background(build, "mine"),
    "Template.get_tags": lambda s: Template.get_tags("base"),
    "Template.assign_tags": lambda s: Template.assign_tags("base", ["mine"]),
    "Template.remove_tags": lambda s: Template.remove_tags("base", ["mine"]),
    "Volume.list": lambda s: Volume.list(),
    "Volume.create": lambda s: Volume.create("mine"),
    "Secret.list": lambda s: Secret.list().next_items(),
    "Secret.create": lambda s: Secret.create("mine", "x"),
}

CHART = "import matplotlib.pyplot as plt\nplt.bar(['x', 'y'], [1, 2])\nplt.show()"


def in_context(s):
    context = s.create_code_context(cwd="/tmp")
    so(s.run_code("import os; os.getcwd()", context=context).text == "/tmp")
    return context


def restarted(s):
    context = in_context(s)
    s.restart_code_context(context)
    so(s.run_code("os", context=context).error.name == "NameError")


def removed(s):
    before = len(s.list_code_contexts())
    s.remove_code_context(in_context(s))
    so(len(s.list_code_contexts()) == before)


def streamed(s):
    seen = []
    s.run_code("print(1)\nimport sys; print(2, file=sys.stderr)", on_stdout=seen.append, on_stderr=seen.append)
    so(sorted((message.line, message.error) for message in seen) == [("1\n", False), ("2\n", True)])


INTERPRETER_LINES = {
    "result": lambda s: so(s.run_code("x = 41\nx + 1").text == "42"),
    "state": lambda s: so(s.run_code("x").text == "41"),
    "output": streamed,
    "error": lambda s: so(s.run_code("1 / 0").error.name == "ZeroDivisionError"),
    "variables": lambda s: so(s.run_code("import os; os.environ['A']", envs={"A": "b"}).text == "b"),
    "data": lambda s: so(s.run_code("import pandas; pandas.DataFrame({'a': [1]})").results[0].data == {"a": [1]}),
    "image": lambda s: so(s.run_code(CHART).results[0].png),
    "chart": lambda s: so(s.run_code(CHART).results[0].chart.type.value == "bar"),
    "create context": in_context,
    "list contexts": lambda s: so(s.list_code_contexts()),
    "restart context": restarted,
    "remove context": removed,
}


def said(use, sandbox):
    try:
        use(sandbox)
        return "works"
    except Exception as error:
        return str(error).split("\n")[0].replace("|", "/")[:120] or type(error).__name__


def tell(version, lines, sandbox):
    try:
        for name, use in lines.items():
            print(json.dumps([version, name, said(use, sandbox)]), flush=True)
    finally:
        sandbox.kill()


if sys.argv[1] == "sdk":
    tell(importlib.metadata.version("e2b"), LINES, Sandbox.create("base", timeout=600))
else:
    tell(importlib.metadata.version("e2b-code-interpreter"), INTERPRETER_LINES, e2b_code_interpreter.Sandbox.create())
