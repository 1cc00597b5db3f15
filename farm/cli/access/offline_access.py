"""Create an access token directly in the database, for a farm that does not run."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from farm.cli.shell.identity import require_identity
from farm.cli.shell.output import print_notice

if TYPE_CHECKING:
    from farm.wire.documents.access import AccessRequest, NewAccessTokenView


def issue_offline_token(folder: Path, request: "AccessRequest") -> "NewAccessTokenView":
    """Create a token in the database of the farm with this data folder.

    A user who can write to the data folder has all permissions at that farm anyway.

    Raises:
        InvalidInput: the folder cannot be used, a farm runs there, or the database cannot be reached.
    """
    from farm.cli.shell.settings import farm_config
    from farm.clock import SystemClock
    from farm.daemon import data_folder_lock, make_data_folder
    from farm.database.connect import check_server, display_url, open_database
    from farm.database.migrate import upgrade
    from farm.services.access.tokens import issue_access_token

    config = farm_config(data_dir=folder.absolute())
    make_data_folder(config.data_dir)
    check_server(config)
    with data_folder_lock(config.data_dir), closing(open_database(config)) as database:
        upgrade(database.engine)
        token = database.write(
            issue_access_token, request, now=SystemClock().now(), actor=f"user:{require_identity()}"
        )
    print_notice(
        f"No farm runs with the data folder {folder}: the token is in its database, {display_url(config)}."
    )
    return token
