"""The pure core: plan, events, effects, the machine, the record's codec. It does no IO at all."""
