"""A farm, its agents and their phones under virtual time: every choice from one seed, so any run replays.

Real are the farm's services, its routes' waiting and the database; of the agent, what decides and remembers:
exchange loop, attempts, lease, delivery, journal and spool. Modelled are the network between them, the adb
side of an agent (finding, preparing, cleaning a phone), and phones, which keep what a real one keeps: the
fences and the runs.
"""
