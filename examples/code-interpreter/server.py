"""Runs code in Jupyter kernels for clients of E2B's code interpreter: one kernel a context, results as lines of JSON."""

import asyncio
import json
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import tornado.web
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from tornado.iostream import StreamClosedError

PORT = 49999
HOME = str(Path.home())
# How long a kernel may take to be ready, in seconds.
START_S = 60
# How often a kernel that says nothing is asked whether it lives, in seconds.
LOOK_S = 1

PREPARATION = (Path(__file__).parent / "kernel.py").read_text()

# The names that clients give to the types of results. Other types go unchanged into `extra`.
NAMES = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "e2b/data": "data",
    "e2b/chart": "chart",
}

ALIASES = {"js": "javascript", "ts": "typescript"}


@dataclass
class Context:
    id: str
    language: str
    cwd: str
    manager: AsyncKernelManager
    client: object = None
    # A context runs one execution at a time.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    restarts: int = 0

    def described(self):
        return {"id": self.id, "language": self.language, "cwd": self.cwd}


contexts: dict[str, Context] = {}
# Code without a context runs in this one, by language.
defaults: dict[str, asyncio.Future] = {}


def kernel_name(language):
    """The name of the kernel of a language. Refuses one that is not installed."""
    specs = KernelSpecManager().get_all_specs()
    for name, found in specs.items():
        if language in (name, found["spec"].get("language", "").lower()):
            return name
    raise tornado.web.HTTPError(400, reason=f"No kernel for {language!r} is installed"[:200])


async def open_context(language, cwd):
    name = kernel_name(language)
    if not os.path.isdir(cwd):
        raise tornado.web.HTTPError(400, reason="cwd: no such directory")
    context = Context(str(uuid.uuid4()), language, cwd, AsyncKernelManager(kernel_name=name))
    await context.manager.start_kernel(cwd=cwd)
    try:
        await connect(context)
    except BaseException:
        await context.manager.shutdown_kernel(now=True)
        raise
    contexts[context.id] = context
    return context


async def connect(context):
    context.client = context.manager.client()
    context.client.start_channels()
    await context.client.wait_for_ready(timeout=START_S)
    if context.language == "python":
        await run_silently(context, PREPARATION)


async def default_context(language):
    opening = defaults.get(language)
    if opening is None or (opening.done() and (opening.exception() or opening.result().id not in contexts)):
        opening = defaults[language] = asyncio.ensure_future(open_context(language, HOME))
    # A client that goes does not stop the opening of a kernel for which others wait.
    return await asyncio.shield(opening)


async def run_silently(context, code):
    async for _ in run(context, code, silent=True):
        pass


async def run(context, code, silent=False):
    """Runs code, and yields what comes of it until the kernel has done with it."""
    client, restarts = context.client, context.restarts
    message_id = client.execute(code, silent=silent, store_history=not silent, allow_stdin=False)
    while True:
        try:
            message = await client.get_iopub_msg(timeout=LOOK_S)
        except Exception as error:
            if type(error).__name__ != "Empty" and context.restarts == restarts:
                raise
            if context.restarts != restarts:
                yield failure("ContextRestarted", "The context was restarted while the code ran.")
                return
            if not await context.manager.is_alive():
                yield failure("KernelDied", "The kernel has ended while the code ran. It starts again.")
                await restart(context)
                return
            continue
        if message["parent_header"].get("msg_id") != message_id:
            continue
        content = message["content"]
        match message["msg_type"]:
            case "stream":
                at = int(message["header"]["date"].timestamp() * 1_000_000_000)
                yield {"type": content["name"], "text": content["text"], "timestamp": at}
            case "display_data" | "execute_result" as kind:
                yield result(content["data"], kind == "execute_result")
            case "error":
                yield failure(content["ename"], content["evalue"], "\n".join(content["traceback"]))
            case "execute_input":
                yield {"type": "number_of_executions", "execution_count": content["execution_count"]}
            case "status" if content["execution_state"] == "idle":
                return


