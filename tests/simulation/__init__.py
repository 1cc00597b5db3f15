"""A farm, its agents and their phones under virtual time: every choice from one seed, so any run replays.

Real are the farm's services and routes' waiting, the database, and of the agent what decides and remembers: the
exchange loop, attempts, delivery, journal and spool. Modelled are the network between them, the adb side of an
agent (finding, preparing, cleaning a phone) and the phones, which keep what a real one keeps: the fences, the runs.
"""
