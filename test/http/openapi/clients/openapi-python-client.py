"""Run against a server, with the package that openapi-python-client makes in PYTHONPATH: URL KEY"""

import json
import sys

from threadbox_client import AuthenticatedClient
from threadbox_client.api.chat import chat
from threadbox_client.api.commands import run_command
from threadbox_client.api.files import list_files, write_files
from threadbox_client.api.sandboxes import create_sandbox, delete_sandbox, get_sandbox
from threadbox_client.api.threads import create_thread
from threadbox_client.models import ChatBody, CreateSandboxBody, CreateThreadBody, FileContents, RunCommandBody
from threadbox_client.types import UNSET

url, key = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=key)


def body(model, **fields):
    return model.from_dict(fields)


sandbox = create_sandbox.sync(client=client, body=body(CreateSandboxBody, agent="echo", envs={"A": "set"}))
ran = run_command.sync(sandbox.id, client=client, body=body(RunCommandBody, command="echo $A; exit 3"))
written = write_files.sync(
    sandbox.id, client=client, body=body(FileContents, files=[{"path": "/tmp/a", "content": "text"}])
)
files = list_files.sync(sandbox.id, client=client, path="/tmp")
thread = create_thread.sync(sandbox.id, client=client, body=body(CreateThreadBody, name="first"))
messages = [{"role": "user", "parts": [{"type": "text", "text": "Hello"}]}]
reply = chat.sync_detailed(
    "echo", client=client, body=body(ChatBody, sandboxId=sandbox.id, threadId=thread.id, messages=messages)
)
detail = get_sandbox.sync(sandbox.id, client=client)
unknown = get_sandbox.sync("sbx_none", client=client)
deleted = delete_sandbox.sync_detailed(sandbox.id, client=client)

print(
    json.dumps(
        {
            "stdout": ran.stdout,
            "exitCode": ran.exit_code,
            "written": [file.size for file in written.files],
            "files": [file.name for file in files],
            "done": reply.content.endswith(b"data: [DONE]\n\n"),
            "threads": [each.name for each in detail.threads],
            "error": unknown.error.code,
            "deleted": int(deleted.status_code),
        }
    )
)
