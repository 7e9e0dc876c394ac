-- What a thread has used is summed from the index alone.
create index runs_usage on runs (thread_id, ended_at, input_tokens, output_tokens, cost_usd, duration_ms);
