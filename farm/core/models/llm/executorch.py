"""Language models among ExecuTorch's programs (`.pte`)."""

from farm.core.models.flatbuffer import MalformedTable, root_table, table_at

#: The method without which the runner refuses a program (extension/llm/runner/llm_runner_helper.cpp).
_METHOD = "get_max_seq_len"
#: Programs have some ten.
_MOST_METHODS = 1000


def is_language_model(content: memoryview) -> bool:
    """Tell whether a program is made for ExecuTorch's runner of language models, which needs a tokenizer."""
    try:
        methods = root_table(content).items(1)[:_MOST_METHODS]
        return any(table_at(content, place).text(0) == _METHOD for place in methods)
    except MalformedTable:
        return False
