"""How Alembic reaches the database: through a connection it is given, or by `-x url=...` for developers."""

from alembic import context

from farm.database.engine import create_engine
from farm.database.tables import UtcTime, metadata


def render_item(kind: str, item: object, _context: object) -> str | bool:
    """Write column types of ours as the plain ones they are stored as: a migration outlives the class."""
    return "sa.BigInteger()" if kind == "type" and isinstance(item, UtcTime) else False


options = {
    "render_item": render_item,
    "target_metadata": metadata,
    "render_as_batch": True,
    "compare_type": True,
}
connection = context.config.attributes.get("connection")
if connection is not None:
    context.configure(connection=connection, **options)
    context.run_migrations()
else:
    engine = create_engine(context.get_x_argument(as_dictionary=True)["url"])
    with engine.connect().execution_options(farm_writes=True) as own, own.begin():
        context.configure(connection=own, **options)
        context.run_migrations()
