"""A real pool: serves a stream of workflows on this machine or inside one allocation.

Which task starts is said by `streams.Pool`, the very object that simulations run; this room gives
it a clock, processes and a memory. From the inside out: `core` (what the pool believes; pure) and
`workflow_state` (what it believes of one workflow), `admission` (which workflows it takes),
`placement` (on which node), `agent.crew` (processes), `server` (the loop), `events`, `journal` and
`story` (what happened, for restarts and for people), `view` (what commands show), `settings`,
`folder` (who writes which file).

Rule 1: nothing is done before it is in the journal. Rule 2: those who submit and the server talk
through files in the pool's folder and nothing else; no port is opened. Rule 3: whatever ends the
server, no task continues without it.
"""
