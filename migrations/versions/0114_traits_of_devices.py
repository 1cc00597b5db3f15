"""What devices are grouped by, as columns of theirs: to parse the facts of a thousand took milliseconds."""

import sqlalchemy as sa
from alembic import op

revision = "0114"
down_revision = "0113"
branch_labels = None
depends_on = None

_TEXTS = ("device_model", "soc", "android")
_devices = sa.table("devices", *(sa.column(name) for name in ("facts_id", *_TEXTS, "virtual")))
_facts = sa.table("device_facts", sa.column("facts_id"), sa.column("facts", sa.JSON()))


def upgrade() -> None:
    for name in _TEXTS:
        op.add_column("devices", sa.Column(name, sa.Text(), nullable=True))
    op.add_column("devices", sa.Column("virtual", sa.Boolean(), nullable=True))
    values: dict[str, sa.ColumnElement[object]] = {name: _facts.c.facts[name].as_string() for name in _TEXTS}
    # Of facts of earlier agents, which did not say it.
    values["virtual"] = sa.func.coalesce(_facts.c.facts["virtual"].as_boolean(), sa.false())
    own = _facts.c.facts_id == _devices.c.facts_id
    of_facts = {name: sa.select(value).where(own).scalar_subquery() for name, value in values.items()}
    op.execute(_devices.update().where(_devices.c.facts_id.is_not(None)).values(of_facts))


def downgrade() -> None:
    for name in ("virtual", *reversed(_TEXTS)):
        op.drop_column("devices", name)
