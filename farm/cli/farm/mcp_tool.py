"""One tool of `farm mcp`: its wrong arguments and errors are reported as the farm reports them."""

from collections.abc import Callable
from typing import Any, Self

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError, create_model
from pydantic_core import to_json

from farm.cli.farm.mcp_answers import Answer
from farm.core.errors import FarmError, InvalidInput
from farm.wire.validation_errors import problems_of


class FarmTool(Tool):  # type: ignore[misc]
    """A function as a tool. It refuses unknown arguments; its errors have the farm's code and hint."""

    @classmethod
    def of(cls, function: Callable[..., Answer], annotations: ToolAnnotations) -> Self:
        """Return the tool of a function, with its name, and its docstring as description."""
        description = " ".join((function.__doc__ or "").split())
        tool: Self = cls.from_function(function, description=description, annotations=annotations)
        strict = create_model(function.__name__, __base__=tool.fn_metadata.arg_model)
        strict.model_config["extra"] = "forbid"
        strict.model_rebuild(force=True)
        tool.fn_metadata.arg_model = strict
        tool.parameters = strict.model_json_schema()
        return tool

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        """Run the tool.

        Raises:
            ToolError: an argument is wrong, or the farm refuses.
        """
        try:
            result = await super().run(arguments, context, convert_result)
        except ToolError as error:
            match error.__cause__:
                case FarmError() as cause:
                    raise ToolError(_error_text(cause.message, cause.hint, cause.code)) from cause
                case ValidationError() as cause:
                    names = list(self.parameters["properties"])
                    problems = problems_of(cause, None, known_keys=lambda _: names, root="arguments")
                    text = "; ".join(f"{problem.where}: {problem.message}" for problem in problems)
                    hint = f"{self.name} takes {', '.join(names)}"
                    raise ToolError(_error_text(text, hint, InvalidInput.code)) from cause
            raise
        if isinstance(result, CallToolResult):
            # The library's own text is indented, a third more to read.
            result.content = [TextContent(text=to_json(result.structured_content).decode())]
        return result


def _error_text(message: str, hint: str, code: str) -> str:
    return f"{message} (hint: {hint}) [{code}]"
