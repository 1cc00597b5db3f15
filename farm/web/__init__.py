"""The farm's pages: rendered by the server from the documents of the API's services."""