def result(data, is_main):
    line = {"type": "result", "is_main_result": is_main}
    extra = {}
    for kind, value in data.items():
        name = NAMES.get(kind)
        if name in ("data", "chart") and not value:
            continue
        if name:
            line[name] = value
        else:
            extra[kind] = value
    text = line.get("text", "")
    # A string is its own text.
    if len(text) > 1 and text[0] == text[-1] == "'":
        line["text"] = text[1:-1]
    return {**line, "extra": extra} if extra else line


def failure(name, value, traceback=""):
    return {"type": "error", "name": name, "value": value, "traceback": traceback}


async def restart(context):
    context.restarts += 1
    context.client.stop_channels()
    await context.manager.restart_kernel(now=True)
    await connect(context)


async def with_variables(context, variables):
    """Sets variables of the environment for one execution. Gives the code that puts back what was."""
    if not variables:
        return None
    if context.language != "python":
        raise tornado.web.HTTPError(400, reason="Variables can be set for Python only")
    await run_silently(context, f"__threadbox_variables__({variables!r})")
    return "__threadbox_variables_back__()"


class Handler(tornado.web.RequestHandler):
    def body(self):
        try:
            body = json.loads(self.request.body or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise tornado.web.HTTPError(400, reason="The body must be an object of JSON")
        return body

    def text_of(self, body, name, default=None):
        value = body.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise tornado.web.HTTPError(400, reason=f"{name}: must be a text")
        return value

    def language_of(self, body):
        language = self.text_of(body, "language", "python").lower()
        return ALIASES.get(language, language)

    def find(self, id):
        context = contexts.get(id)
        if context is None:
            raise tornado.web.HTTPError(404, reason="There is no such context")
        return context

    def answer(self, value):
        self.set_header("content-type", "application/json")
        self.finish(json.dumps(value))

    def write_error(self, status, **_):
        self.set_header("content-type", "application/json")
        self.finish(json.dumps({"code": status, "message": self._reason}))


class Execute(Handler):
    running = None

    async def post(self):
        body = self.body()
        code = self.text_of(body, "code")
        if code is None:
            raise tornado.web.HTTPError(400, reason="code: required")
        variables = body.get("env_vars") or {}
        if not isinstance(variables, dict) or not all(isinstance(value, str) for value in variables.values()):
            raise tornado.web.HTTPError(400, reason="env_vars: must be texts by name")
        id = self.text_of(body, "context_id")
        context = self.find(id) if id else await default_context(self.language_of(body))
        async with context.lock:
            back = await with_variables(context, variables)
            self.set_header("content-type", "application/x-ndjson")
            self.running = context
            try:
                async for line in run(context, code):
                    await self.say(line)
            finally:
                self.running = None
                if back:
                    await run_silently(context, back)
            await self.say({"type": "end_of_execution"})

    async def say(self, line):
        self.write(json.dumps(line) + "\n")
        try:
            await self.flush()
        except StreamClosedError:
            # The kernel is interrupted, and its output is read up to the end of the execution.
            pass

    def on_connection_close(self):
        if self.running:
            asyncio.ensure_future(self.running.manager.interrupt_kernel())


class Contexts(Handler):
    async def get(self):
        self.answer([context.described() for context in contexts.values()])

    async def post(self):
        body = self.body()
        context = await open_context(self.language_of(body), self.text_of(body, "cwd", HOME))
        self.answer(context.described())


class One(Handler):
    async def delete(self, id):
        context = self.find(id)
        del contexts[id]
        context.restarts += 1
        context.client.stop_channels()
        await context.manager.shutdown_kernel(now=True)
        self.set_status(204)


class Restart(Handler):
    async def post(self, id):
        await restart(self.find(id))
        self.set_status(204)


class Health(Handler):
    async def get(self):
        self.answer({"status": "ok"})


async def main():
    routes = [
        (r"/execute", Execute),
        (r"/contexts", Contexts),
        (r"/contexts/([\w-]+)", One),
        (r"/contexts/([\w-]+)/restart", Restart),
        (r"/health", Health),
    ]
    tornado.web.Application(routes).listen(PORT, "127.0.0.1", max_body_size=100 * 1024 * 1024)
    # The first code finds its kernel started, or starting.
    asyncio.ensure_future(default_context("python"))
    await asyncio.Event().wait()


asyncio.run(main())
