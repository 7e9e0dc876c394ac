#!/bin/sh
# The branch is tested where it can do no harm. The report comes out even though the tests fail.
status=0
threadbox exec --file .=work --out work/report.txt=report.txt -- "cd work && ( $JOB_TEST ) > report.txt 2>&1" || status=$?

# From 125 on the tests did not run to their end: nothing could be run, or it was killed. stderr says why.
if [ "$status" -ge 125 ]; then exit "$status"; fi

# An agent mends what failed. Its reply goes to the log, and the files that it changed are an artifact.
if [ "$status" -ne 0 ] && [ -n "$JOB_PROMPT" ]; then
  agent=0
  threadbox run --agent "$JOB_AGENT" --file .=work --file report.txt=work/report.txt --out work=fixed "$JOB_PROMPT" > reply.txt || agent=$?
  cat reply.txt
  if [ "$agent" -ne 0 ]; then echo "The agent failed, with exit code $agent." >&2; fi
fi

# The branch's own tests decide about the job, whatever the agent did.
exit "$status"
