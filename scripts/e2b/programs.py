"""Uses E2B's sandboxes by others' programs, and prints what came of each as lines of JSON."""

import asyncio
import importlib.metadata
import io
import json
import tempfile
from pathlib import Path


def so(value):
    if not value:
        raise Exception("not so")


def smolagents():
    from smolagents import tool
    from smolagents.default_tools import FinalAnswerTool
    from smolagents.monitoring import AgentLogger, LogLevel
    from smolagents.remote_executors import E2BExecutor

    @tool
    def double(n: int) -> int:
        """Doubles.

        Args:
            n: a number
        """
        return 2 * n

    executor = E2BExecutor(["six"], AgentLogger(level=LogLevel.OFF))
    try:
        ran = executor("import six\nprint('said')\n6 * 7")
        so((ran.output, ran.logs) == ("42", "said\n"))
        executor.send_variables({"numbers": [1, 2]})
        so(executor("sum(numbers)").output == "3")
        executor.send_tools({"double": double, "final_answer": FinalAnswerTool()})
        so(executor("double(4)").output == "8")
        answer = executor("final_answer(7)")
        so((answer.output, answer.is_final_answer) == (7, True))
    finally:
        executor.cleanup()


def langchain_e2b():
    from e2b import Sandbox
    from langchain_e2b import E2BSandbox

    sandbox = Sandbox.create("base")
    try:
        backend = E2BSandbox(sandbox=sandbox)
        ran = backend.execute("echo hi; exit 3")
        so((ran.output, ran.exit_code) == ("hi\n", 3))
        path = "/home/user/a.txt"
        so(backend.write(path, "one\ntwo\n").error is None)
        so(backend.edit(path, "two", "three").occurrences == 1)
        so(backend.read(path).file_data["content"].startswith("one\nthree"))
        so(backend.grep("three", "/home/user").matches[0]["line"] == 2)
        so(backend.glob("*.txt", "/home/user").matches)
        so(any(each["path"] == path for each in backend.ls("/home/user").entries))
        so(backend.upload_files([("/home/user/b", b"\0\1")])[0].error is None)
        found, missing = backend.download_files(["/home/user/b", "/none"])
        so((found.content, missing.error) == (b"\0\1", "file_not_found"))
    finally:
        sandbox.kill()


def openai_agents():
    asyncio.run(use_openai_agents())


async def use_openai_agents():
    from agents.extensions.sandbox.e2b import E2BSandboxClient, E2BSandboxClientOptions
    from agents.sandbox import Manifest
    from agents.sandbox.snapshot import LocalSnapshotSpec

    for persistence, pauses in (("tar", False), ("snapshot", False), ("tar", True)):
        with tempfile.TemporaryDirectory() as kept:
            client = E2BSandboxClient()
            own = {"workspace_persistence": persistence, "pause_on_exit": pauses, "timeout": 300}
            options = E2BSandboxClientOptions("e2b", template="base", **own)
            keep = LocalSnapshotSpec(base_path=Path(kept))
            session = await client.create(manifest=Manifest(), snapshot=keep, options=options)
            await session.start()
            ran = await session.exec("echo hi; exit 2")
            so((ran.stdout, ran.exit_code) == (b"hi\n", 2))
            await session.write(Path("a.txt"), io.BytesIO(b"hello"))
            typed = await session.pty_exec_start("cat", tty=True, yield_time_s=1)
            echoed = await session.pty_write_stdin(session_id=typed.process_id, chars="in\n", yield_time_s=1)
            so(echoed.output == b"in\r\nin\r\n")
            await session.stop()
            state = client.serialize_session_state(session.state)
            await session.shutdown()
            again = await client.resume(client.deserialize_session_state(state))
            await again.start()
            so((await again.read(Path("a.txt"))).read() == b"hello")
            await again.shutdown()
            await client.delete(again)


for name, use in (("smolagents", smolagents), ("langchain-e2b", langchain_e2b), ("openai-agents", openai_agents)):
    try:
        use()
        said = "works"
    except Exception as error:
        said = f"{type(error).__name__}: {error}".strip().split("\n")[0][:120]
    print(json.dumps([importlib.metadata.version(name), name, said]), flush=True)
